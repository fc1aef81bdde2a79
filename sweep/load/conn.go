package load

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"time"
)

// Limits of what a server may send.
const (
	maxHead      = 64 << 10
	maxChunkLine = 4 << 10
)

// conn is one connection, and the body of the answer that it carries.
type conn struct {
	net.Conn
	pool   *connPool
	unhook func() bool
	since  time.Time
	// buf[r:w] was read and not used; at is when the last read returned.
	buf  []byte
	r, w int
	at   time.Time
	// silent: no byte of the present answer has come.
	silent bool
	// left counts the bytes to come of the body, or of its present chunk; -1
	// stands for all until the connection closes.
	left    int64
	chunked bool
	// inChunks is set once the first chunk has begun.
	inChunks, ended, keep bool
}

func (c *conn) drop() {
	c.unhook()
	c.Close()
}

// fill reads once. Its buffer grows when a read fills it.
func (c *conn) fill() error {
	full := c.w == len(c.buf)
	if c.r == c.w || full {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) || full && len(c.buf) < maxHead {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := c.Read(c.buf[c.w:])
	c.at = time.Now()
	if n > 0 {
		c.silent = false
		c.w += n
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// exchange sends the message and reads the head of the answer. A server may
// answer, and close, before it has read all of a request that it refuses.
func (c *conn) exchange(m *message) (response, error) {
	c.r, c.w, c.silent = 0, 0, true
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
	for {
		if i := endOfHead(c.buf[c.r:c.w]); i >= 0 {
			block := c.buf[c.r : c.r+i]
			c.r += i
			return c.parseHead(block)
		}
		if c.w-c.r > maxHead {
			return response{}, malformed("head longer than %d bytes", maxHead)
		}
		if err := c.fill(); err != nil {
			if err == io.EOF && c.silent {
				return response{}, errNoAnswer
			}
			return response{}, cutShort(err)
		}
	}
}

// endOfHead is the index behind the blank line that ends a head, -1 without.
func endOfHead(b []byte) int {
	lf, crlf := bytes.Index(b, []byte("\n\n")), bytes.Index(b, []byte("\n\r\n"))
	switch {
	case crlf >= 0 && (lf < 0 || crlf < lf):
		return crlf + 3
	case lf >= 0:
		return lf + 2
	}
	return -1
}

func (c *conn) parseHead(block []byte) (response, error) {
	line, rest, _ := bytes.Cut(block, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' {
		return response{}, malformed("not HTTP/1.1: %q", line[:min(len(line), 40)])
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return response{}, malformed("status %q", line[9:12])
	}
	a := response{status: status, body: c}
	c.left, c.chunked, c.inChunks, c.ended = -1, false, false, false
	c.keep = line[7] == '1'
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if c.left, err = strconv.ParseInt(string(value), 10, 64); err != nil || c.left < 0 {
				return response{}, malformed("content-length %q", value)
			}
		case is(name, "transfer-encoding"):
			c.chunked = is(value, "chunked")
		case is(name, "connection"):
			c.keep = c.keep && !is(value, "close")
		case is(name, "content-encoding"):
			if !is(value, "identity") && len(value) > 0 {
				return response{}, malformed("content-encoding %q, which was not asked for", value)
			}
		case is(name, "content-type"):
			a.stream = hasPrefixFold(value, "text/event-stream")
		}
	}
	switch {
	case c.chunked:
		c.left = 0
	case c.left < 0:
		c.keep = false
	}
	if status == 204 || status == 304 || status < 200 {
		c.left, c.chunked = 0, false
	}
	return a, nil
}

func is(b []byte, word string) bool { return bytes.EqualFold(b, []byte(word)) }

func hasPrefixFold(b []byte, lower string) bool {
	return len(b) >= len(lower) && bytes.EqualFold(b[:len(lower)], []byte(lower))
}

// next implements body.
func (c *conn) next() ([]byte, time.Time, error) {
	for {
		if c.left == 0 {
			if err := c.nextChunk(); err != nil {
				return nil, c.at, err
			}
		}
		if c.r < c.w {
			n := c.w - c.r
			if c.left >= 0 {
				n = int(min(int64(n), c.left))
				c.left -= int64(n)
			}
			span := c.buf[c.r : c.r+n]
			c.r += n
			return span, c.at, nil
		}
		if err := c.fill(); err != nil {
			if err == io.EOF && c.left < 0 {
				c.ended = true
				return nil, c.at, io.EOF
			}
			return nil, c.at, cutShort(err)
		}
	}
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

// line reads one short line of the chunked framing.
func (c *conn) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(c.buf[c.r:c.w], '\n'); i >= 0 {
			line := c.buf[c.r : c.r+i]
			c.r += i + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if c.w-c.r > maxChunkLine {
			return nil, malformed("endless line between chunks")
		}
		if err := c.fill(); err != nil {
			return nil, cutShort(err)
		}
	}
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
	if c.ended && c.keep && c.r == c.w {
		c.pool.put(c)
		return
	}
	c.drop()
}
