package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"
)

// session is one connection of a client. The server implements HTTP/1.1 itself and uses net/http
// only to parse requests: the loop must be able to write an event with one system call and without
// ever waiting for a client, and a ResponseWriter allows neither. A session has one goroutine.
// While the loop writes a reply, it reads ahead, and so notices at once when the client leaves.
type session struct {
	server  *service
	conn    *net.TCPConn
	out     *sendBuffer
	limited *io.LimitedReader
	reader  *bufio.Reader

	// The request that is being answered, and when its last byte had been read. held is how many
	// bytes its body takes of the limit on all bodies.
	req     *http.Request
	body    []byte
	held    int64
	arrived time.Duration
	// keep: the connection is used again after it.
	keep bool
}

const (
	maxHead = 1 << 20
	maxBody = 64 << 20
)

// clientLimits bound the times in which a client must send another request, then its head and then
// its body, and the bytes of all bodies that have not been parsed yet.
type clientLimits struct {
	idle, head, body time.Duration
	bodies           int64
}

// usualLimits are more than a well-behaved client needs.
var usualLimits = clientLimits{idle: 2 * time.Minute, head: 10 * time.Second, body: time.Minute, bodies: 256 << 20}

func newSession(v *service, conn *net.TCPConn) (*session, error) {
	out, err := newSendBuffer(conn)
	s := &session{server: v, conn: conn, out: out, limited: &io.LimitedReader{R: conn}}
	s.reader = bufio.NewReaderSize(s.limited, 16<<10)
	return s, err
}

func (s *session) run() {
	defer s.out.flush() // the closed connection ends a goroutine that still writes
	defer s.conn.Close()
	defer s.forget()
	for s.next() {
		s.route()
		s.forget()
		if !s.keep {
			return
		}
	}
}

// next reads the next request; false if there is none to answer.
func (s *session) next() bool {
	s.limited.N = maxHead
	s.within(s.server.limits.idle)
	if _, err := s.reader.Peek(1); err != nil {
		return false // the client wants nothing more
	}
	s.within(s.server.limits.head)
	req, err := http.ReadRequest(s.reader)
	var network net.Error
	switch {
	case err == nil:
	case s.limited.N > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)):
		return false // the client is gone
	default:
		s.keep = false
		s.respond(http.StatusBadRequest, textType, []byte("malformed request: "+err.Error()+"\n"))
		return false
	}
	s.limited.N = math.MaxInt64
	s.req, s.keep = req, !req.Close && req.ProtoAtLeast(1, 1)
	s.within(s.server.limits.body)
	s.body, err = s.readBody()
	switch {
	case errors.Is(err, errTooLarge):
		s.keep = false
		s.respond(http.StatusRequestEntityTooLarge, textType, []byte(err.Error()+"\n"))
	case errors.Is(err, errTooMany):
		s.keep = false
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, maxBody)) // otherwise the client would miss the answer
		s.respond(http.StatusServiceUnavailable, textType, []byte(err.Error()+"\n"))
	}
	s.within(0)
	s.arrived = s.server.loop.now()
	return err == nil
}

// within bounds the time of reads from now on; 0 lifts the bound.
func (s *session) within(limit time.Duration) {
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	_ = s.conn.SetReadDeadline(end) // a closed connection is noticed anyway
}

var (
	errTooLarge = errors.New("request body larger than 64 MiB")
	errTooMany  = errors.New("the bodies of all requests are larger than there is memory for")
)

// Read reads the body of the request and counts it against the limit on all bodies. Beyond that it
// releases all that it took: no other request should be refused because of one that is.
func (s *session) Read(p []byte) (int, error) {
	n, err := s.req.Body.Read(p)
	s.held += int64(n)
	if s.server.bodies.Add(int64(n)) > s.server.limits.bodies {
		s.server.bodies.Add(-s.held)
		s.held = 0
		return n, errTooMany
	}
	return n, err
}

// forget releases the memory of the body.
func (s *session) forget() {
	s.server.bodies.Add(-s.held)
	s.body, s.held = nil, 0
}

func (s *session) readBody() ([]byte, error) {
	if s.req.ContentLength > maxBody {
		return nil, errTooLarge
	}
	if strings.EqualFold(s.req.Header.Get("Expect"), "100-continue") && s.req.ContentLength != 0 {
		s.say([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	var b bytes.Buffer
	b.Grow(bytes.MinRead + int(min(max(s.req.ContentLength, 0), maxHead)))
	_, err := b.ReadFrom(io.LimitReader(s, maxBody+1))
	if err == nil && b.Len() > maxBody {
		err = errTooLarge
	}
	return b.Bytes(), err
}

// say writes a complete answer. That a client is gone is noticed when the next request is read.
func (s *session) say(b []byte) { _, _ = s.conn.Write(b) }

func (s *session) respond(status int, contentType string, body []byte) {
	s.say(answer(status, contentType, s.keep, body))
}

func (s *session) respondJSON(v any) { s.respond(http.StatusOK, jsonType, marshal(v)) }

func (s *session) refuse(err error) {
	e := &apiError{status: http.StatusInternalServerError, message: err.Error()}
	errors.As(err, &e)
	s.respond(e.status, jsonType, e.body())
}

func (s *session) complete(chat bool) {
	v := s.server
	c, err := v.parseRequest(s.body, chat)
	s.forget()
	if err != nil {
		s.refuse(err)
		return
	}
	number := v.requests.Add(1)
	fault := drawFault(v.Faults, v.Seed, number)
	if text := s.req.Header.Get("X-Planner-Fault"); text != "" {
		if fault, err = ParseFault(text); err != nil {
			s.refuse(badRequest("X-Planner-Fault", "%v", err))
			return
		}
	}
	if fault.kind == faultShort {
		c.output = max(1, c.output-max(fault.tokens, 1))
	}
	r := v.newReply(s, c, number)
	r.fault, r.Fault = fault, fault.text
	if s.fail(r) {
		r.Outcome = outcomeFault
		v.loop.log.add(r.Emission)
		return
	}
	if !v.loop.submit(r) {
		s.keep = false
		return
	}
	if _, err := s.reader.Peek(1); err != nil { // returns on the next request, or the end
		v.loop.abandon(r)
		s.keep = false
	}
	<-r.done
	s.out.flush()
}

// fail carries out a fault that does not involve the engine, and reports whether the request has
// been dealt with.
func (s *session) fail(r *reply) bool {
	switch r.fault.kind {
	case faultError:
		e := &apiError{status: r.fault.status, message: "simulated failure"}
		s.respond(e.status, jsonType, e.body())
	case faultEmpty:
		if r.Stream {
			s.say(r.last(r.head(nil)))
		} else {
			s.respond(http.StatusOK, jsonType, nil)
		}
	case faultHang:
		_, err := s.reader.Peek(1)
		s.keep = s.keep && err == nil
	case faultRefuse:
		s.server.closePort(r.fault.delay)
		return false
	default:
		return false
	}
	return true
}
