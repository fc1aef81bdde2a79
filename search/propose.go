package search

import (
	"fmt"
	"math"
	"time"

	"planner/internal/note"
	"planner/internal/parallel"
	"planner/sweep/measure"
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
	t := s.next()
	if s.cfg.Budget > 0 {
		left := s.cfg.Budget - s.spent - s.cfg.Overhead - t.Warmup - t.Cooldown
		if left < t.Window/partShare || left <= 0 {
			s.outcome, s.reason = OutOfBudget, note.Because(note.BudgetNoRoom, s.cfg.Budget)
			if s.narrow(few, s.cfg.Precision) {
				s.outcome, s.reason = Found, note.Because(note.NarrowEnough, 100*s.cfg.Precision)
			}
			return nil
		}
		t.Window = min(t.Window, left)
	}
	return s.trial(t)
}

// trial is the next trial, with what all of the search share.
func (s *MaxRate) trial(t measure.Trial) *measure.Trial {
	s.proposed++
	return s.cfg.trial(t, s.proposed, s.spent)
}

// trial fills in what all trials of a configuration share, of the one of a number, with so much
// of the budget spent ahead of it.
func (c *MaxRateConfig) trial(t measure.Trial, number int, spent time.Duration) *measure.Trial {
	if c.Budget > 0 {
		t.Limit = max(c.Budget-spent, 2*max(t.Warmup+t.Window+t.Cooldown, leastWarmup))
	}
	t.Number = number
	t.Knobs = c.Prior.Knobs
	t.Workload = c.Workload
	t.Objective = c.SLO
	t.Seed = trialSeed(c.Seed, number-1)
	return &t
}

// finished applies the stopping rules.
func (s *MaxRate) finished() (Outcome, note.Reason) {
	if why := s.distrusted(); why.Text != "" {
		return OutOfBudget, why
	}
	if len(s.posteriors) == 0 {
		return Searching, note.Reason{}
	}
	low, high, allMet, allMissed := s.extremes()
	if allMet && high >= s.cfg.Limit {
		return NotReached, note.Because(note.MetAtLargest, high)
	}
	if allMissed && s.loneRate(low) {
		return Infeasible, note.Because(note.MissedAtAll, low, s.failingAt(low))
	}
	bracketed, budget := !allMet && !allMissed, freeSpend
	if !bracketed {
		budget *= trialShare
	}
	wanted, spent := s.cfg.Precision, s.cfg.free() && s.simulated > budget
	if s.cfg.free() && s.simulated <= freeSpend {
		wanted *= freePrecision
	}
	if s.narrow(minTrials, wanted) {
		return Found, note.Because(note.NarrowEnough, 100*s.cfg.Precision)
	}
	if spent {
		return OutOfBudget, note.Because(note.TrialsSpent, len(s.tried))
	}
	return Searching, note.Reason{}
}

// narrow reports whether the interval is narrower than wanted, with a rate that was met, one
// that was missed, and so many trials near the answer.
func (s *MaxRate) narrow(trials int, wanted float64) bool {
	if len(s.posteriors) == 0 || s.near() < trials {
		return false
	}
	_, _, allMet, allMissed := s.extremes()
	return !allMet && !allMissed && s.posteriors.halfWidth(s.cfg.Confidence) < wanted
}

// near counts the trials that measured near the answer, of those that no choice was made by: those far from it say little, and
// a server that is not the same in all of them shows only there.
func (s *MaxRate) near() (n int) {
	answer := s.posteriors.quantile(0.5)
	for _, t := range s.tried[s.chosen:] {
		if t.valid && t.measured && math.Abs(math.Log(t.rate/answer)) < wide {
			n++
		}
	}
	return n
}

// next is the trial that is expected to reduce the variance of ln(maximum rate) most
// per second of engine time. Before anything is known it is a short one where the
// prediction, or what an idle engine does, says.
func (s *MaxRate) next() measure.Trial {
	if len(s.posteriors) == 0 {
		rate, why := s.cfg.Prior.Rate, "the predicted maximum rate"
		if rate <= 0 {
			rate, why = s.idle.start(), "a few requests at a time: finds the order of magnitude"
		}
		times := 0
		if s.cfg.Prior.Rate > 0 {
			times = 1
		}
		t := s.cfg.timed(min(rate, s.cfg.Limit), times, s.learned())
		t.Why = why
		return t
	}
	low, high := s.posteriors.quantile(safeQuantile), s.posteriors.quantile(1-safeQuantile)
	halfWidth := s.posteriors.halfWidth(s.cfg.Confidence)
	why := fmt.Sprintf("still +-%.0f %%: says the most per second", 100*halfWidth)
	least, most, allMet, allMissed := s.extremes()
	step := 1 + min(halfWidth, wide)
	switch {
	case allMet:
		low = step * most
		high, why = max(high, low), "every rate so far met the objective: goes up"
	case allMissed:
		high = least / step
		low, why = min(low, high), "every rate so far missed the objective: goes down"
	}
	times := longTimes
	if !s.cfg.free() && halfWidth > wide && (allMet || allMissed) {
		times = 0
	}
	var best measure.Trial
	worth := math.Inf(-1)
	views, learned := s.views(), s.learned()
	trials := make([]measure.Trial, rateChoices)
	for i, gain := range parallel.Map(rateChoices, func(i int) (gain float64) {
		rate := min(low*math.Pow(high/low, float64(i)/(rateChoices-1)), s.cfg.Limit)
		trials[i] = s.cfg.timed(rate, times, learned)
		for _, v := range views {
			gain += v.gain(rate, trials[i].Window, s.latency)
		}
		return gain / s.cfg.price(&trials[i])
	}) {
		if gain > worth {
			best, worth = trials[i], gain
		}
	}
	best.Why = why
	return best
}

// price is what a trial costs: engine time in seconds, or, where that is free, the
// requests to be simulated and what deciding on a trial costs beside them.
func (c *MaxRateConfig) price(t *measure.Trial) float64 {
	seconds := (t.Warmup + t.Window + t.Cooldown).Seconds()
	if c.free() {
		return enoughBeyond*coarseRequests + seconds*t.Rate
	}
	return seconds + c.Overhead.Seconds()
}

// view is what the posterior of a bound says of trials yet to be run.
type view struct {
	bound *assumed
	of    *posterior
	// weight is the probability that the bound limits the rate.
	weight float64
	// nodes are those of (ln max, kappa) that matter, with their probability.
	nodes []node
	mean  float64
}

type node struct{ logMax, kappa, mass float64 }

// views are those of the bounds that may limit the rate.
func (s *MaxRate) views() []view {
	probability, likeliest := s.posteriors.binding()
	var out []view
	for j, p := range s.posteriors {
		if probability[j] < safeQuantile && j != likeliest {
			continue
		}
		v := view{bound: &s.bounds[j], of: p, weight: max(probability[j], safeQuantile)}
		kappas := len(p.joint) / (len(p.mass) * p.nodes)
		total := 0.0
		for i := range p.mass {
			if p.mass[i] == 0 {
				continue
			}
			u := p.low + p.step*float64(i)
			for k := range kappas {
				mass := 0.0
				for _, m := range p.joint[(i*kappas+k)*p.nodes:][:p.nodes] {
					mass += m
				}
				if mass > 0 {
					v.nodes = append(v.nodes, node{u, v.bound.kappaAt(k, kappas), mass})
					v.mean += mass * u
					total += mass
				}
			}
		}
		if total == 0 {
			continue
		}
		for i := range v.nodes {
			v.nodes[i].mass /= total
		}
		v.mean /= total
		out = append(out, v)
	}
	return out
}

// gain is the expected reduction of the variance of ln max by a trial at a rate, where the
// slowest requests take the time latency, to first order: the value of the curve there and
// ln max have a covariance, and the value that is seen scatters by what the posterior leaves
// open, by the draw of the requests and by what the curve is wrong.
func (v *view) gain(rate float64, window, latency time.Duration) float64 {
	n := rate * window.Seconds()
	if v.bound.kind == onThroughput {
		n /= 1 + measure.BacklogHeld*latency.Seconds()/window.Seconds()
	}
	var mean, square, with, precision float64
	for _, x := range v.nodes {
		seen, variance := v.bound.expected(v.bound.curve(x.kappa, rate*math.Exp(-x.logMax)), n, v.of.phi)
		variance += x.kappa * x.kappa * v.of.scatter * v.of.scatter
		mean += x.mass * seen
		square += x.mass * seen * seen
		with += x.mass * seen * (x.logMax - v.mean)
		precision += x.mass / variance
	}
	scatter := max(square-mean*mean, 0) + 1/precision
	return v.weight * with * with / scatter
}

// expected is the value that a trial of n requests is expected to show where the curve has the
// value z, as far as it can be told, and the variance with which it does.
func (a *assumed) expected(z, n, phi float64) (seen, variance float64) {
	switch a.kind {
	case onThroughput:
		over := max(z, 0)
		return over, 1/n*math.Exp(2*over) + misfit*misfit*over*over
	case onMean:
		seen = min(max(z, -farMean), farMean)
		return seen, phi/n + misfit*misfit*seen*seen
	}
	seen = min(max(z, a.offset-far), a.offset+far)
	p := unlink(seen)
	slope := -(1 - p) * math.Log1p(-p)
	wrong := misfit * (seen - a.offset)
	return seen, a.dispersion(phi).Phi(p)*p*(1-p)/(n*slope*slope) + wrong*wrong
}
