package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// favourite is the set under search, else the one that is predicted to be the
// best of those not looked at; the first listed among equals.
func (r *Race) favourite() *candidate {
	var best *candidate
	for _, c := range r.all {
		switch {
		case c.status == Measured:
			return c
		case c.status == Untried && (best == nil || c.prior.Rate > best.prior.Rate):
			best = c
		}
	}
	return best
}

// contenders are the next sets to try, by the probability of being better. Sets that can
// hardly be better are skipped, but for some that are drawn at random.
func (r *Race) contenders() []*candidate {
	var open []*candidate
	for _, c := range r.all {
		if c.status == underTest || c.status == Untried && (c.named || r.drawn(c) || r.chance(c) >= skipBelow) {
			open = append(open, c)
		}
	}
	slices.SortStableFunc(open, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.status, a.status), cmp.Compare(r.chance(b), r.chance(a)))
	})
	return open[:min(field, len(open))]
}

// drawn says whether a set is among those that are tried whatever is predicted of them.
func (r *Race) drawn(c *candidate) bool {
	share := cmp.Or(r.cfg.Explore, usualExplore)
	i := slices.Index(r.all, c)
	return rand.New(rand.NewPCG(r.cfg.Search.Seed+uint64(i), streamWild)).Float64() < share
}

// further lets in the sets that [RaceConfig.Further] names, and reports whether
// any of them is yet to be tried.
func (r *Race) further() bool {
	if r.cfg.Further == nil {
		return false
	}
	found := false
	for _, p := range r.cfg.Further(r.Result()) {
		i := slices.IndexFunc(r.all, func(c *candidate) bool { return c.prior.Knobs == p.Knobs })
		if i < 0 {
			r.all = append(r.all, &candidate{prior: p})
			i = len(r.all) - 1
		}
		c := r.all[i]
		c.named = true
		found = found || c.status == Untried
	}
	return found
}

// chance is the probability that a set carries more than the incumbent by
// delta.
func (r *Race) chance(c *candidate) float64 {
	p := r.recentred(c)
	return math.Erfc(math.Log((1+delta)*r.incumbent.carries.Value/p.Rate)/p.Spread/math.Sqrt2) / 2
}

// recentred is the prediction for a set, corrected by how far predictions were
// off for the sets that were searched in full, with its spread. Each of those
// missed by an error that all sets share, and by one of its own: the set with
// the highest prediction is above all the one that was flattered most, so its
// miss says only in part what to expect of others. Both parts are normal in the
// logarithm; what is shared is estimated with its spread rateSpread as prior.
func (r *Race) recentred(c *candidate) Prior {
	p := c.prior
	if p.Rate <= 0 {
		p.Rate, p.Spread = r.incumbent.carries.Value, rateSpread
		return p
	}
	own := cmp.Or(p.Spread, predictionSpread)
	weight, sum := 1/(rateSpread*rateSpread), 0.0
	for _, m := range r.all {
		if m.carries.Value <= 0 || m.prior.Rate <= 0 {
			continue
		}
		sd := math.Hypot(own, m.carries.deviation())
		weight += 1 / (sd * sd)
		sum += math.Log(m.carries.Value/m.prior.Rate) / (sd * sd)
	}
	p.Rate *= math.Exp(sum / weight)
	p.Spread = math.Sqrt(own*own + 1/weight)
	return p
}

// foretold says why a set was not tried.
func (r *Race) foretold(c *candidate) note.Reason {
	if r.incumbent == nil || r.incumbent.prior.Rate <= 0 {
		return note.Because(note.NotTried)
	}
	return note.Because(note.PredictedWorse, 100*(1-c.prior.Rate/r.incumbent.prior.Rate))
}

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

// leading is the set whose search tells most; the incumbent among equals.
func (r *Race) leading() *candidate {
	best := r.all[0]
	if r.incumbent != nil {
		best = r.incumbent
	}
	for _, c := range r.all {
		if c.telling() > best.telling() {
			best = c
		}
	}
	return best
}

// telling says how much the search of a candidate tells: the rate that it found, and
// without one, from most to least, that an idle engine misses the objective already,
// whatever the knobs, that it may be met, that it is met at no rate, and that the engine
// failed.
func (c *candidate) telling() float64 {
	if c.search == nil {
		return math.Inf(-1)
	}
	switch r := c.search.Result(); {
	case r.Estimate.Value > 0:
		return r.Estimate.Value
	case r.Floor != nil:
		return 0
	case r.Outcome == Infeasible:
		return -2
	case r.Outcome == Unmeasured:
		return -3
	}
	return -1
}
