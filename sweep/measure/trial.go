// Package measure holds what was run and what was seen, and judges whether it meets the objective.
package measure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/workload"
)

// Trial holds the conditions of one measurement: enough to run it again.
type Trial struct {
	// Number counts the trials of a run from 1, in the order of proposal.
	Number   int                `json:"trial"`
	Knobs    Knobs              `json:"knobs"`
	Workload *workload.Workload `json:"workload"`
	// Rate is the offered load in requests per second (open loop). It is zero, null in
	// JSON, in a closed loop and for a trace on its own clock.
	Rate float64 `json:"rate_per_s"`
	// Concurrency slots start Requests requests in all (closed loop). In an open loop it is 0, null
	// in JSON.
	Concurrency int `json:"concurrency"`
	Requests    int `json:"requests_planned,omitempty"`
	// Staggered shortens the answers of a closed loop's first requests, so that its slots do not go on in step: whether
	// requests of one length that end together meet in a prompt's step again is decided by a millisecond. The first
	// requests are not measured.
	Staggered bool `json:"staggered,omitempty"`
	// Warmup precedes the window and is not counted; Cooldown is load after the window, so that its
	// last requests still see the full load.
	Warmup   time.Duration `json:"warm_up_s"`
	Window   time.Duration `json:"window_s"`    // the time whose requests are measured
	Cooldown time.Duration `json:"cool_down_s"` // load after the window, not counted
	// Seed drives every draw of the trial.
	Seed uint64 `json:"seed"`
	// Objective is judged, and lets a hopeless trial end early. It may be empty.
	Objective SLO `json:"slo"`
	// Limit ends a trial that takes longer; 0 is none.
	Limit time.Duration `json:"-"`
	// Whole asks that the trial be measured to its end, however hopeless it
	// looks.
	Whole bool `json:"-"`
	// Why says what the trial was proposed for, for displays and reports.
	Why string `json:"why,omitempty"`
}

// Closed reports whether the trial is a closed loop.
func (t *Trial) Closed() bool { return t.Concurrency > 0 }

// Schedule draws the whole schedule of the trial, warm-up and cool-down
// included.
func (t *Trial) Schedule() []workload.Request {
	if t.Closed() {
		all := t.Workload.Slots(t.Requests, t.Seed)
		for i := range min(t.Concurrency, len(all)) {
			if t.Staggered {
				all[i].Output = max(2, all[i].Output*(i+1)/t.Concurrency)
			}
		}
		return all
	}
	return t.Workload.Schedule(t.Rate, t.Warmup+t.Window+t.Cooldown, t.Seed)
}

// Measures reports whether a request of a closed loop is measured.
func (t *Trial) Measures(r *Record) bool { return !t.Staggered || r.ID >= t.Concurrency }

func (t *Trial) replayed() bool { return t.Workload != nil && t.Workload.Replayed() }

// class is the index of a class among those of the workload, -1 if it is none.
func (t *Trial) class(name string) int {
	if t.Workload == nil {
		return -1
	}
	return slices.Index(t.Workload.Names(), name)
}

// Bounds reports whether a bound applies to this request.
func (t *Trial) Bounds(b Bound, r *Record) bool { return b.Class == "" || t.class(b.Class) == r.Class }

// Rejection is a set of knobs that cannot run, or that was not chosen, and why. As
// an error, of type *Rejection, it says that an engine cannot run with the knobs.
type Rejection struct {
	Knobs  Knobs       `json:"knobs"`
	Reason note.Reason `json:",embed"`
}

// MostMemory returns the first of those rejections that leave the engine the most memory: what is
// too little there is too little for all that have the same reason.
func MostMemory(alike []Rejection) Rejection {
	return slices.MaxFunc(alike, func(a, b Rejection) int {
		return cmp.Compare(a.Knobs.GPUMemoryUtilization, b.Knobs.GPUMemoryUtilization)
	})
}

// Error gives the reason.
func (r *Rejection) Error() string { return r.Reason.Text }

// Broke reports whether a reason is that an engine failed, which says nothing about limits: it may
// meet them all once it runs.
func Broke(why note.Reason) bool {
	switch why.Note.Kind {
	case note.EngineFailed, note.EngineAlike, note.EngineCondemned, note.NotPlaced:
		return true
	}
	return false
}

// Outcome says how a request ended. The zero value is InFlight: a request that
// nobody has seen end.
type Outcome int

// The outcomes of a request. All but OK and InFlight count as beyond every limit on single
// requests.
const (
	InFlight    Outcome = iota // the trial ended before the request did
	OK                         // the request ended well, with all of its tokens
	Timeout                    // the client gave up
	Refused                    // the connection was refused
	Reset                      // the connection broke
	HTTPStatus                 // the server answered with a status other than 200
	Malformed                  // the response could not be read
	Truncated                  // the stream ended without a finish
	Empty                      // a good status without a token
	WrongLength                // fewer or more tokens than asked for
	StreamError                // an error event within a stream of status 200
	Dropped                    // the client did not send the request
	Rejected                   // the engine can never serve the request (longer than its limits)
)

var outcomeNames = []string{"in_flight", "ok", "timeout", "refused", "reset", "http_status", "malformed",
	"truncated", "empty", "wrong_length", "stream_error", "client_dropped", "rejected"}

// String is the outcome's name in files and reports.
func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's name.
func (o *Outcome) UnmarshalText(b []byte) error { return wire.ReadName(o, outcomeNames, b) }

// broken reports whether the outcome is something that a server did, other than being slow.
func (o Outcome) broken() bool {
	switch o {
	case Refused, Reset, HTTPStatus, Malformed, Truncated, Empty, WrongLength, StreamError:
		return true
	}
	return false
}

// Record is what was seen of one request. Times count from the start of the
// trial; a time that never came is negative.
type Record struct {
	ID    int `json:"id"`
	Class int `json:"class,omitempty"`
	// Due is the intended send time, from which TTFT and E2E count: in a closed loop the moment the
	// slot became free.
	Due time.Duration `json:"due_ns"`
	// Sent is when the request left the client.
	Sent time.Duration `json:"sent_ns"`
	// First and Last are when the first and the last token arrived.
	First time.Duration `json:"first_ns"`
	Last  time.Duration `json:"last_ns"`
	// Prompt, Cached and Output count tokens: those of the prompt, those of them found in the
	// prefix cache, and those generated.
	Prompt int `json:"prompt_tokens"`
	Cached int `json:"cached_tokens,omitempty"`
	Output int `json:"output_tokens"`
	// Asked is how many tokens were asked for; 0 if unknown. It gives a lower bound on the time per
	// token of a request that is still in flight.
	Asked   int     `json:"asked_tokens,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Detail adds to a failure, such as the HTTP status.
	Detail string `json:"detail,omitempty"`
}

// Status is the HTTP status of a request that failed by it; 0 for all others.
func (r *Record) Status() int {
	if r.Outcome != HTTPStatus {
		return 0
	}
	text, _, _ := strings.Cut(r.Detail, ":")
	status, _ := strconv.Atoi(text)
	return status
}

// Broken reports whether a request failed by something that the server did, other than being slow.
func (r *Record) Broken() bool { return r.Outcome.broken() }

// Never marks a time that never came.
const Never time.Duration = -1

// TTFT is the time to first token from the intended time; false if no token
// came.
func (r *Record) TTFT() (time.Duration, bool) {
	return r.First - r.Due, r.First >= 0
}

// E2E is the time from the intended time to the last token of a request that
// ended well.
func (r *Record) E2E() (time.Duration, bool) {
	return r.Last - r.Due, r.Outcome == OK
}

// TPOT is the time per output token after the first one: (last - first) / (tokens - 1), for
// requests of two tokens and more that ended well.
func (r *Record) TPOT() (time.Duration, bool) {
	if r.Outcome != OK || r.Output < 2 || r.First < 0 {
		return 0, false
	}
	return (r.Last - r.First) / time.Duration(r.Output-1), true
}

func (r *Record) open() bool { return r.Outcome == InFlight }

func (r *Record) failed() bool { return r.Outcome != OK && r.Outcome != InFlight }

// first is when the first token was seen: an answer that is not streamed shows all of its tokens at
// once.
func (r *Record) first() time.Duration {
	if r.First < 0 && r.Outcome == OK {
		return r.Last
	}
	return r.First
}

// Latency returns a latency of a request, as far as it is known at the time end. For a request in
// flight that has not reached the event it is open: a lower bound. A failed request has none.
func (r *Record) Latency(m Metric, end time.Duration) (v time.Duration, open, ok bool) {
	if r.failed() {
		return 0, false, false
	}
	row := m.row()
	if row.value == nil {
		return 0, false, false
	}
	if v, ok = row.value(r); ok || r.Outcome != InFlight {
		return v, false, ok
	}
	v, ok = row.open(r, end)
	return v, ok, ok
}

func (r *Record) age(now time.Duration) (time.Duration, bool) { return now - r.Due, true }

func (r *Record) openTPOT(now time.Duration) (time.Duration, bool) {
	if r.First < 0 || r.Asked < 2 {
		return 0, false
	}
	return (now - r.First) / time.Duration(r.Asked-1), true
}
