package search

import (
	"fmt"
	"math"
	"time"

	"planner/sweep/measure"
)

const (
	// minTrials is the least number of trials under load that an interval may
	// rest on.
	minTrials = 3
	// wide is the half-width from which the next trial goes to the median of the
	// posterior, lost the one from which short trials find the order of
	// magnitude first.
	wide, lost = 0.25, 0.60
	// mostCoarse is how many short trials look for the order of magnitude before long
	// ones do: sixty requests without one that is late say nothing more when they are
	// repeated.
	mostCoarse = 8
	// closer is how much nearer to saturation than at the limit most trials are run:
	// where a queue's share of exceedances is p0^0.85, twice p0 for one request in a
	// hundred. Counts there say more a request, since kappa^2 p/phi(p) grows with p;
	// extrapolating back from still higher rates goes wrong where a server has a
	// cliff, and a queue that is much nearer to saturation takes much longer than a
	// warm-up to become as long as it will be.
	closer = 0.85
	// below is how far below the limit, on the scale of the curve, trials are run
	// that learn the slope: at half the allowed share.
	below = 0.70
	// aimMean is how far above the limit trials are run for a mean, in its log:
	// the mean itself is at its surest there, and its curve bends upwards.
	aimMean = 0.10
	// deepest is the lowest rate, relative to the median, of the trials below
	// the limit.
	deepest = 0.8
	// stride is the least factor between rates while the limit is not bracketed: a
	// prior that is far off must not be left in small steps.
	stride = 1.5
	// invalidInRow ends a search whose trials cannot be trusted.
	invalidInRow = 3
)

// propose decides what to find out next; nil when the search has ended, which
// it then records.
func (s *MaxRate) propose() *measure.Trial {
	if t, ok := s.idle.wanted(s); ok {
		return t
	}
	if end := s.finished(); end.outcome != Searching {
		s.end = end
		return nil
	}
	rate, coarse, why := s.nextRate()
	size := s.sized(rate, coarse)
	if s.cfg.Budget > 0 {
		if len(s.tried) < minTrials {
			// A prediction that is far too low must not spend all on its rate.
			size.window = min(size.window, s.cfg.Budget/(minTrials+1))
		}
		left := s.cfg.Budget - s.spent - s.cfg.Overhead - size.warmup - size.cooldown
		if left < size.window/4 || left <= 0 {
			s.end = ending{OutOfBudget, fmt.Sprintf("the budget of %v engine time has no room for another trial", s.cfg.Budget)}
			return nil
		}
		size.window = min(size.window, left)
	}
	return s.trial(measure.Trial{Rate: rate, Warmup: size.warmup, Window: size.window, Cooldown: size.cooldown, Why: why})
}

// trial fills in what all trials of the search share.
func (s *MaxRate) trial(t measure.Trial) *measure.Trial {
	t.Number = s.proposed + 1
	t.Knobs = s.cfg.Prior.Knobs
	t.Workload = s.cfg.Workload
	t.Objective = s.cfg.SLO
	t.Seed = trialSeed(s.cfg.Seed, s.proposed)
	s.proposed++
	return &t
}

// finished applies the stopping rules.
func (s *MaxRate) finished() ending {
	if n := len(s.tried); n >= invalidInRow {
		bad := 0
		for _, t := range s.tried[n-invalidInRow:] {
			if !t.valid {
				bad++
			}
		}
		if bad == invalidInRow {
			return ending{OutOfBudget, fmt.Sprintf("%d trials in a row could not be trusted", invalidInRow)}
		}
	}
	if len(s.tried) >= maxTrials {
		return ending{OutOfBudget, fmt.Sprintf("%d trials", maxTrials)}
	}
	if len(s.posteriors) == 0 {
		return ending{}
	}
	low, high, allMet, allMissed := s.extremes()
	if allMet && high >= s.cfg.Limit {
		return ending{NotReached, fmt.Sprintf("the objective is met at %.4g/s, the largest rate that is tried", high)}
	}
	if allMissed && s.idle.loneRate(low) {
		return ending{Infeasible, fmt.Sprintf("the objective is missed at every rate, down to %.3g/s, where requests hardly ever meet", low)}
	}
	m := minimum{s.posteriors}
	if len(s.valid()) >= minTrials && !allMet && !allMissed && m.halfWidth(s.cfg.Confidence) < s.cfg.Precision {
		if s.guard.more(s, m) {
			return ending{}
		}
		return ending{Found, fmt.Sprintf("the interval is narrower than +-%.3g %%", 100*s.cfg.Precision)}
	}
	return ending{}
}

// nextRate applies the rule of the next rate and says why.
func (s *MaxRate) nextRate() (rate float64, coarse bool, why string) {
	valid := s.valid()
	if len(s.tried) > 0 && !s.tried[len(s.tried)-1].valid {
		t := s.tried[len(s.tried)-1]
		return t.rate, t.coarse, "again: the last trial could not be trusted"
	}
	if len(valid) == 0 {
		if s.cfg.Prior.Rate > 0 {
			return min(s.cfg.Prior.Rate, s.cfg.Limit), false, "the predicted maximum rate"
		}
		return min(s.idle.start(), s.cfg.Limit), true, "a few requests at a time: finds the order of magnitude"
	}
	if rate, ok := s.guard.rate(); ok {
		return rate, false, "near the limit: the curve does not fit all trials"
	}
	m := minimum{s.posteriors}
	median, half := m.quantile(0.5), m.halfWidth(s.cfg.Confidence)
	fine := 0
	for _, t := range valid {
		if !t.coarse {
			fine++
		}
	}
	why = fmt.Sprintf("median of the posterior: still +-%.0f %%", 100*half)
	switch low, high, allMet, allMissed := s.extremes(); {
	case half >= lost && allMet:
		return s.clip(max(median, stride*high)), true, "every rate so far met the objective: goes up"
	case half >= lost && allMissed:
		return min(median, low/stride), true, "every rate so far missed the objective: goes down"
	case half >= lost:
		return s.clip(median), len(valid)-fine < mostCoarse, "finds the order of magnitude: " + why
	case allMissed && fine >= minTrials:
		// The curve may be flat, as that of latencies which are long on an idle
		// engine too; then its extrapolation means nothing, and only a rate that is
		// seen to meet the objective does.
		return min(median, low/stride), false, "every rate so far missed the objective: goes down"
	case half >= wide || fine < 2:
		return s.clip(median), false, why
	}
	_, j := m.binding()
	kappa := s.posteriors[j].kappa
	d := s.bounds[j].aim() / kappa
	if fine%3 == 2 {
		d = below / kappa
		if s.bounds[j].mean {
			d = aimMean / kappa
		}
		return s.clip(median * max(1-d, deepest)), false, fmt.Sprintf("below the limit of %s: learns the slope", s.bounds[j].name)
	}
	if s.bounds[j].mean {
		return s.clip(median * (1 + d)), false, fmt.Sprintf("near the limit of %s", s.bounds[j].name)
	}
	return s.clip(median * (1 + d)), false,
		fmt.Sprintf("%.2g %% of requests beyond %s expected: says the most", 100*unlink(s.bounds[j].offset+s.bounds[j].aim()), s.bounds[j].name)
}

// aim is how far above its limit, on the scale of its curve, a bound is best
// measured.
func (a *assumed) aim() float64 {
	if a.mean {
		return aimMean
	}
	return link(math.Pow(a.share, closer)) - a.offset
}

// clip keeps a rate in the range that is worth a trial: not far beyond a rate
// that already overloaded the engine.
func (s *MaxRate) clip(rate float64) float64 {
	for j := range s.seen {
		for i := range s.seen[j] {
			if e := &s.seen[j][i]; e.over <= math.Log(falseOverload) {
				rate = min(rate, 1.25*e.rate)
			}
		}
	}
	return min(rate, s.cfg.Limit)
}

// size is the plan of one trial in time.
type size struct{ warmup, window, cooldown time.Duration }

const (
	firstWindow, lastWindow = 40 * time.Second, 300 * time.Second
	growth                  = 1.5
	// usualRequests make a trial at least as long as many clumps of exceedances,
	// whatever the quantile.
	usualRequests = 1200
	// mostRequests caps a trial at so many times what the quantiles need: more
	// is better spent on another draw of the arrivals.
	mostRequests  = 7.5
	leastWarmup   = 15 * time.Second
	unknownWarmup = 30 * time.Second
	shortWindow   = 10 * time.Second
	mostCooldown  = 60 * time.Second
	// leastRelaxations is how many times as long as it takes to settle a queue is
	// watched at least: the warm-up does not take away all of what an empty start
	// hides.
	leastRelaxations = 10
	// longestRelaxation bounds what a dispersion is believed to say of time.
	longestRelaxation = 40 * time.Second
	// endless keeps a duration inside its type at rates of one request a year.
	endless = 1e9 * float64(time.Second)
)

// sized plans the length of a trial: it grows from trial to trial, is long
// enough for the quantiles of the objective and for the slowest requests, and
// at high rates no longer than what its requests are worth.
func (s *MaxRate) sized(rate float64, coarse bool) size {
	least := s.leastRequests()
	span := func(requests float64) time.Duration {
		return time.Duration(min(requests/rate*float64(time.Second), endless))
	}
	// Even a search that only counts requests gives a real engine some seconds.
	floor := min(shortWindow, span(20_000))
	var window time.Duration
	if coarse {
		window = max(span(60), 5*s.latency, min(20*time.Second, span(300)), floor)
	} else {
		factor := math.Pow(growth, float64(min(s.fine(), 20)))
		window = max(min(lastWindow, time.Duration(float64(firstWindow)*factor)), span(least))
		clumps := usualRequests * float64(max(s.cfg.Workload.Turns, 1))
		window = min(window, max(span(max(least, clumps)*min(factor, mostRequests)), floor))
		window = max(window, 5*s.latency)
	}
	if !coarse {
		window = max(window, leastRelaxations*s.relaxation(rate))
	}
	window = s.lap(window, rate)
	again := s.distrusted()
	window <<= again
	if s.cfg.Window > 0 {
		window = s.cfg.Window
	}
	warmup := unknownWarmup
	if s.latency > 0 {
		warmup = max(leastWarmup, s.latency*3/2)
	}
	warmup = max(warmup, 3*s.relaxation(rate))
	warmup = min(warmup<<again, window)
	if s.cfg.Warmup > 0 {
		warmup = s.cfg.Warmup
	}
	_, output := s.cfg.Workload.MeanTokens()
	z := s.steadied(size{warmup: warmup, window: window}, rate, coarse)
	z.cooldown = min(s.cfg.SLO.Horizon(int(math.Ceil(output))), z.window/2, mostCooldown)
	return z
}

// relaxation is how long a queue that starts empty takes to come near the length
// that it has in the long run, as far as it is known: exceedances that stay
// correlated for a time tau have a dispersion of 2 rate tau.
func (s *MaxRate) relaxation(rate float64) time.Duration {
	phi := s.cfg.Prior.Phi
	if len(s.posteriors) > 0 {
		_, j := minimum{s.posteriors}.binding()
		phi = s.posteriors[j].phi
	}
	if s.cfg.Workload != nil {
		// The turns of a conversation are one clump; how long they take to settle is
		// known otherwise.
		phi /= float64(max(s.cfg.Workload.Turns, 1))
	}
	return min(time.Duration(min(phi/(2*rate)*float64(time.Second), endless)), longestRelaxation)
}

// distrusted is how many trials in a row, up to the last, could not be trusted. The
// next one is twice as long for each: what is wrong most often is that a server
// whose requests stay long was not yet stationary, and a shorter look at it will
// not be either.
func (s *MaxRate) distrusted() int {
	n := 0
	for n < len(s.tried) && !s.tried[len(s.tried)-1-n].valid {
		n++
	}
	return min(n, invalidInRow)
}

// leastRequests is how many requests a trial needs to resolve the quantiles of
// the objective: 12 beyond each.
func (s *MaxRate) leastRequests() float64 {
	if s.cfg.MinRequests > 0 {
		return float64(s.cfg.MinRequests)
	}
	n := 100.0
	for _, b := range s.cfg.SLO.Bounds {
		if p := b.Allowed(); p > 0 {
			n = max(n, 12/p)
		}
	}
	return math.Round(n)
}
