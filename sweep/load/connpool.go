package load

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// idleLimit is how long a connection is kept without use: below the 5 s after
// which uvicorn, and so vLLM, SGLang and LMDeploy, closes it.
const idleLimit = 4 * time.Second

// connPool holds the connections of one trial to one plain HTTP/1.1 server: as many
// as there are requests in flight, without a limit that requests could queue
// at. A goroutine reads its answer itself; the transport of net/http, which is used
// for TLS, spends twice the time per event on handing each one from goroutine to
// goroutine.
type connPool struct {
	ctx  context.Context
	dial func(ctx context.Context) (net.Conn, error)

	mu   sync.Mutex
	idle []*conn
	// resent counts the requests that left again on another connection.
	resent int
}

// send implements transport. A request that met a close of a kept connection is sent
// again on a new one; when it was due does not change by that.
func (p *connPool) send(m *message, deadline time.Time) (response, error) {
	c, reused, err := p.get(deadline)
	if err != nil {
		return response{}, err
	}
	begin := time.Now()
	r, err := c.ask(m, deadline)
	if err == nil || !reused || !c.silent || !isStale(err) || time.Since(begin) > crossLimit {
		return r, err
	}
	p.mu.Lock()
	p.resent++
	p.mu.Unlock()
	if c, err = p.open(deadline); err != nil {
		return response{}, err
	}
	return c.ask(m, deadline)
}

func (p *connPool) resends() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resent
}

// isStale reports the errors of a connection whose close by the server crossed
// the request on its way. A request that the server read and threw away looks
// the same, which is why resendLimit bounds the benefit of the doubt.
func isStale(err error) bool {
	for _, closed := range [...]error{errNoAnswer, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return strings.Contains(err.Error(), "server closed idle connection") // net/http has no type for it
}

// get takes the connection that was used last and is still open, or opens one.
func (p *connPool) get(deadline time.Time) (c *conn, reused bool, err error) {
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		c := p.idle[n-1]
		if time.Since(c.since) < idleLimit && p.resent < resendLimit {
			p.idle = p.idle[:n-1]
			if hungUp(c.Conn) {
				c.drop()
				continue
			}
			p.mu.Unlock()
			return c, true, nil
		}
		// Those below have been idle for longer still, or none is to be used again.
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

// warm opens n connections for requests to come. Few are opened in turn and used
// in that order: a server that takes one connection after another, and reads each
// to its end, would wait at the first one for a request that comes on the last.
// Errors are left to those who need a connection.
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

// hungUp reports whether an idle connection is of no more use, as the kernel
// knows it without anything being sent: the server closed or reset it, or said
// something that nobody asked for.
func hungUp(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return gone || err != nil
}
