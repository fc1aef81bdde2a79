package design

import (
	"context"
	"errors"
	"fmt"
	"time"

	"planner/sweep"
	"planner/sweep/measure"
)

// PointStudy is the study of the commands simulate and bench: one load point.
type PointStudy struct {
	sweep.Chain
	// Trial is the load point.
	Trial measure.Trial

	probe bool
}

// NewPoint prepares a load point. With probe, its warm-up is derived from the latency of single
// requests, unless it is a closed loop.
func NewPoint(t measure.Trial, probe bool) *PointStudy {
	p := &PointStudy{Trial: t, probe: probe && !t.Closed()}
	p.Stages = []func() sweep.Source{func() sweep.Source { return &sweep.List{Trials: []measure.Trial{p.Trial}} }}
	return p
}

// mostRequests is how many requests one trial may have: its whole schedule is drawn before it
// begins, and takes some 100 bytes per request.
const mostRequests = 20_000_000

// Bounded refuses a load, in requests per second, of more requests than memory holds.
func Bounded(rate float64, span time.Duration) error {
	if n := rate * span.Seconds(); n > mostRequests {
		return fmt.Errorf("--rate, --duration: %.4g requests/s for %v are %.3g requests, want at most %d in one trial", rate, span, n, mostRequests)
	}
	return nil
}

// BoundedSlots refuses a closed loop of more requests than memory holds.
func BoundedSlots(slots, requests int) error {
	if slots > mostRequests || requests > mostRequests {
		return fmt.Errorf("--concurrency, --requests: %d slots and %d requests, want at most %d in one trial", slots, requests, mostRequests)
	}
	return nil
}

// The warm-up of a measured trial is derived from probeRequests requests, one after another, and is
// at least leastWarmup if the window is.
const (
	probeRequests = 3
	leastWarmup   = 15 * time.Second
)

// Prepare settles the warm-up: that of the trial if an earlier process measured it, or else one
// derived from how long single requests take, but no shorter than the one configured. An engine
// that cannot be started is left to the trial to reject.
func (p *PointStudy) Prepare(ctx context.Context, run sweep.Runner, held []measure.Measurement) error {
	if len(held) > 0 {
		p.Trial.Warmup = held[0].Trial.Warmup
		return nil
	}
	if !p.probe {
		return nil
	}
	probe := measure.Trial{Knobs: p.Trial.Knobs, Workload: p.Trial.Workload, Concurrency: 1, Requests: probeRequests, Seed: p.Trial.Seed + 1}
	o, err := run(ctx, probe)
	_, rejected := errors.AsType[*measure.Rejection](err)
	switch {
	case rejected:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w in the probe of the server", sweep.ErrInterrupted)
	case err != nil:
		return fmt.Errorf("probe the server: %w", err)
	}
	longest := measure.Never
	for i := range o.Records {
		if d, ok := o.Records[i].E2E(); ok {
			longest = max(longest, d)
		}
	}
	if n := len(o.Records); n > 0 && longest < 0 {
		return fmt.Errorf("probe the server: each of %d requests failed, the last one: %v %s", n, o.Records[n-1].Outcome, o.Records[n-1].Detail)
	}
	p.Trial.Warmup = max(p.Trial.Warmup, min(max(longest*3/2, leastWarmup), p.Trial.Window))
	return nil
}

// Answer returns the measurement; its verdict decides the state.
func (p *PointStudy) Answer() (sweep.Answer, error) {
	if len(p.Seen) == 0 {
		return sweep.Answer{}, nil
	}
	m := p.Seen[0]
	a := sweep.Answer{State: sweep.Done, Value: m}
	switch {
	case measure.Broke(m.Rejected), m.Broken():
		a.State = sweep.Failed
	case !m.Ran() || m.Verdict != nil && m.Verdict.State == measure.Missed:
		a.State = sweep.Infeasible
	case m.Verdict != nil && m.Verdict.State == measure.Unsure:
		a.State = sweep.Undecided
	}
	return a, nil
}
