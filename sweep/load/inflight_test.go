package load

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"planner/sweep/measure"
)

// script is a connection that returns what it was given, in reads of a few bytes.
type script struct {
	net.Conn
	in   []byte
	step int
}

func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) Close() error                { return nil }

func (s *script) SetReadDeadline(time.Time) error { return nil }

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.step)], s.in)
	s.in = s.in[n:]
	return n, nil
}

// hear reads one scripted answer to a request for 4 tokens.
func hear(in []byte, step int) *inFlight {
	p := &connPool{ctx: context.Background()}
	c := newConn(&script{in: in, step: step}, p)
	f := &inFlight{}
	r, err := c.exchange(&message{})
	if err != nil {
		f.fail(err)
	} else {
		f.receive(r, 4, true)
		r.body.close()
	}
	f.record = f.outcome(4, true)
	return f
}

// FuzzAnswer: whatever a server sends, and however it arrives, it is read to an end, and read the
// same; and what is not a stream of tokens is a failure.
func FuzzAnswer(f *testing.F) {
	good := streamHead + tokensOf(4) + ending(8, 4)
	for i, s := range []string{good, streamHead + tokensOf(2), whole("503 No", "text/plain", "busy"), "HTTP/1.1 100 C\r\n\r\n" + good,
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + tokenEvent("a", 8, 1) + doneEvent} {
		f.Add([]byte(s), uint8(10*i))
	}
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		at := slices.Clone(in)
		one, all := hear(slices.Clone(in), int(step)+1), hear(at, 1<<20)
		if a, b := &one.answer, &all.answer; one.record.Outcome != all.record.Outcome || a.events != b.events || a.usage != b.usage {
			t.Fatalf("%q by %d: %+v (%v), at once %+v (%v)", in, int(step)+1, a, a.err, b, b.err)
		}
		if all.record.Outcome == measure.OK && all.answer.events == 0 {
			t.Fatalf("%q: good without a token", in)
		}
	})
}

// TestAnswerBytewise: how an answer is read does not depend on how its bytes are split into reads.
func TestAnswerBytewise(t *testing.T) {
	good := []byte(streamHead + tokensOf(4) + ending(8, 4))
	for step := 1; step < 600; step++ {
		g := hear(slices.Clone(good), step).answer
		if g.err != nil || g.events != 4 || g.usage.completion != 4 || !g.done {
			t.Fatalf("by %d: %+v, %v", step, g, g.err)
		}
	}
	// Requests are answered in order of the stamps: no token ahead of its read.
	g := hear(good, 100).answer
	if g.first.After(g.last) || time.Since(g.last) < 0 || (measure.Record{}).Outcome != measure.InFlight {
		t.Errorf("%v to %v", g.first, g.last)
	}
}
