package search

import (
	"fmt"
	"math"

	"planner/sweep/measure"
)

// mark is where challengers are measured: a little above what the incumbent
// carries, with the length of the incumbent's own trial there.
type mark struct {
	rate  float64
	size  size
	score score
}

// markTrial measures the incumbent where challengers will be measured.
func (r *Race) markTrial() measure.Trial {
	s := r.incumbent.search
	rate := (1 + delta) * r.incumbent.carries.Value
	r.mark = mark{rate: rate, size: s.sized(rate, false)}
	t := r.testTrial(r.incumbent)
	t.Why = "the best set so far, where challengers will be measured"
	return t
}

// testTrial measures a set at the mark. The requests are the same for all sets.
func (r *Race) testTrial(c *candidate) measure.Trial {
	test := max(c.tests, 0)
	if c == r.incumbent {
		test = 0
	}
	s := c.search
	t := s.trial(measure.Trial{Rate: r.mark.rate, Warmup: r.mark.size.warmup, Window: r.mark.size.window, Cooldown: r.mark.size.cooldown})
	t.Seed = trialSeed(r.cfg.Search.Seed^streamTests, test)
	t.Why = fmt.Sprintf("challenger: better than the best set by %.0f %%?", 100*delta)
	return *t
}

// score says how far a trial at the mark is from the objective.
type score struct {
	overloaded bool
	// bound is the one that is furthest beyond, or nearest to, what is allowed,
	// and share what it saw beyond the limit.
	bound string
	share float64
	// excess is the distance of that share from the allowed one in logits; for
	// a bound on a mean, ln(mean/limit).
	excess float64
}

// scoreOf judges a trial by its raw counts.
func scoreOf(m *measure.Measurement) score {
	s := score{overloaded: m.Overloaded || m.Aborted != "", excess: math.Inf(-1)}
	for _, b := range m.Trial.Objective.Bounds {
		c, ok := m.Count(b.String())
		if !ok || c.N == 0 {
			continue
		}
		share := float64(c.K) / float64(c.N)
		excess := math.Log(max(c.Value, math.SmallestNonzeroFloat64))
		if allowed := b.Allowed(); allowed > 0 {
			// Half a request more keeps the logit finite where none, or all, are
			// beyond.
			excess = logit((float64(c.K)+0.5)/(float64(c.N)+1)) - logit(allowed)
		}
		if excess > s.excess {
			s.bound, s.share, s.excess = b.String(), share, excess
		}
	}
	return s
}

// String says what was seen.
func (s score) String() string {
	text := fmt.Sprintf("%.2g %% beyond %s", 100*s.share, s.bound)
	if s.overloaded {
		text += " and overload"
	}
	return text
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
	switch gain := r.gainAtMark(s); {
	case gain >= delta:
		r.promoted = append(r.promoted, c)
	case gain > -delta/2:
		c.status, c.reason = Tied, "as good as the best set: "+seen
	default:
		c.status, c.reason = Beaten, seen
	}
}

// gainAtMark is by how much more, as a share, a set carries than the incumbent,
// from their trials at the mark: the distance of their exceedances in logits
// over the steepness of the incumbent's curve.
func (r *Race) gainAtMark(s score) float64 {
	best := r.mark.score
	switch {
	case s.overloaded && best.overloaded:
		return 0
	case s.overloaded:
		return -1
	case best.overloaded:
		return 1
	}
	search := r.incumbent.search
	_, j := minimum{search.posteriors}.binding()
	return (best.excess - s.excess) / search.posteriors[j].kappa
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

// recentred is the prediction for a set, corrected by how far the prediction
// was off for the incumbent, with its spread.
func (r *Race) recentred(c *candidate) Prior {
	p, best := c.prior, r.incumbent
	if p.Rate <= 0 || best.prior.Rate <= 0 {
		return p
	}
	e := best.carries
	p.Rate *= e.Value / best.prior.Rate
	p.Spread = math.Hypot(r.spread(c), math.Log(e.High/e.Low)/(2*quantile95))
	return p
}

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
	mean, sum := 0.0, 0.0
	for _, e := range errors {
		mean += e / float64(len(errors))
	}
	for _, e := range errors {
		sum += (e - mean) * (e - mean)
	}
	return max(math.Sqrt(sum/float64(len(errors)-1)), leastSpread)
}

// foretold says why a set was not tried.
func (r *Race) foretold(c *candidate) string {
	if r.incumbent == nil || r.incumbent.prior.Rate <= 0 {
		return "not tried"
	}
	return fmt.Sprintf("not tried: predicted %.0f %% below the best set", 100*(1-c.prior.Rate/r.incumbent.prior.Rate))
}
