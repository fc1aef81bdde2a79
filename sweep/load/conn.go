package load

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"time"
)

// Limits of what a server may send, and what is read at once.
const (
	maxHead  = 64 << 10
	maxLine  = 8 << 10
	readSize = 16 << 10
)

// conn is one connection, and the body of the answer that it carries.
type conn struct {
	net.Conn
	pool   *connPool
	unhook func() bool
	since  time.Time
	// in holds what was read and not used; at is when the last read returned.
	in *bufio.Reader
	at time.Time
	// silent: no byte of the present answer has come.
	silent bool
	// left counts the bytes to come of the body, or of its present chunk; -1
	// stands for all until the connection closes.
	left    int64
	chunked bool
	// inChunks is set once the first chunk has begun.
	inChunks, ended, keep bool
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
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.at = time.Now()
	c.silent = c.silent && n == 0
	return n, err
}

// exchange sends the message and reads the head of the answer. A server may
// answer, and close, before it has read all of a request that it refuses.
func (c *conn) exchange(m *message) (response, error) {
	c.silent = true
	_, werr := c.Write(m.bytes())
	for {
		a, err := c.head()
		switch {
		case err != nil && werr != nil && c.silent:
			return a, werr
		case err != nil:
			return a, err
		case a.status >= 200:
			c.keep = c.keep && werr == nil
			return a, nil
		}
	}
}

// head reads status line and headers.
func (c *conn) head() (response, error) {
	line, err := c.line()
	if err != nil {
		if err == errCut && c.silent {
			err = errNoAnswer
		}
		return response{}, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' {
		return response{}, malformed("not HTTP/1.1: %q", line[:min(len(line), 40)])
	}
	a := response{body: c}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil || a.status < 100 {
		return response{}, malformed("status %q", line[9:12])
	}
	c.left, c.chunked, c.inChunks, c.ended = -1, false, false, false
	c.keep = line[7] == '1'
	for size := 0; ; size += len(line) {
		if line, err = c.line(); err != nil {
			return response{}, err
		}
		if len(line) == 0 {
			break
		}
		if size > maxHead {
			return response{}, malformed("head longer than %d bytes", maxHead)
		}
		if err := c.header(&a, line); err != nil {
			return response{}, err
		}
	}
	switch {
	case c.chunked:
		c.left = 0
	case c.left < 0:
		c.keep = false
	}
	if a.status == 204 || a.status == 304 || a.status < 200 {
		c.left, c.chunked = 0, false
	}
	return a, nil
}

// header takes what a line of the head says of the body.
func (c *conn) header(a *response, line []byte) (err error) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case is(name, "content-length"):
		if c.left, err = strconv.ParseInt(string(value), 10, 64); err != nil || c.left < 0 {
			return malformed("content-length %q", value)
		}
	case is(name, "transfer-encoding"):
		c.chunked = is(value, "chunked")
	case is(name, "connection"):
		c.keep = c.keep && !is(value, "close")
	case is(name, "content-encoding"):
		if !is(value, "identity") && len(value) > 0 {
			return malformed("content-encoding %q, which was not asked for", value)
		}
	case is(name, "content-type"):
		const stream = "text/event-stream"
		a.stream = len(value) >= len(stream) && is(value[:len(stream)], stream)
	}
	return nil
}

func is(b []byte, word string) bool { return bytes.EqualFold(b, []byte(word)) }

// next implements body.
func (c *conn) next() ([]byte, time.Time, error) {
	if c.left == 0 {
		if err := c.nextChunk(); err != nil {
			return nil, c.at, err
		}
	}
	n := c.in.Buffered()
	if n == 0 {
		if _, err := c.in.Peek(1); err != nil {
			c.ended = err == io.EOF && c.left < 0
			if !c.ended {
				err = cutShort(err)
			}
			return nil, c.at, err
		}
		n = c.in.Buffered()
	}
	if c.left >= 0 {
		n = int(min(int64(n), c.left))
		c.left -= int64(n)
	}
	span, _ := c.in.Peek(n)
	_, _ = c.in.Discard(n) // buffered, as the span is
	return span, c.at, nil
}

// nextChunk reads the size of the next chunk of a body in chunks; io.EOF behind
// the last one, or behind a body that has a length.
func (c *conn) nextChunk() error {
	if !c.chunked || c.ended {
		c.ended = true
		return io.EOF
	}
	if c.inChunks {
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return malformedChunk(line)
		}
	}
	c.inChunks = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size := line
	if i := bytes.IndexAny(line, "; "); i >= 0 { // extensions
		size = line[:i]
	}
	n, err := strconv.ParseUint(string(size), 16, 63)
	if err != nil {
		return malformedChunk(line)
	}
	c.left = int64(n)
	if n > 0 {
		return nil
	}
	for { // trailers
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			c.ended = true
			return io.EOF
		}
	}
}

func malformedChunk(line []byte) error {
	return malformed("chunk of size %q", line[:min(len(line), 20)])
}

// line reads one line of the head or of the chunked framing.
func (c *conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case len(line) > maxLine:
		return nil, malformed("line longer than %d bytes", maxLine)
	case err != nil:
		return nil, cutShort(err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// cutShort is why an answer was not read to its end.
func cutShort(err error) error {
	if err == io.EOF {
		return errCut
	}
	return err
}

// close implements body.
func (c *conn) close() {
	if c.ended && c.keep && c.in.Buffered() == 0 {
		c.pool.put(c)
		return
	}
	c.drop()
}
