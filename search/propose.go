package search

import (
	"fmt"
	"math"

	"planner/internal/note"
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
	if s.outcome, s.reason = s.finished(); s.outcome != Searching {
		return nil
	}
	rate, coarse, why := s.nextRate()
	t := s.timed(rate, coarse)
	t.Why = why
	if s.cfg.Budget > 0 {
		if len(s.tried) < minTrials {
			// A prediction that is far too low must not spend all on its rate.
			t.Window = min(t.Window, s.cfg.Budget/(minTrials+1))
		}
		left := s.cfg.Budget - s.spent - s.cfg.Overhead - t.Warmup - t.Cooldown
		if left < t.Window/4 || left <= 0 {
			s.outcome, s.reason = OutOfBudget, note.Because(note.BudgetNoRoom, s.cfg.Budget)
			return nil
		}
		t.Window = min(t.Window, left)
	}
	return s.trial(t)
}

// trial is the next trial, with what all of the search share.
func (s *MaxRate) trial(t measure.Trial) *measure.Trial {
	s.proposed++
	return s.cfg.trial(t, s.proposed)
}

// trial fills in what all trials of a configuration share, of the one of a number.
func (c *MaxRateConfig) trial(t measure.Trial, number int) *measure.Trial {
	t.Number = number
	t.Knobs = c.Prior.Knobs
	t.Workload = c.Workload
	t.Objective = c.SLO
	t.Seed = trialSeed(c.Seed, number-1)
	return &t
}

// finished applies the stopping rules.
func (s *MaxRate) finished() (Outcome, note.Reason) {
	if s.learned().distrusted == invalidInRow {
		return OutOfBudget, note.Because(note.InvalidInRow, invalidInRow)
	}
	if len(s.tried) >= maxTrials {
		return OutOfBudget, note.Because(note.TrialsSpent, maxTrials)
	}
	if len(s.posteriors) == 0 {
		return Searching, note.Reason{}
	}
	low, high, allMet, allMissed := s.extremes()
	if allMet && high >= s.cfg.Limit {
		return NotReached, note.Because(note.MetAtLargest, high)
	}
	if allMissed && s.idle.loneRate(low) {
		return Infeasible, note.Because(note.MissedAtAll, low)
	}
	m := s.posteriors
	if len(s.valid()) >= minTrials && !allMet && !allMissed && m.halfWidth(s.cfg.Confidence) < s.cfg.Precision {
		if s.guard.more(s, m) {
			return Searching, note.Reason{}
		}
		return Found, note.Because(note.NarrowEnough, 100*s.cfg.Precision)
	}
	return Searching, note.Reason{}
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
	m := s.posteriors
	median, half := m.quantile(0.5), m.halfWidth(s.cfg.Confidence)
	fine := s.learned().fine
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
