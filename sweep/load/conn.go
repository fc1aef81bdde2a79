package load

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

// maxHead is the longest head of an answer, about; readSize is what is read at once.
const (
	maxHead  = 64 << 10
	readSize = 16 << 10
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
	// silent: no byte of the present answer has come.
	silent bool
	// head is how many bytes its head may still have.
	head  int
	body  io.Reader
	bytes [readSize]byte
	// ended: the answer was read to its end; keep: another may follow it.
	ended, keep bool
}

func newConn(nc net.Conn, p *connPool) *conn {
	c := &conn{Conn: nc, pool: p}
	c.in = bufio.NewReaderSize(c, readSize)
	c.unhook = context.AfterFunc(p.ctx, func() { nc.Close() })
	return c
}

func (c *conn) drop() {
	c.unhook()
	c.Close()
}

// Read reads once, for in, and looks at the clock.
func (c *conn) Read(b []byte) (n int, err error) {
	if c.head > 0 {
		n, err = c.Conn.Read(b)
	} else {
		err = malformed("head longer than %d bytes", maxHead)
	}
	c.at, c.failed = time.Now(), err
	c.head -= n
	c.silent = c.silent && n == 0
	return n, err
}

// exchange sends the message and reads the head of the answer. A server may
// answer, and close, before it has read all of a request that it refuses.
func (c *conn) exchange(m *message) (response, error) {
	c.silent = true
	_, werr := (&net.Buffers{m.head, m.body}).WriteTo(c.Conn)
	for {
		c.head = maxHead
		res, err := http.ReadResponse(c.in, nil)
		switch {
		case err != nil && werr != nil && c.silent:
			return response{}, werr
		case err != nil && c.silent && c.failed == io.EOF:
			return response{}, errNoAnswer
		case err != nil:
			return response{}, c.blame(err)
		case res.StatusCode >= 200:
			c.head = math.MaxInt
			c.body, c.ended, c.keep = res.Body, false, !res.Close && werr == nil
			return newResponse(res, c)
		}
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

// next implements body.
func (c *conn) next() ([]byte, time.Time, error) {
	n, err := c.body.Read(c.bytes[:])
	c.ended = err == io.EOF
	if err != nil && !c.ended {
		err = c.blame(err)
	}
	return c.bytes[:n], c.at, err
}

// close implements body.
func (c *conn) close() {
	if c.ended && c.keep && c.in.Buffered() == 0 {
		c.pool.put(c)
		return
	}
	c.drop()
}
