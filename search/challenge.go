package search

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"planner/sweep/measure"
)

// better decides between a promoted set that was searched in full and the
// incumbent. Their two searches met different loads, so the difference of the
// rates is less sure than what the same requests showed at the mark; both count
// by what they are worth.
func (r *Race) better(c *candidate) bool {
	best := r.incumbent.carries
	if c.carries.Value <= 0 {
		return false
	}
	difference := math.Log(c.carries.Value / best.Value)
	sd := math.Hypot(math.Log(c.carries.High/c.carries.Low), math.Log(best.High/best.Low)) / (2 * quantile95)
	return c.gain.value/(c.gain.sd*c.gain.sd)+difference/(sd*sd) > 0
}

// contenders are the next sets to try: those under test, then by the
// probability of being better. Sets that can hardly be better are skipped, but
// for a few that are drawn at random.
func (r *Race) contenders() []*candidate {
	var open []*candidate
	for _, c := range r.all {
		if c.status == underTest || c.status == Untried && (r.chance(c) >= skipBelow || c.tests < 0) {
			open = append(open, c)
		}
	}
	if len(open) == 0 && !r.wild {
		r.wild = true
		r.drawWild()
		return r.contenders()
	}
	slices.SortStableFunc(open, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.status, a.status), cmp.Compare(r.chance(b), r.chance(a)))
	})
	return open[:min(field, len(open))]
}

// drawWild marks some of the skipped sets, drawn at random, to be tried.
func (r *Race) drawWild() {
	var skipped []*candidate
	for _, c := range r.all {
		if c.status == Untried {
			skipped = append(skipped, c)
		}
	}
	rng := rand.New(rand.NewPCG(r.cfg.Search.Seed, streamWild))
	rng.Shuffle(len(skipped), func(i, j int) { skipped[i], skipped[j] = skipped[j], skipped[i] })
	share := r.cfg.Explore
	if share == 0 {
		share = usualExplore
	}
	for _, c := range skipped[:int(math.Ceil(min(max(share, 0), 1)*float64(len(skipped))))] {
		c.tests = -1
	}
}

// judge decides what a challenger's trial at the mark means. Both trials saw the
// same requests, so their difference is far surer than either figure is: one
// trial tells, where two independent ones of its length would not.
func (r *Race) judge(c *candidate, m *measure.Measurement) {
	c.tests++
	if !m.Valid {
		if c.tests >= invalidInRow {
			c.status, c.reason = Tied, fmt.Sprintf("%d trials in a row could not be trusted", c.tests)
		}
		return
	}
	s, best := scoreOf(m), r.mark.score
	seen := fmt.Sprintf("at %.4g requests/s, on the same requests: %v, the best set %v", r.mark.rate, s, best)
	switch g := r.gainAtMark(s); {
	case g.value >= delta:
		c.gain = g
		r.promoted = append(r.promoted, c)
	case g.value > -delta/2:
		c.status, c.reason = Tied, "as good as the best set: "+seen
	default:
		c.status, c.reason = Beaten, seen
	}
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
		if c := r.all[i]; c.status == Untried && c.tests == 0 {
			c.tests = -1
			found = true
		}
	}
	return found
}

// chance is the probability that a set carries more than the incumbent by
// delta.
func (r *Race) chance(c *candidate) float64 {
	u := math.Log((1 + delta) * r.incumbent.carries.Value)
	if c.search != nil && len(c.search.posteriors) > 0 {
		return minimum{c.search.posteriors}.survival(u)
	}
	p := r.recentred(c)
	if p.Rate <= 0 {
		return 0.5
	}
	return math.Erfc((u-math.Log(p.Rate))/p.Spread/math.Sqrt2) / 2
}

// recentred is the prediction for a set, corrected by how far predictions were
// off for the sets that were searched in full, with its spread. Each of those
// missed by an error that all sets share, and by one of its own: the set with
// the highest prediction is above all the one that was flattered most, so its
// miss says only in part what to expect of others. Both parts are normal in the
// logarithm; what is shared is estimated with its spread commonSpread as prior.
func (r *Race) recentred(c *candidate) Prior {
	p := c.prior
	if p.Rate <= 0 {
		return p
	}
	own := r.spread(c)
	weight, sum := 1/(commonSpread*commonSpread), 0.0
	for _, m := range r.all {
		if m.carries.Value <= 0 || m.prior.Rate <= 0 {
			continue
		}
		sd := math.Hypot(own, math.Log(m.carries.High/m.carries.Low)/(2*quantile95))
		weight += 1 / (sd * sd)
		sum += math.Log(m.carries.Value/m.prior.Rate) / (sd * sd)
	}
	p.Rate *= math.Exp(sum / weight)
	p.Spread = math.Sqrt(own*own + 1/weight)
	return p
}

// commonSpread is the standard deviation of ln(measured / predicted) that all
// sets share before any was measured.
const commonSpread = 0.3

// quantile95 is the 95 % quantile of the normal distribution: half the width of
// a central interval of 90 %, in standard deviations.
const quantile95 = 1.645

// spread is how far predictions scatter between sets: what the prediction says
// of itself until three sets were measured, then what was seen.
func (r *Race) spread(c *candidate) float64 {
	var errors []float64
	for _, c := range r.all {
		if c.carries.Value > 0 && c.prior.Rate > 0 {
			errors = append(errors, math.Log(c.carries.Value/c.prior.Rate))
		}
	}
	if len(errors) < 3 {
		if c.prior.Spread > 0 {
			return c.prior.Spread
		}
		return predictionSpread
	}
	return max(stat.StdDev(errors, nil), leastSpread)
}

// foretold says why a set was not tried.
func (r *Race) foretold(c *candidate) string {
	if r.incumbent == nil || r.incumbent.prior.Rate <= 0 {
		return "not tried"
	}
	return fmt.Sprintf("not tried: predicted %.0f %% below the best set", 100*(1-c.prior.Rate/r.incumbent.prior.Rate))
}
