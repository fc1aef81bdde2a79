package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

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
		return c.search.posteriors.survival(u)
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
func (r *Race) foretold(c *candidate) note.Reason {
	if r.incumbent == nil || r.incumbent.prior.Rate <= 0 {
		return note.Because(note.NotTried)
	}
	return note.Because(note.PredictedWorse, 100*(1-c.prior.Rate/r.incumbent.prior.Rate))
}

func (r *Race) nobodyLeft() bool {
	return !slices.ContainsFunc(r.all, func(c *candidate) bool { return c.status == Untried || c.status == underTest })
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
		if found.Estimate.Value > most.Estimate.Value || most.Outcome.hopeless() && !found.Outcome.hopeless() || most.Outcome == Unmeasured && found.Outcome == Infeasible {
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
		s.Status, s.Reason = Skipped, note.Because(note.OffTheWay)
	default:
		found := c.search.Result()
		switch {
		case found.Outcome.hopeless():
			s.Status, s.Reason = Infeasibly, found.Reason
		case !(found.Estimate.Value > 0):
			s.Status, s.Reason = Skipped, found.Reason
		default:
			s.Reason = note.Because(note.CarriesLess, found.Estimate, best)
		}
	}
	return s
}
