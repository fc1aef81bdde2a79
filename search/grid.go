package search

import (
	"fmt"
	"time"

	"planner/sweep/measure"
)

// Grid searches the maximum rate of every knob set in full. It costs as many
// searches as there are sets, and leaves nothing to a prediction.
type Grid struct {
	cfg RaceConfig
	all []*candidate
	// asked are the searches whose trials are out, in order.
	asked  []*candidate
	trials int
}

// NewGrid starts a full search of every candidate.
func NewGrid(cfg RaceConfig) *Grid {
	if len(cfg.Candidates) == 0 {
		panic("search: grid without candidates")
	}
	g := &Grid{cfg: cfg}
	for _, p := range cfg.Candidates {
		g.all = append(g.all, g.candidate(p))
	}
	if d := cfg.Default; d != nil && g.of(d.Knobs) == nil {
		g.all = append(g.all, g.candidate(*d))
	}
	return g
}

func (g *Grid) candidate(p Prior) *candidate {
	c := g.cfg.Search
	c.Prior = p
	if c.Budget > 0 {
		c.Budget /= time.Duration(len(g.cfg.Candidates))
	}
	return &candidate{prior: p, search: NewMaxRate(c), status: Measured}
}

// of finds the candidate with these knobs; nil if there is none.
func (g *Grid) of(k measure.Knobs) *candidate {
	for _, c := range g.all {
		if c.prior.Knobs == k {
			return c
		}
	}
	return nil
}

// Next proposes the next trials of some of the searches that go on.
func (g *Grid) Next() []measure.Trial {
	// On one engine a search ends before another begins.
	width := field
	if g.cfg.OneEngine {
		width = 1
	}
	var batch []measure.Trial
	for _, c := range g.all {
		if len(batch) == width {
			break
		}
		for _, t := range c.search.Next() {
			batch = append(batch, t)
			g.asked = append(g.asked, c)
		}
	}
	return batch
}

// Observe takes the measurement of a proposed trial.
func (g *Grid) Observe(m measure.Measurement) {
	c := g.asked[0]
	g.asked = g.asked[1:]
	g.trials++
	c.search.Observe(m)
	if m.Rejected != "" {
		c.status, c.reason = Unable, m.Rejected
	}
}

// Result tells what is known so far.
func (g *Grid) Result() RaceResult {
	sets := g.all[:len(g.cfg.Candidates)]
	best := sets[0]
	for _, c := range sets {
		// Without any rate, a set that is undecided says more than one which meets the
		// objective at no rate: there may be a plan.
		r, b := c.search.Result(), best.search.Result()
		if r.Estimate.Value > b.Estimate.Value || b.Outcome == Infeasible && r.Outcome != Infeasible {
			best = c
		}
	}
	out := RaceResult{Knobs: best.prior.Knobs, Best: best.search.Result(), Trials: g.trials}
	for _, c := range sets {
		out.EngineTime += c.search.Result().EngineTime
		if c == best {
			continue
		}
		r := c.search.Result()
		s := Contestant{Knobs: c.prior.Knobs, Status: c.status, Reason: c.reason}
		switch {
		case c.status == Unable:
		case r.Outcome == Infeasible:
			s.Status, s.Reason = Infeasibly, r.Reason
		default:
			s.Reason = fmt.Sprintf("carries %v, the best set %v", r.Estimate, best.search.Result().Estimate)
		}
		out.Contestants = append(out.Contestants, s)
	}
	if d := g.cfg.Default; d != nil {
		standard := g.of(d.Knobs)
		if r := standard.search.Result(); r.Outcome != Searching && standard.status != Unable {
			out.Default = &r
			gain := gainOver(out.Best.Estimate, r.Estimate)
			out.Gain = &gain
		}
	}
	return out
}
