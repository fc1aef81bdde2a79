package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readSize is the most that is read at once, in bytes.
	readSize = 16 << 10
	// lineCost is how many bytes a line of a head counts in addition to its length, for the memory
	// that it takes.
	lineCost = 128
	// inOneWrite is the longest body that the kernel takes whether or not the server reads it, in
	// bytes.
	inOneWrite = 64 << 10
)

// conn is one connection, and the body of the answer that it carries. Answers are parsed by
// net/http.
type conn struct {
	net.Conn
	pool   *connPool
	unhook func() bool
	since  time.Time
	// in holds what was read but not used; at is when the last read returned, failed the error it
	// returned.
	in     *bufio.Reader
	at     time.Time
	failed error
	// writing is closed when a long request has been written, nil for none; werr is the error of
	// the last write.
	writing chan struct{}
	werr    error
	// sent counts the bytes of the requests before the present one.
	sent int64
	present
	bytes [readSize]byte
}

// present is how far the answer to the last request has been read.
type present struct {
	// silent: no byte of it has arrived; unread: nor did any of the request reach the server before
	// the connection broke.
	silent, unread bool
	// head is how many more bytes its head may have, heading is set until the head has ended.
	head    int
	heading bool
	body    io.Reader
	// ended: it was read to its end; keep: the connection may carry another.
	ended, keep bool
}

func newConn(nc net.Conn, p *connPool) *conn {
	c := &conn{Conn: nc, pool: p}
	c.in = bufio.NewReaderSize(c, readSize)
	c.unhook = context.AfterFunc(p.ctx, func() { nc.Close() })
	return c
}

// drop closes the connection and waits until nothing is written to it, so that the message is free.
func (c *conn) drop() {
	c.unhook()
	c.Close()
	if c.writing != nil {
		<-c.writing
	}
}

// Read reads once, for in, and notes the time. The first error is kept: a socket reports a reset
// once, and the end of the stream from then on.
func (c *conn) Read(b []byte) (n int, err error) {
	if c.failed != nil {
		return 0, c.failed
	}
	if c.heading && c.head <= 0 {
		err = malformed("head longer than %d bytes", maxHead)
	} else {
		n, err = c.Conn.Read(b)
	}
	c.at, c.failed = time.Now(), err
	c.silent = c.silent && n == 0
	if c.heading {
		c.head -= n + lineCost*bytes.Count(b[:n], []byte{'\n'})
	}
	return n, err
}

// ask sends a request and reads the head of its answer by the deadline.
func (c *conn) ask(m *message, deadline time.Time) (response, error) {
	c.SetDeadline(deadline)
	r, err := c.exchange(m)
	if err != nil {
		acked := acknowledged(c.Conn)
		c.unread = acked >= 0 && acked <= c.sent
		c.drop()
	}
	c.sent += int64(len(m.head) + len(m.body))
	return r, err
}

// exchange sends the message and reads the head of the answer. A server may
// answer, and close, before it has read all of a request that it refuses.
func (c *conn) exchange(m *message) (response, error) {
	c.present = present{silent: true, head: maxHead, heading: true}
	c.write(m)
	for {
		// An answer that is not HTTP shows it before the end of its first line, which may never
		// come.
		begin, _ := c.in.Peek(len("HTTP/"))
		if len(begin) == len("HTTP/") && string(begin) != "HTTP/" {
			return response{}, malformed("it begins with %q", begin)
		}
		res, err := http.ReadResponse(c.in, nil)
		switch {
		case err != nil && c.silent && c.written() && c.werr != nil:
			return response{}, c.werr
		case err != nil && c.silent && c.failed == io.EOF:
			return response{}, errNoAnswer
		case err != nil:
			return response{}, c.blame(err)
		case res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols:
			c.heading, c.body, c.keep = false, res.Body, !res.Close
			r, err := newResponse(res, c)
			r.sending = !c.written()
			return r, err
		}
	}
}

// write sends a request. A long one is sent while the answer is read: a server that refuses it need
// not read it.
func (c *conn) write(m *message) {
	if len(m.body) <= inOneWrite {
		_, c.werr = (&net.Buffers{m.head, m.body}).WriteTo(c.Conn)
		return
	}
	done := make(chan struct{})
	c.writing = done
	go func() {
		defer close(done)
		_, c.werr = (&net.Buffers{m.head, m.body}).WriteTo(c.Conn)
	}()
}

// written reports whether no part of the request is still being sent.
func (c *conn) written() bool {
	if c.writing == nil {
		return true
	}
	select {
	case <-c.writing:
		c.writing = nil
		return true
	default:
		return false
	}
}

// blame returns why an answer was not read to its end: the error of the connection, or else what is
// wrong with the answer.
func (c *conn) blame(err error) error {
	switch c.failed {
	case nil:
		return malformed("%v", err)
	case io.EOF:
		return errCut
	}
	return c.failed
}

func (c *conn) next() ([]byte, time.Time, error) {
	n, err := c.body.Read(c.bytes[:])
	c.ended = err == io.EOF
	if err != nil && !c.ended {
		err = c.blame(err)
	}
	return c.bytes[:n], c.at, err
}

func (c *conn) said() { c.SetReadDeadline(time.Now().Add(endLimit)) }

func (c *conn) close() {
	if c.ended && c.keep && c.written() && c.werr == nil && c.in.Buffered() == 0 {
		c.pool.put(c)
		return
	}
	c.drop()
}

// idleLimit is how long a connection is kept without use: below the 5 s after
// which uvicorn, and so vLLM, SGLang and LMDeploy, closes it.
const idleLimit = 4 * time.Second

// connPool holds the connections of one trial to one plain HTTP/1.1 server: as many as there are
// requests in flight, without a limit at which requests could queue. A goroutine reads its answer
// itself; the transport of net/http, which is used for TLS, spends twice the time per event on
// handing each one from goroutine to goroutine.
type connPool struct {
	ctx  context.Context
	dial func(ctx context.Context) (net.Conn, error)

	mu   sync.Mutex
	idle []*conn

	reuse *reuse
}

// send implements transport. A request that crossed the server's close of a kept connection is sent
// again on a new one; its intended time stays the same.
func (p *connPool) send(m *message, deadline time.Time) (response, error) {
	c, kept, err := p.get(deadline)
	if err != nil {
		return response{}, err
	}
	used := c.sent > 0
	begin := time.Now()
	r, err := c.ask(m, deadline)
	if err == nil && used {
		p.reuse.answered()
	}
	if err == nil || !kept || !c.silent || !isStale(err) || time.Since(begin) > crossLimit || !p.reuse.again(err, c.unread) {
		return r, err
	}
	if c, err = p.open(deadline); err != nil {
		return response{}, err
	}
	return c.ask(m, deadline)
}

// isStale reports whether an error may come of a close by the server that crossed the request on
// its way. A request that the server read and threw away looks the same: see [reuse.again].
func isStale(err error) bool {
	return errors.Is(err, errNoAnswer) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http has no type for it
}

// get returns the connection that was used last and is still open, or opens one.
func (p *connPool) get(deadline time.Time) (c *conn, kept bool, err error) {
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		c := p.idle[n-1]
		if time.Since(c.since) < idleLimit && !p.reuse.none.Load() {
			p.idle = p.idle[:n-1]
			if hungUp(c.Conn) {
				c.drop()
				continue
			}
			p.mu.Unlock()
			return c, true, nil
		}
		// Those before it have been idle for longer still, or none is to be used again.
		for _, c := range p.idle {
			c.drop()
		}
		p.idle = p.idle[:0]
	}
	p.mu.Unlock()
	c, err = p.open(deadline)
	return c, false, err
}

func (p *connPool) open(deadline time.Time) (*conn, error) {
	ctx := p.ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	nc, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	return newConn(nc, p), nil
}

// Up to inTurn connections are opened one after another, within warmLimit.
const (
	inTurn    = 16
	warmLimit = time.Second
)

// warm opens n connections for requests to come. Up to inTurn are opened one after another and used
// in that order: a server that takes one connection after another, and reads each to its end, would
// wait on the first one for a request that comes on the last. Errors are left to the requests that
// need a connection.
func (p *connPool) warm(n int) {
	begin := time.Now()
	if n <= inTurn {
		for range n {
			c, err := p.open(begin.Add(warmLimit))
			if err != nil {
				break
			}
			p.put(c)
		}
		slices.Reverse(p.idle)
		return
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if c, err := p.open(begin.Add(5 * time.Second)); err == nil {
				p.put(c)
			}
		})
	}
	wg.Wait()
}

func (p *connPool) put(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
}

// close closes the idle connections; the others end with their requests.
func (p *connPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.drop()
	}
	p.idle = nil
}

// hungUp reports whether an idle connection is of no more use, which the kernel tells without
// sending anything: the server closed or reset it, or sent something unasked.
func hungUp(nc net.Conn) bool {
	gone := false
	err := control(nc, func(fd int) {
		var b [1]byte
		_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return gone || err != nil
}

// control runs f on the descriptor of a connection that has one.
func control(nc net.Conn, f func(fd int)) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}
