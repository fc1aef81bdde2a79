package serve

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// The ways in which a reply ends, as the server sees it.
const (
	outcomeOK      = "ok"
	outcomeLeft    = "client left"
	outcomeFault   = "fault"
	outcomeRefused = "refused"
	outcomeStopped = "server stopped"
)

// LogStart is the first line of an emission log: the origin of all times in it, on two clocks.
type LogStart struct {
	// UnixNS is the wall clock, MonotonicNS is CLOCK_MONOTONIC, with which a client on the same
	// machine can compare its own times unaffected by clock steps; 0 where there is none.
	UnixNS      int64 `json:"start_unix_ns"`
	MonotonicNS int64 `json:"start_monotonic_ns"`
}

// Emission is a line of the emission log: one reply, with times in nanoseconds since the server
// started.
type Emission struct {
	// ID is the one that the client reads; it ends with what the client sent as X-Request-Id.
	ID string `json:"id"`
	// Arrived is when the last byte of the request had been read.
	Arrived time.Duration `json:"arrived_ns"`
	// Prompt and Asked count the tokens of the prompt and those that the output is to have.
	Prompt int `json:"prompt"`
	Asked  int `json:"asked"`
	// Cached counts the prompt tokens found in the prefix cache.
	Cached int `json:"cached"`
	// Outcome is how the reply ended, Fault what went wrong on purpose.
	Outcome string `json:"outcome"`
	Fault   string `json:"fault,omitempty"`
	// Blocked counts writes that the connection did not accept at once: the tokens in them left
	// later than Left says.
	Blocked int `json:"blocked,omitempty"`
	// Due is when each token should have left, Left when it was handed to the kernel.
	Due  []time.Duration `json:"due_ns"`
	Left []time.Duration `json:"left_ns"`
}

// emissionLog writes the log from its own goroutine, so that a slow disk delays no token.
type emissionLog struct {
	queue chan Emission
	err   chan error
}

// logBacklog is how many lines a slow disk may lag behind.
const logBacklog = 1 << 14

func startLog(w io.Writer, start LogStart) *emissionLog {
	if w == nil {
		return nil
	}
	l := &emissionLog{queue: make(chan Emission, logBacklog), err: make(chan error, 1)}
	go func() { l.err <- l.write(w, start) }()
	return l
}

func (l *emissionLog) add(e Emission) {
	if l != nil {
		l.queue <- e
	}
}

// write writes until the queue is closed; what follows an error is lost.
func (l *emissionLog) write(w io.Writer, start LogStart) error {
	b := bufio.NewWriterSize(w, 1<<16)
	lines := json.NewEncoder(b)
	err := lines.Encode(start)
	for e := range l.queue {
		if err == nil {
			err = lines.Encode(&e)
		}
		if err == nil && len(l.queue) == 0 {
			err = b.Flush()
		}
	}
	if err = cmp.Or(err, b.Flush()); err != nil {
		return fmt.Errorf("write emission log: %w", err)
	}
	return nil
}

// close writes what is left and returns the first error.
func (l *emissionLog) close() error {
	if l == nil {
		return nil
	}
	close(l.queue)
	return <-l.err
}
