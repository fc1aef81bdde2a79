package search

import (
	"fmt"
	"time"

	"planner/sweep/measure"
)

// OneAtATime changes one knob at a time: from the first candidate, or the
// default where it is one of them, it searches every value of the first knob in
// full, keeps the best, goes on with the second knob, and so on. It is cheap and
// easy to read, and blind to knobs that only help together.
type OneAtATime struct {
	cfg  RaceConfig
	base measure.Knobs
	// axes are the knobs in the order in which they are varied; axis is the one under
	// test, present its grid.
	axes     []measure.Knob
	axis     int
	present  *Grid
	searched map[measure.Knobs]Result
	order    []measure.Knobs
	failed   map[measure.Knobs]string
	trials   int
}

// NewOneAtATime starts a one-at-a-time search.
func NewOneAtATime(cfg RaceConfig) *OneAtATime {
	if len(cfg.Candidates) == 0 {
		panic("search: one-at-a-time search without candidates")
	}
	o := &OneAtATime{cfg: cfg, axes: measure.Searched(), base: cfg.Candidates[0].Knobs, searched: map[measure.Knobs]Result{}, failed: map[measure.Knobs]string{}}
	if d := cfg.Default; d != nil {
		for _, p := range cfg.Candidates {
			if p.Knobs == d.Knobs {
				o.base = d.Knobs
			}
		}
	}
	return o
}

// Next proposes the next trials.
func (o *OneAtATime) Next() []measure.Trial {
	for ; o.axis < len(o.axes); o.axis++ {
		if o.present == nil {
			o.present = o.along(o.axes[o.axis])
		}
		if o.present == nil {
			continue
		}
		if batch := o.present.Next(); len(batch) > 0 {
			return batch
		}
		o.keep()
	}
	return nil
}

// along is the grid of the base with one knob varied; nil when nothing on it is
// new.
func (o *OneAtATime) along(axis measure.Knob) *Grid {
	cfg := o.cfg
	cfg.Candidates, cfg.Default = nil, nil
	for _, p := range o.cfg.Candidates {
		varied := o.base
		axis.Copy(&varied, p.Knobs)
		if _, done := o.searched[p.Knobs]; !done && varied == p.Knobs {
			cfg.Candidates = append(cfg.Candidates, p)
		}
	}
	if o.cfg.Default != nil && o.axis == 0 {
		cfg.Default = o.cfg.Default
	}
	if len(cfg.Candidates) == 0 {
		return nil
	}
	if cfg.Search.Budget > 0 {
		cfg.Search.Budget /= time.Duration(len(o.axes))
	}
	return NewGrid(cfg)
}

// keep takes over what the present grid found out and moves the base to the
// best set so far.
func (o *OneAtATime) keep() {
	for _, c := range o.present.all {
		r := c.search.Result()
		if c.status == Unable {
			r.Outcome, r.Reason = Infeasible, c.reason
			o.failed[c.prior.Knobs] = c.reason
		}
		if _, done := o.searched[c.prior.Knobs]; !done {
			o.order = append(o.order, c.prior.Knobs)
		}
		o.searched[c.prior.Knobs] = r
	}
	o.present = nil
	for _, k := range o.order {
		if o.listed(k) && o.searched[k].Estimate.Value > o.searched[o.base].Estimate.Value {
			o.base = k
		}
	}
}

// listed reports whether a knob set is one of the candidates.
func (o *OneAtATime) listed(k measure.Knobs) bool {
	for _, p := range o.cfg.Candidates {
		if p.Knobs == k {
			return true
		}
	}
	return false
}

// Observe takes the measurement of a proposed trial.
func (o *OneAtATime) Observe(m measure.Measurement) {
	o.trials++
	o.present.Observe(m)
}

// Result tells what is known so far.
func (o *OneAtATime) Result() RaceResult {
	out := RaceResult{Knobs: o.base, Best: o.searched[o.base], Trials: o.trials}
	for _, k := range o.order {
		out.EngineTime += o.searched[k].EngineTime
	}
	for _, p := range o.cfg.Candidates {
		r, done := o.searched[p.Knobs]
		s := Contestant{Knobs: p.Knobs, Status: Measured}
		switch {
		case p.Knobs == o.base:
			continue
		case o.failed[p.Knobs] != "":
			s.Status, s.Reason = Unable, o.failed[p.Knobs]
		case !done:
			s.Status, s.Reason = Skipped, "not tried: differs in more than one knob from the sets on the way"
		case r.Outcome == Infeasible:
			s.Status, s.Reason = Infeasibly, r.Reason
		default:
			s.Reason = fmt.Sprintf("carries %v, the best set %v", r.Estimate, out.Best.Estimate)
		}
		out.Contestants = append(out.Contestants, s)
	}
	if d := o.cfg.Default; d != nil {
		if r, done := o.searched[d.Knobs]; done && r.Estimate.Value > 0 {
			out.Default = &r
			gain := gainOver(out.Best.Estimate, r.Estimate)
			out.Gain = &gain
		}
	}
	return out
}
