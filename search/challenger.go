package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// referenceLoad is the load at which challengers are measured: slightly above what the incumbent carries, in trials as
// short as a search's first one. On the same requests these separate two sets that differ by a few per cent, provided
// that the incumbent is seen to miss the objective: if it meets it, what sets them apart, such as room for one more
// sequence, has not come into play; if it is overloaded, all that are not much better look the same. What the incumbent
// carries may be wrong by a tenth, so the reference is moved until neither is the case.
type referenceLoad struct {
	// trial is the incumbent's there, except for its seed, and score what it showed last.
	trial measure.Trial
	score showing
	// settled says that the reference is final; moves counts the trials of the incumbent there.
	settled bool
	moves   int
}

// move takes what the incumbent showed at the reference and, if that tells too little, moves it by the uncertainty of
// the incumbent's rate. Between meeting the objective and overload it settles at overload, where a better set shows.
func (m *referenceLoad) move(s showing, step float64) {
	before := m.score
	m.score, m.moves = s, m.moves+1
	switch {
	case m.moves > minTrials:
	case s.met() && !before.overloaded():
		m.trial.Rate *= 1 + step
		return
	case s.overloaded() && !before.met():
		m.trial.Rate /= 1 + step
		return
	case s.met():
		m.score = before
	}
	m.settled, m.trial.Rate = true, m.score.rate
}

// referenceTrial measures the incumbent where challengers will be measured.
func (r *Race) referenceTrial() measure.Trial {
	s := r.incumbent.search
	if r.reference.moves == 0 {
		cfg := s.cfg
		cfg.Budget = r.cfg.Search.Budget / partShare
		r.reference.trial = cfg.timed((1+delta)*r.incumbent.carries.Value, 1, learned{latency: s.latency, phi: s.cfg.Prior.Phi})
	}
	t := r.pairedTrial(r.incumbent)
	t.Why = "the best set so far, where challengers will be measured"
	return t
}

// pairedTrial measures a set at the reference. The requests are the same for all sets.
func (r *Race) pairedTrial(c *candidate) measure.Trial {
	t := c.search.cfg.trial(r.reference.trial, c.search.ran+1, c.search.spent)
	t.Seed = trialSeed(r.cfg.Search.Seed^streamTests, 0)
	t.Why = fmt.Sprintf("challenger: better than the best set by %.0f %%?", 100*delta)
	return t
}

// showing is what a trial at the reference shows: how much more the set could carry under the bound on latency that
// leaves it least, as a share of at most 1, and that in words. room is the same, but minus infinity in an overload.
type showing struct {
	rate, room, latency float64
	seen                string
}

func (s showing) met() bool        { return s.room > 0 }
func (s showing) overloaded() bool { return math.IsInf(s.room, -1) }

// shows judges a trial at the reference by its raw counts, and by the steepness of the incumbent's curves.
func (r *Race) shows(m *measure.Measurement) showing {
	s := showing{rate: m.Trial.Rate, latency: 1}
	for j, b := range m.Trial.Objective.Bounds {
		c, ok := m.Count(b.String())
		if !ok || c.N == 0 {
			continue
		}
		excess, seen := math.Log(max(c.Value, math.SmallestNonzeroFloat64)), fmt.Sprintf("%.2g times %s", c.Value, b)
		if allowed := b.Allowed(); allowed > 0 {
			k, n := float64(c.K), float64(c.N)
			seen = fmt.Sprintf("%.3g %% beyond %s", 100*k/n, b)
			// An exponential tail whose quantile at the allowed share p is x has about ln(1/p) ln(x/limit) more, in ln
			// share, beyond the limit. Half a request more keeps a count finite where none, or all, are beyond.
			excess = stat.CLogLog((k+0.5)/(n+1)) - stat.CLogLog(allowed)
			if x := m.Bounded(b); x > 0 {
				excess = math.Log(1/allowed) * math.Log(float64(x)/float64(b.Limit))
			}
		}
		if room := -excess / r.incumbent.search.posteriors[j].kappa; room < s.latency {
			s.latency, s.seen = room, seen
		}
	}
	s.room = s.latency
	if m.Overloaded || m.Aborted.Text != "" {
		s.room, s.seen = math.Inf(-1), s.seen+" and overload"
	}
	return s
}

// over is how much more a set carries than another, as a share, judged by what they showed on the same requests. If both
// are overloaded, the latency that is farther beyond its limit shows which is worse, but nothing shows which is better.
// If only one is, or the difference is too large to follow a curve, only its sign is believed, and it counts as delta.
func (s showing) over(best showing) float64 {
	gain := s.room - best.room
	if s.overloaded() && best.overloaded() {
		gain = min(s.latency-best.latency, 0)
	}
	if math.Abs(gain) > wide {
		return math.Copysign(delta, gain)
	}
	return gain
}

// judge decides what a challenger's trial at the reference means: as both saw the same requests, one trial is enough.
func (r *Race) judge(c *candidate, m *measure.Measurement) {
	s, best := r.shows(m), r.reference.score
	c.gain = s.over(best)
	switch {
	case c.gain >= delta:
		c.status = Measured
		r.promoted = append(r.promoted, c)
	case c.gain > -delta:
		c.status, c.reason = Tied, note.Because(note.SeenAsGood, best.rate, s.seen, best.seen)
	default:
		c.status, c.reason = Beaten, note.Because(note.SeenWorse, best.rate, s.seen, best.seen)
	}
}

// contenders are the next sets to try, the likeliest to be better first; those that can hardly be better are left out.
// Without an incumbent they are ordered by prediction.
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

// chance is the probability that a set carries more than the incumbent by delta. Without one it only orders sets: by
// predicted rate or, where none is predicted, by the length of steps: the longer they are, the faster is an idle engine.
func (r *Race) chance(c *candidate) float64 {
	if r.incumbent == nil {
		return 1 + cmp.Or(c.prior.Rate, -1/float64(2+c.prior.Knobs.MaxNumBatchedTokens))
	}
	p := r.predicted(c)
	return math.Erfc(math.Log((1+delta)*r.incumbent.carries.Value/p.Rate)/p.Spread/math.Sqrt2) / 2
}

// predicted is the prediction for a set, scaled by the incumbent's measured over predicted rate: an error that all sets
// share cancels, and each keeps one of its own.
func (r *Race) predicted(c *candidate) Prior {
	p, best := c.prior, r.incumbent
	ratio := p.Rate / best.prior.Rate
	if !(p.Rate > 0 && best.prior.Rate > 0) {
		ratio = 1
	}
	p.Rate, p.Spread = best.carries.Value*ratio, math.Sqrt2*rateSpread
	return p
}

// further adds the sets that [RaceConfig.Further] names, and reports whether any of them is yet to be tried.
func (r *Race) further() bool {
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
