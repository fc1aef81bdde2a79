package load

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// readSize is what is read at once.
	readSize = 16 << 10
	// lineCost is what a line of a head counts beside its bytes: the memory it takes.
	lineCost = 128
	// inOneWrite is the longest body that the kernel takes whether or not the server
	// reads it.
	inOneWrite = 64 << 10
)

// conn is one connection, and the body of the answer that it carries. Of net/http it
// takes the reading of answers.
type conn struct {
	net.Conn
	pool   *connPool
	unhook func() bool
	since  time.Time
	// in holds what was read and not used; at is when the last read returned, failed
	// why it did not bring anything.
	in     *bufio.Reader
	at     time.Time
	failed error
	// writing is closed when a long request has left, nil for none; werr is what
	// became of the last one.
	writing chan struct{}
	werr    error
	present
	bytes [readSize]byte
}

// present is how far the answer to the last request has been read.
type present struct {
	// silent: no byte of it has come.
	silent bool
	// head is how many bytes its head may still have, heading is set until it has ended.
	head    int
	heading bool
	body    io.Reader
	// ended: it was read to its end; keep: another may follow it.
	ended, keep bool
}

func newConn(nc net.Conn, p *connPool) *conn {
	c := &conn{Conn: nc, pool: p}
	c.in = bufio.NewReaderSize(c, readSize)
	c.unhook = context.AfterFunc(p.ctx, func() { nc.Close() })
	return c
}

// drop closes the connection; what was written on it is not in use any more.
func (c *conn) drop() {
	c.unhook()
	c.Close()
	if c.writing != nil {
		<-c.writing
	}
}

// Read reads once, for in, and looks at the clock.
func (c *conn) Read(b []byte) (n int, err error) {
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
		c.drop()
	}
	return r, err
}

// exchange sends the message and reads the head of the answer. A server may
// answer, and close, before it has read all of a request that it refuses.
func (c *conn) exchange(m *message) (response, error) {
	c.present = present{silent: true, head: maxHead, heading: true}
	c.write(m)
	for {
		// What is no HTTP need not come to the end of a line to be none.
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

// write sends a request. A long one leaves beside the reading of the answer: a server
// that refuses it need not read it.
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

// written reports whether nothing of the request is being sent any more.
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

// blame is why an answer was not read to its end: what the connection met, or else
// what the answer says.
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

func (c *conn) close() {
	if c.ended && c.keep && c.written() && c.werr == nil && c.in.Buffered() == 0 {
		c.pool.put(c)
		return
	}
	c.drop()
}
