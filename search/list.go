package search

import (
	"fmt"
	"slices"
	"time"

	"planner/sweep/measure"
)

// list begins the searches of a strategy that predicts nothing.
func (r *Race) list() {
	r.phase, r.incumbent = listing, r.all[0]
	if d := r.cfg.Default; d != nil {
		i := slices.IndexFunc(r.all, func(c *candidate) bool { return c.prior.Knobs == d.Knobs })
		if i < 0 {
			r.standard = &candidate{prior: *d}
			return
		}
		r.standard = r.all[i]
		if r.cfg.Strategy == OneAtATime {
			r.incumbent = r.standard
		}
	}
}

// nextListed proposes the next trials of some of the searches that go on, and admits
// the next sets when these have ended.
func (r *Race) nextListed() []measure.Trial {
	// On one engine a search ends before another begins.
	most := field
	if r.cfg.OneEngine {
		most = 1
	}
	for {
		if batch := r.sideBySide(r.admitted, most); len(batch) > 0 {
			return batch
		}
		r.incumbent = r.leading()
		if r.admitted = r.admit(); len(r.admitted) == 0 {
			r.phase = finished
			return nil
		}
	}
}

// admit starts the searches of the next stage: of every set, or of those that differ
// from the best so far in one knob alone. The engine's own settings are in the first.
func (r *Race) admit() []*candidate {
	axes, stages := measure.Searched(), 1
	if r.cfg.Strategy == OneAtATime {
		stages = len(axes)
	}
	var sets []*candidate
	for ; len(sets) == 0 && r.stage < stages; r.stage++ {
		for _, c := range r.all {
			varied := r.incumbent.prior.Knobs
			axes[r.stage].Copy(&varied, c.prior.Knobs)
			if c.search == nil && (r.cfg.Strategy == Grid || varied == c.prior.Knobs) {
				sets = append(sets, c)
			}
		}
	}
	cfg := r.cfg.Search
	cfg.Budget /= time.Duration(stages * max(len(sets), 1))
	if s := r.standard; s != nil && s.search == nil && !slices.Contains(sets, s) {
		sets = append(sets, s)
	}
	for _, c := range sets {
		cfg.Prior = c.prior
		c.search, c.status = NewMaxRate(cfg), Measured
	}
	return sets
}

// leading is the set that carries most of those under search. Without any rate, a set
// that is undecided says more than one which meets the objective at no rate: there
// may be a plan.
func (r *Race) leading() *candidate {
	best := r.incumbent
	for _, c := range r.all {
		if best.search == nil || c.search == nil {
			continue
		}
		found, most := c.search.Result(), best.search.Result()
		if found.Estimate.Value > most.Estimate.Value || most.Outcome == Infeasible && found.Outcome != Infeasible {
			best = c
		}
	}
	return best
}

// standing is what became of a set beside the best one.
func (r *Race) standing(c *candidate, best Estimate) Contestant {
	s := Contestant{Knobs: c.prior.Knobs, Status: c.status, Reason: c.reason}
	switch {
	case r.cfg.Strategy == ByPrediction || c.status == Unable:
	case c.search == nil:
		s.Status, s.Reason = Skipped, "not tried: differs in more than one knob from the sets on the way"
	default:
		found := c.search.Result()
		s.Reason = fmt.Sprintf("carries %v, the best set %v", found.Estimate, best)
		if found.Outcome == Infeasible {
			s.Status, s.Reason = Infeasibly, found.Reason
		}
	}
	return s
}
