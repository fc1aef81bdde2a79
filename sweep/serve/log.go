package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Outcome is how a reply ended, as the server knows it.
type Outcome string

// The ways in which a reply ends.
const (
	outcomeOK      Outcome = "ok"
	outcomeLeft    Outcome = "client left"
	outcomeFault   Outcome = "fault"
	outcomeRefused Outcome = "refused"
	outcomeStopped Outcome = "server stopped"
)

// LogStart is the first line of an emission log. Both values are the zero of all
// times in it.
type LogStart struct {
	// UnixNS is the wall clock, MonotonicNS CLOCK_MONOTONIC, by which a client
	// on the same machine can compare its own times without a step; 0 where
	// there is none.
	UnixNS      int64 `json:"start_unix_ns"`
	MonotonicNS int64 `json:"start_monotonic_ns"`
}

// Emission is a line of the emission log: one reply, with times in nanoseconds
// since the server started.
type Emission struct {
	// ID is the one that the client reads; it ends with what the client sent as
	// X-Request-Id.
	ID string `json:"id"`
	// Arrived is when the last byte of the request had been read.
	Arrived int64 `json:"arrived_ns"`
	// Prompt and Asked count tokens: of the prompt, and of the output that was
	// wanted.
	Prompt int `json:"prompt"`
	Asked  int `json:"asked"`
	// Cached counts prompt tokens that the prefix cache held.
	Cached  int     `json:"cached"`
	Outcome Outcome `json:"outcome"`
	Fault   string  `json:"fault,omitempty"`
	// Blocked counts writes that the connection did not take at once: the
	// tokens in them left later than it says here.
	Blocked int `json:"blocked,omitempty"`
	// Due is when each token should have left, Left when it was handed to the
	// kernel. Tokens that were meant to share an event and were never sent have
	// no Left.
	Due  []int64 `json:"due_ns"`
	Left []int64 `json:"left_ns"`
}

func (r *reply) emission(outcome Outcome) Emission {
	e := Emission{
		ID: r.frames.id, Arrived: int64(r.arrived), Prompt: len(r.ask.prompt), Asked: r.ask.output, Cached: max(r.frames.cached, 0),
		Outcome: outcome, Blocked: r.blocked, Due: nanoseconds(r.due), Left: nanoseconds(r.left),
	}
	if r.fault.Kind != "" {
		e.Fault = r.fault.String()
	}
	return e
}

func nanoseconds(times []time.Duration) []int64 {
	n := make([]int64, len(times))
	for i, t := range times {
		n[i] = int64(t)
	}
	return n
}

// emissionLog writes the log from a goroutine of its own, so that a slow disk
// delays no token.
type emissionLog struct {
	mu     sync.Mutex
	queue  []Emission
	closed bool
	signal chan struct{}
	done   chan struct{}
	err    error
}

// startLog begins a log; nil writes none.
func startLog(w io.Writer, start LogStart) *emissionLog {
	if w == nil {
		return nil
	}
	l := &emissionLog{signal: make(chan struct{}, 1), done: make(chan struct{})}
	go l.write(w, start)
	return l
}

func (l *emissionLog) add(e Emission) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.queue = append(l.queue, e)
	l.mu.Unlock()
	l.wake()
}

func (l *emissionLog) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *emissionLog) write(w io.Writer, start LogStart) {
	defer close(l.done)
	b := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(b)
	err := enc.Encode(start)
	for closed := false; !closed; {
		<-l.signal
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		closed = l.closed
		l.mu.Unlock()
		for i := range queue {
			err = errors.Join(err, enc.Encode(&queue[i]))
		}
		err = errors.Join(err, b.Flush())
		if err != nil {
			l.err = fmt.Errorf("write emission log: %w", err)
			return
		}
	}
}

// close writes what is left and returns the first error.
func (l *emissionLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake()
	<-l.done
	return l.err
}
