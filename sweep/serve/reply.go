package serve

import (
	"net"
	"time"
)

// reply is the answer to one request while it is made. It belongs to the desk
// from the order to the end, which closes done.
type reply struct {
	ask     *ask
	frames  *frames
	out     *outlet
	fault   Fault
	arrived time.Duration
	// request is the engine's number, -1 when it has none; told is how many
	// tokens the engine has told of.
	request, told int
	// delay is how much later than told the tokens leave.
	delay time.Duration
	// sent counts the tokens in events. Of these, due holds when the engine
	// meant them to leave and left when they did; due may be ahead, by tokens
	// that wait to share an event.
	sent      int
	due, left []time.Duration
	// blocked counts tokens that the connection did not take at once.
	blocked int
	began   bool
	ended   bool
	done    chan struct{}
}

// begin appends what comes before the first event.
func (r *reply) begin(b []byte) []byte {
	if r.began {
		return b
	}
	r.began = true
	return r.frames.head(b)
}

// stop says whether a fault ends the stream behind so many tokens.
func (r *reply) stop(tokens int) bool {
	switch r.fault.Kind {
	case FaultCut, FaultReset, FaultTruncate, FaultEvent:
		return tokens >= r.fault.at(r.ask.output)
	}
	return false
}

// delayed adds the delay that a fault puts before the next token.
func (r *reply) delayed() time.Duration {
	switch {
	case r.fault.Kind == FaultSlow && r.told == 0,
		r.fault.Kind == FaultStall && r.told > 0 && r.told == r.fault.at(r.ask.output):
		r.delay += r.fault.Delay
	}
	return r.delay
}

// events appends the tokens that were not sent yet.
func (r *reply) events(b []byte) []byte {
	f := r.frames
	if r.sent == 0 && r.ask.chat && r.fault.Kind != FaultRole {
		b = f.role(b)
	}
	b = f.tokens(b, r.sent, len(r.due))
	if n := r.fault.at(r.ask.output); r.fault.Kind == FaultMalformed && r.sent < n && n <= len(r.due) {
		b = f.frame(b, []byte("data: {\"id\":\"broken\",\"choices\":[{\"ind\n\n"))
	}
	return b
}

// ending appends what ends a stream.
func (r *reply) ending(b []byte) []byte {
	if r.ask.usage {
		b = r.frames.usage(b, len(r.due))
	}
	return r.frames.last(r.frames.done(b))
}

// broken appends what a fault ends a stream with.
func (r *reply) broken(b []byte) []byte {
	switch r.fault.Kind {
	case FaultEvent:
		failure := append([]byte("data: "), simulatedFailure.body()...)
		b = r.frames.frame(b, append(failure, "\n\n"...))
		return r.frames.last(r.frames.done(b))
	case FaultTruncate:
		return r.frames.last(b)
	}
	return b
}

var simulatedFailure = &apiError{status: 500, message: "simulated failure"}

// whole is the answer of a request that does not stream.
func (r *reply) whole() []byte {
	body := r.frames.whole(len(r.due))
	keep := r.frames.keepAlive
	switch r.fault.Kind {
	case FaultMalformed:
		return answer(200, jsonType, keep, body[:len(body)/2], "")
	case FaultEvent:
		return answer(200, jsonType, keep, simulatedFailure.body(), "")
	case FaultCut, FaultReset, FaultTruncate:
		return answer(200, jsonType, keep, body, "")[:len(body)/2]
	}
	return answer(200, jsonType, keep, body, "")
}

// hangUp makes the connection's goroutine see that the connection is at its end:
// at once, without what was kept, if the reply was broken off.
func (r *reply) hangUp(abrupt bool) {
	conn := r.out.conn
	if r.fault.Kind == FaultReset && abrupt {
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // without it the client sees an end instead of a reset
		}
	}
	if abrupt {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection has ended as well
}
