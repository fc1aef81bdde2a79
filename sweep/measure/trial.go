// Package measure says what was run, what was seen, and whether it meets the
// objective.
package measure

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"planner/internal/note"
	"planner/sweep/workload"
)

// Trial holds the conditions of one measurement: enough to run it again.
type Trial struct {
	// Number counts the trials of a run from 1, in the order of proposal.
	Number   int                `json:"trial"` // its number in the run
	Knobs    Knobs              `json:"knobs"`
	Workload *workload.Workload `json:"workload"`
	// Rate is the offered load in requests per second (open loop). It is zero, null in
	// JSON, in a closed loop and for a trace on its own clock.
	Rate float64 `json:"rate_per_s"`
	// Concurrency slots start Requests requests in all (closed loop). Without, it is
	// null in JSON.
	Concurrency int `json:"concurrency"`
	Requests    int `json:"requests_planned,omitempty"`
	// Warmup precedes the window and is not counted; Cooldown is load behind
	// the window so that its last requests still see the full load.
	Warmup   time.Duration `json:"warm_up_s"`
	Window   time.Duration `json:"window_s"`    // how long requests arrive
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
		return t.Workload.Slots(t.Requests, t.Seed)
	}
	return t.Workload.Schedule(t.Rate, t.Warmup+t.Window+t.Cooldown, t.Seed)
}

func (t *Trial) replayed() bool { return t.Workload != nil && t.Workload.Replayed() }

// class is the index of a class among those of the workload, -1 if it is none.
func (t *Trial) class(name string) int {
	if t.Workload == nil {
		return -1
	}
	return slices.Index(t.Workload.Names(), name)
}

// Bounds reports whether a bound is one on this request.
func (t *Trial) Bounds(b Bound, r *Record) bool { return b.Class == "" || t.class(b.Class) == r.Class }

// Rejection is a set of knobs that cannot run, or that was not chosen, and why. As
// an error, of type *Rejection, it says that an engine cannot run with the knobs.
type Rejection struct {
	Knobs  Knobs       `json:"knobs"`
	Reason note.Reason `json:",embed"`
}

// MostMemory returns the first of those rejections that leave the engine most memory: what is
// too little there is too little for all that have the same reason.
func MostMemory(alike []Rejection) Rejection {
	return slices.MaxFunc(alike, func(a, b Rejection) int {
		return cmp.Compare(a.Knobs.GPUMemoryUtilization, b.Knobs.GPUMemoryUtilization)
	})
}

// Error gives the reason.
func (r *Rejection) Error() string { return r.Reason.Text }

// Broke reports whether a reason is that an engine failed, which is no word on any
// limit: it may meet them all once it runs.
func Broke(why note.Reason) bool {
	switch why.Note.Kind {
	case note.EngineFailed, note.EngineAlike, note.EngineCondemned, note.NotPlaced:
		return true
	}
	return false
}

// IsRejection unwraps the error of knobs that cannot run.
func IsRejection(err error) (*Rejection, bool) {
	var r *Rejection
	ok := errors.As(err, &r)
	return r, ok
}
