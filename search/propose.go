package search

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// Next proposes the next trial, the same one until it has been observed; none once the search has ended.
func (s *MaxRate) Next() []measure.Trial {
	if s.outcome != Searching {
		return nil
	}
	t, probe := s.probe()
	if !probe {
		if s.finish(); s.outcome != Searching {
			return nil
		}
		t = s.next()
		left := s.cfg.left(&t, s.spent)
		if left <= 0 || left < t.Window/partShare {
			s.spendOut(note.Because(note.BudgetNoRoom, s.cfg.Budget))
			return nil
		}
		t.Window = left
	}
	return []measure.Trial{s.cfg.trial(t, s.ran+1, s.spent)}
}

// left is how much of the window of a trial the budget still allows, of which spent has been used.
func (c *MaxRateConfig) left(t *measure.Trial, spent time.Duration) time.Duration {
	if c.free() {
		return t.Window
	}
	return min(t.Window, c.Budget-spent-c.Overhead-t.Warmup-t.Cooldown)
}

// trial completes a trial: with its number, its limit given the budget spent, and what all trials have in common.
func (c *MaxRateConfig) trial(t measure.Trial, number int, spent time.Duration) measure.Trial {
	if c.Budget > 0 {
		t.Limit = max(c.Budget-spent, 2*max(t.Warmup+t.Window+t.Cooldown, leastWarmup))
	}
	t.Number, t.Seed = number, trialSeed(c.Seed, number-1)
	t.Knobs, t.Workload, t.Objective = c.Prior.Knobs, c.Workload, c.SLO
	return t
}

// finish applies the stopping rules.
func (s *MaxRate) finish() {
	trials, most := minTrials, freeSpend
	if s.cfg.free() {
		trials = few
	}
	if s.met == 0 || s.missed == 0 {
		most *= trialShare
	}
	doubts := note.Notes(list.Map(s.doubted, func(t attempt) note.Note { return t.Doubt() }))
	switch n := len(doubts); {
	case s.inRow >= few:
		s.outcome, s.reason = OutOfBudget, note.Because(note.InvalidInRow, few, doubts[n-few:].Short())
	case s.cfg.Budget > 0 && n > 1 && s.wasted > s.cfg.Budget/partShare:
		s.outcome, s.reason = OutOfBudget, note.Because(note.InvalidTime, n, n+len(s.tried), s.wasted.Round(time.Second), s.cfg.Budget, doubts.Short())
	case len(s.tried) == 0:
	case s.missed == 0 && s.highest >= s.cfg.Limit:
		s.outcome, s.reason = NotReached, note.Because(note.MetAtLargest, s.highest)
	case s.met == 0 && s.loneRate():
		s.outcome, s.reason = Infeasible, note.Because(note.MissedAtAll, s.lowest().rate, s.lowest().failing(": "))
		if low := s.lowest(); low.failing("") != "" && low.Refuses() {
			s.outcome = Unmeasured
		}
	case s.narrow(trials):
		s.outcome, s.reason = Found, note.Because(note.NarrowEnough, 100*s.cfg.Precision)
	case s.cfg.free() && s.simulated > most:
		s.spendOut(note.Because(note.TrialsSpent, n+len(s.tried)))
	}
}

// spendOut ends a search that may not go on: as Found where the interval is narrow by at least few trials.
func (s *MaxRate) spendOut(why note.Reason) {
	if s.outcome, s.reason = OutOfBudget, why; s.narrow(few) {
		s.outcome, s.reason = Found, note.Because(note.NarrowEnough, 100*s.cfg.Precision)
	}
}

// narrow reports whether the interval is as narrow as asked for. Where trials enclose the answer, the gap between them
// decides. Otherwise one rate must have met the objective and another missed it, and at least so many measuring trials
// must be near the answer, without those by which a race chose: trials far from it say little, and only near it does a
// server show that it differs between trials.
func (s *MaxRate) narrow(trials int) bool {
	answer := s.posteriors.quantile(0.5)
	near := list.Count(s.tried[s.chosen:], func(t attempt) bool {
		return t.measured && math.Abs(math.Log(t.rate/answer)) < wide
	})
	if met, missed := s.enclosed(); missed > 0 {
		return (missed-met)/(missed+met) < s.cfg.Precision
	}
	return s.met > 0 && s.missed > 0 && near >= trials && s.posteriors.halfWidth(s.cfg.Confidence) < s.cfg.Precision
}

// next is the trial that is expected to reduce the variance of ln(maximum rate) most per second of engine time. The
// first is at the predicted rate or, without one, a coarse one at a rate that the idle engine suggests.
func (s *MaxRate) next() measure.Trial {
	learned := s.learned()
	if len(s.posteriors) == 0 {
		rate, times, why := s.cfg.Prior.Rate, 1, "the predicted maximum rate"
		if rate <= 0 {
			rate, times, why = flat/cmp.Or(s.idle.service, flat*time.Second).Seconds(), 0, "a few requests at a time: finds the order of magnitude"
		}
		t := s.cfg.timed(min(rate, s.cfg.Limit), times, learned)
		t.Why = why
		return t
	}
	low, high := s.posteriors.quantile(safeQuantile), s.posteriors.quantile(1-safeQuantile)
	halfWidth := s.posteriors.halfWidth(s.cfg.Confidence)
	why := fmt.Sprintf("still +-%.0f %%: says the most per second", 100*halfWidth)
	step := 1 + min(halfWidth, wide)
	switch met, missed := s.enclosed(); {
	case missed > 0:
		low, high, why = math.Sqrt(met*missed), math.Sqrt(met*missed), "no curve goes through all trials: between those that met and missed"
	case s.missed == 0:
		low = step * s.highest
		high, why = max(high, low), "every rate so far met the objective: goes up"
	case s.met == 0:
		high = s.lowest().rate / step
		low, why = min(low, high), "every rate so far missed the objective: goes down"
	}
	times := longTimes
	// Going down costs little on a simulated engine: trials that miss are ended early.
	if halfWidth > wide && (s.missed == 0 || s.met == 0 && !s.cfg.free()) {
		times = 0
	}
	probability, likeliest := s.posteriors.binding()
	trials := make([]measure.Trial, rateChoices)
	worth := parallel.Map(rateChoices, func(i int) (gain float64) {
		rate := min(low*math.Pow(high/low, float64(i)/(rateChoices-1)), s.cfg.Limit)
		trials[i] = s.cfg.timed(rate, times, learned)
		for j, p := range s.posteriors {
			if probability[j] >= safeQuantile || j == likeliest {
				gain += max(probability[j], safeQuantile) * s.observable(j, rate) * p.gain(rate, trials[i].Window, s.latency)
			}
		}
		return gain / s.cfg.price(&trials[i])
	})
	best := trials[floats.MaxIdx(worth)]
	best.Why = why
	return best
}

// observable is how likely a trial shows bound j: where others are exceeded, gaps between tokens say little.
func (s *MaxRate) observable(j int, rate float64) float64 {
	chance := 1.0
	for i, p := range s.posteriors {
		if i != j && j < len(s.cfg.SLO.Bounds) && !s.bounds[j].waits {
			chance = min(chance, p.survival(math.Log(rate)))
		}
	}
	return chance
}

// price is what a trial costs: engine seconds or, where these are free, requests to simulate plus some for the decision.
func (c *MaxRateConfig) price(t *measure.Trial) float64 {
	seconds := (t.Warmup + t.Window + t.Cooldown).Seconds()
	if c.free() {
		return enoughBeyond*coarseRequests + seconds*t.Rate
	}
	return seconds + c.Overhead.Seconds()
}

// gain is the expected reduction of the variance of ln max by a trial, to first order: the squared covariance of ln max
// with the value seen, over the variance of that value, which comes from what the posterior leaves open, the draw of the
// requests and the misfit of the curve. latency is that of the slowest requests.
func (p *posterior) gain(rate float64, window, latency time.Duration) float64 {
	n := rate * window.Seconds()
	if p.bound.kind == onThroughput {
		n /= 1 + measure.BacklogHeld*latency.Seconds()/window.Seconds()
	}
	var mean, square, with, precision float64
	logMax, ratio := math.NaN(), 0.0
	for _, x := range p.nodes {
		if x.logMax != logMax { // nodes are in the order of their largest rates
			logMax, ratio = x.logMax, rate*math.Exp(-x.logMax)
		}
		seen, variance := p.bound.expected(raised(p.bound.offset, p.floor, p.bound.curve(x.kappa, ratio)), n, p.phi)
		variance += x.kappa * x.kappa * p.scatter * p.scatter
		mean += x.mass * seen
		square += x.mass * seen * seen
		with += x.mass * seen * (x.logMax - p.mean)
		precision += x.mass / variance
	}
	scatter := max(square-mean*mean, 0) + 1/precision
	return with * with / scatter
}

// expected is what a trial of n requests is expected to show if the curve has the value z, and the variance of that.
func (a *assumed) expected(z, n, phi float64) (seen, variance float64) {
	switch a.kind {
	case onThroughput:
		over := max(z, 0)
		return over, 1/n*math.Exp(2*over) + misfit*misfit*over*over
	case onMean:
		seen = min(max(z, -farMean), farMean)
		return seen, phi/n + misfit*misfit*seen*seen
	}
	seen = min(max(z, a.offset-far), a.offset+a.above)
	p := unlink(seen)
	slope := -(1 - p) * math.Log1p(-p)
	wrong := misfit * (seen - a.offset)
	return seen, stat.Dispersion{At: phi, Level: a.share, Gamma: a.gamma}.Phi(p)*p*(1-p)/(n*slope*slope) + wrong*wrong
}
