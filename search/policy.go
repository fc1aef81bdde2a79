package search

import (
	"cmp"
	"math"
	"slices"

	"planner/internal/note"
)

// contenders are the next sets to try, by the probability of being better; those that can
// hardly be better are left out. Without an incumbent they are ordered by what is predicted.
func (r *Race) contenders() []*candidate {
	var open []*candidate
	for _, c := range r.all {
		if c.status == underTest || c.status == Untried && (c.named || r.chance(c) >= safeQuantile) {
			open = append(open, c)
		}
	}
	slices.SortStableFunc(open, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.status, a.status), cmp.Compare(r.chance(b), r.chance(a)))
	})
	return open[:min(field, len(open))]
}

// chance is the probability that a set carries more than the incumbent by delta; without
// an incumbent, one of the predicted rate.
func (r *Race) chance(c *candidate) float64 {
	if r.incumbent == nil {
		return 1 + c.prior.Rate
	}
	p := r.predicted(c)
	return math.Erfc(math.Log((1+delta)*r.incumbent.carries.Value/p.Rate)/p.Spread/math.Sqrt2) / 2
}

// predicted is the prediction for a set beside that for the incumbent, whose rate is
// known: an error that all sets share does not matter, and each has one of its own.
func (r *Race) predicted(c *candidate) Prior {
	p, best := c.prior, r.incumbent
	ratio := p.Rate / best.prior.Rate
	if !(p.Rate > 0 && best.prior.Rate > 0) {
		ratio = 1
	}
	p.Rate = best.carries.Value * ratio
	p.Spread = math.Sqrt2 * rateSpread
	return p
}

// further lets in the sets that [RaceConfig.Further] names, and reports whether
// any of them is yet to be tried.
func (r *Race) further() bool {
	if r.cfg.Further == nil {
		return false
	}
	found := false
	for _, p := range r.cfg.Further(r.Result()) {
		c := r.candidate(p)
		if !slices.Contains(r.all, c) {
			r.all = append(r.all, c)
		}
		c.named = true
		found = found || c.status == Untried
	}
	return found
}

// foretold says why a set was not tried.
func (r *Race) foretold(c *candidate) note.Reason {
	if r.incumbent == nil || r.incumbent.prior.Rate <= 0 {
		return note.Because(note.NotTried)
	}
	return note.Because(note.PredictedWorse, 100*(1-c.prior.Rate/r.incumbent.prior.Rate))
}
