package search

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"planner/sweep/measure"
)

// mark is where challengers are measured: a little above what the incumbent
// carries, in trials as short as a search's first one. On the same requests
// these tell two sets apart that differ by a few per cent, provided that the
// incumbent is seen to miss the objective: where it shows next to no request
// beyond the limit, what sets them apart, such as a place for one more sequence,
// was not even touched. The mark is then raised by steps.
type mark struct {
	rate   float64
	size   size
	score  score
	raised int
}

// mostRaised is how often the mark is raised at most.
const mostRaised = 4

// markTrial measures the incumbent where challengers will be measured.
func (r *Race) markTrial() measure.Trial {
	s := r.incumbent.search
	rate := math.Pow(1+delta, float64(1+r.mark.raised)) * r.incumbent.carries.Value
	fresh := MaxRate{cfg: s.cfg, latency: s.latency}
	r.mark.rate, r.mark.size = rate, fresh.sized(rate, false)
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
	count int
	// excess is the distance of that share from the allowed one in logits; for
	// a bound on a mean, ln(mean/limit). tail is the same as told by the bounded
	// statistic instead of by counting, for trials with next to nothing beyond
	// the limit: an exponential tail with the statistic x at the allowed share p
	// has ln p (x/limit - 1) more or less beyond the limit.
	excess, tail float64
}

// scoreOf judges a trial by its raw counts.
func scoreOf(m *measure.Measurement) score {
	s := score{overloaded: m.Overloaded || m.Aborted != "", excess: math.Inf(-1), tail: math.Inf(-1)}
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
			if x := m.Bounded(b); x > 0 {
				s.tail = max(s.tail, math.Log(1/allowed)*math.Log(float64(x)/float64(b.Limit)))
			}
		}
		if excess > s.excess {
			s.bound, s.share, s.count, s.excess = b.String(), share, c.K, excess
		}
	}
	return s
}

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
	return c.gain/(pairedSpread*pairedSpread)+difference/(sd*sd) > 0
}

// pairedSpread is the standard deviation of a gain that is told from one trial
// of two sets on the same requests.
const pairedSpread = 0.03

// enoughBeyond is the count of exceedances below which the statistic itself
// says more.
const enoughBeyond = 10

// String says what was seen.
func (s score) String() string {
	digits := "%.2g %% beyond %s"
	if s.share >= 0.1 {
		digits = "%.0f %% beyond %s"
	}
	text := fmt.Sprintf(digits, 100*s.share, s.bound)
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
		c.gain = gain
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
	distance := best.excess - s.excess
	if min(s.count, best.count) < enoughBeyond && !math.IsInf(s.tail, 0) && !math.IsInf(best.tail, 0) {
		distance = best.tail - s.tail
	}
	return distance / search.posteriors[j].kappa
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
