package serve

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"
)

// The server speaks HTTP/1.1 on its own and takes only the reading of requests
// from net/http: the desk must be able to write an event with one system call and
// without ever waiting for a client, and a response writer allows neither. A
// connection has one goroutine. While a reply is written by the desk it reads
// ahead, and so sees at once when the client leaves.
type client struct {
	server  *serving
	conn    net.Conn
	out     *outlet
	limited *io.LimitedReader
	reader  *bufio.Reader
}

const (
	maxHead = 1 << 20
	maxBody = 64 << 20
)

func newClient(s *serving, conn net.Conn) *client {
	c := &client{server: s, conn: conn, out: newOutlet(conn)}
	c.limited = &io.LimitedReader{R: conn, N: math.MaxInt64}
	c.reader = bufio.NewReaderSize(c.limited, 16<<10)
	return c
}

// converse answers one request after another until one side has had enough.
func (c *client) converse() {
	defer c.out.flush() // the closed connection ends what still writes
	defer c.conn.Close()
	for {
		c.limited.N = maxHead
		req, err := http.ReadRequest(c.reader)
		if err != nil {
			if c.limited.N <= 0 {
				c.say(answer(http.StatusRequestHeaderFieldsTooLarge, textType, false, nil, ""))
			} else if !errors.Is(err, io.EOF) && !isNetwork(err) {
				c.say(answer(http.StatusBadRequest, textType, false, []byte("malformed request: "+err.Error()+"\n"), ""))
			}
			return
		}
		c.limited.N = math.MaxInt64
		body, err := c.body(req)
		arrived := c.server.desk.now()
		keep := !req.Close && req.ProtoAtLeast(1, 1)
		switch {
		case errors.Is(err, errTooLarge):
			c.say(answer(http.StatusRequestEntityTooLarge, textType, false, []byte(err.Error()+"\n"), ""))
			return
		case err != nil:
			return
		}
		if !c.answer(req, body, arrived, keep) || !keep {
			return
		}
	}
}

func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF)
}

var errTooLarge = errors.New("request body larger than 64 MiB")

// body reads all of a request's body.
func (c *client) body(req *http.Request) ([]byte, error) {
	if req.ContentLength > maxBody {
		return nil, errTooLarge
	}
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") && req.ContentLength != 0 {
		c.say([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	if n := req.ContentLength; n >= 0 {
		b := make([]byte, n)
		_, err := io.ReadFull(req.Body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = errTooLarge
	}
	return b, err
}

// say writes an answer that is complete. A client that is gone is noticed when
// the next request is read.
func (c *client) say(b []byte) { _, _ = c.conn.Write(b) }

// generate answers a request for tokens. It reports whether the connection may be
// used again.
func (c *client) generate(req *http.Request, body []byte, arrived time.Duration, chat, keep bool) bool {
	s := c.server
	a, err := s.terms.parseAsk(body, chat)
	if err != nil {
		return c.refuse(err, keep)
	}
	number := s.asked.Add(1)
	fault := drawFault(s.config.Faults, s.config.Seed, number)
	if text := req.Header.Get("X-Planner-Fault"); text != "" {
		if fault, err = ParseFault(text); err != nil {
			return c.refuse(badRequest("X-Planner-Fault", "%v", err), keep)
		}
	}
	if fault.Kind == FaultShort {
		a.output = max(1, a.output-max(fault.Tokens, 1))
	}
	r := s.newReply(c, a, number, req.Header.Get("X-Request-Id"), arrived)
	r.fault = fault
	r.frames.chunked, r.frames.keepAlive = req.ProtoAtLeast(1, 1), keep
	switch fault.Kind {
	case FaultError, FaultEmpty, FaultHang, FaultCrash, FaultRefuse:
		if done, again := c.fail(r, keep); done {
			return again
		}
	}
	o := order{reply: r, request: s.describe(a), at: arrived}
	if !s.desk.post(o) {
		return false
	}
	_, err = c.reader.Peek(1) // the next request, or the end
	if err != nil {
		s.desk.post(order{reply: r, cancel: true, at: s.desk.now()})
	}
	<-r.done
	c.out.flush()
	return err == nil
}

// fail carries out a fault that has no part in the engine. done says that the
// request has been dealt with.
func (c *client) fail(r *reply, keep bool) (done, again bool) {
	s := c.server
	switch r.fault.Kind {
	case FaultRefuse:
		s.closePort(r.fault.Delay)
		return false, false
	case FaultError:
		e := &apiError{status: r.fault.Status, message: "simulated failure"}
		extra := ""
		if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
			extra = "\r\nRetry-After: 1"
		}
		c.say(answer(e.status, jsonType, keep, e.body(), extra))
	case FaultEmpty:
		if !r.ask.stream {
			c.say(answer(http.StatusOK, jsonType, keep, nil, ""))
		} else {
			c.say(r.frames.last(r.frames.head(nil)))
		}
	case FaultHang:
		_, err := c.reader.Peek(1)
		keep = keep && err == nil
	case FaultCrash:
		s.crash()
		keep = false
	}
	s.desk.log.add(r.emission(outcomeFault))
	return true, keep
}

func (c *client) refuse(err error, keep bool) bool {
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{status: http.StatusInternalServerError, message: err.Error()}
	}
	c.say(answer(e.status, jsonType, keep, e.body(), ""))
	return true
}
