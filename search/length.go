package search

import (
	"math"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// learned is what a search has learned that the length of its next trial depends on.
type learned struct {
	// latency is the time that a request takes from end to end in the worst case, mean
	// that of the mean request where the objective is met; 0 as far as not known.
	latency, mean time.Duration
	// phi is the dispersion of the bound that limits the rate.
	phi float64
	// distrusted counts the trials in a row, up to the last, that could not be trusted. The
	// next one is twice as long for each. unsettled counts all of them: what conversations and
	// prefixes take to settle is twice as long for each from then on.
	distrusted, unsettled int
}

// unstarted is what a search knows before its first trial.
func unstarted(p Prior) learned { return learned{latency: p.Latency, phi: p.Phi} }

// learned is what the trials so far tell.
func (s *MaxRate) learned() learned {
	p := learned{latency: s.latency, mean: s.mean, phi: s.cfg.Prior.Phi}
	if len(s.posteriors) > 0 {
		_, j := s.posteriors.binding()
		p.phi = s.posteriors[j].phi
	}
	for _, t := range s.tried {
		p.distrusted++
		p.unsettled++
		if t.valid {
			p.distrusted = 0
			p.unsettled--
		}
	}
	p.distrusted, p.unsettled = min(p.distrusted, few), min(p.unsettled, few)
	return p
}

// typical is the mean time of a request, as far as it is known.
func (p learned) typical() time.Duration {
	if p.mean > 0 {
		return p.mean
	}
	return p.latency
}

// timed plans a trial at a rate that is so many times as long as one that measures: long
// enough for the quantiles of the objective, for many clumps of requests beyond the limit,
// for the slowest requests, and for a queue that starts empty to come to its length. 0 times
// is a coarse one, which looks for the right order of magnitude.
func (c *MaxRateConfig) timed(rate float64, times int, p learned) measure.Trial {
	mean := c.Workload.MeanRate(rate)
	least := settled * p.latency
	if !c.free() {
		// Even a search that only counts requests gives a real engine some seconds.
		least = max(least, leastWarmup)
	}
	window := max(workload.Span(coarseRequests, mean), least)
	if times > 0 {
		enough := max(c.leastRequests(), enoughBeyond*coarseRequests*float64(max(c.Workload.Turns, 1)))
		window = max(workload.Span(enough, mean), least, c.relaxing(leastRelaxations, mean, p.phi))
		window = max(window, min(window*time.Duration(times), c.most(mean)))
	}
	if c.Budget > 0 {
		window = min(window, c.most(mean))
	}
	window = c.lap(window, rate) << p.distrusted
	if c.Window > 0 {
		window = c.Window
	}
	warmup := 2 * leastWarmup
	if p.latency > 0 {
		fill := settled * p.latency
		if !c.free() {
			fill /= 2
		}
		warmup = max(leastWarmup, fill)
	}
	warmup = min(max(warmup, c.relaxing(settled, mean, p.phi))<<p.distrusted, window)
	if c.Budget > 0 {
		warmup = min(warmup, c.Budget/(2*trialShare)<<p.distrusted)
	}
	if c.Warmup > 0 {
		warmup = c.Warmup
	}
	t := c.steadied(measure.Trial{Rate: rate, Warmup: warmup, Window: window}, times, p)
	t.Cooldown = min(c.SLO.Horizon(c.output), t.Window/2)
	return t
}

// most is what the window of one trial may take.
func (c *MaxRateConfig) most(rate float64) time.Duration {
	if c.free() {
		return workload.Span(freeSpend/trialShare, rate)
	}
	return c.Budget / trialShare
}

// free reports whether engine time costs nothing, as of a simulated engine.
func (c *MaxRateConfig) free() bool { return c.Budget == 0 }

// leastRequests is how many requests a trial needs to resolve the quantiles of
// the objective: some beyond each.
func (c *MaxRateConfig) leastRequests() float64 {
	if c.MinRequests > 0 {
		return float64(c.MinRequests)
	}
	n := float64(coarseRequests)
	for _, b := range c.SLO.Bounds {
		if p := b.Allowed(); p > 0 {
			n = max(n, enoughBeyond/(p*c.Workload.Share(b.Class)))
		}
	}
	return math.Round(n)
}

// relaxing is so many times as long as a queue that starts empty takes to come near the
// length that it has in the long run, as far as it is known: exceedances that stay
// correlated for a time tau have a dispersion of 2 rate tau. The turns of a
// conversation are one clump; how long they take to settle is known otherwise.
func (c *MaxRateConfig) relaxing(times, rate, phi float64) time.Duration {
	return workload.Span(times*phi/float64(max(c.Workload.Turns, 1)), 2*rate)
}

// lap lengthens the window of a trial to the whole trace: what bursts do to a server
// is seen by counting all of them once. Where engine time is short, and a lap would
// take more of it than one trial may, the window stays.
func (c *MaxRateConfig) lap(window time.Duration, rate float64) time.Duration {
	lap := c.Workload.Lap(rate)
	if c.Budget > 0 && lap > c.Budget/trialShare {
		return window
	}
	return max(window, lap)
}

// steadied lengthens a trial of conversations or shared prefixes so that the traffic
// is steady, and the prefix cache full, when the window begins. The requests of
// a conversation are one clump, and its length is the time that the number under
// way takes to change: the window is lengthened as well.
func (c *MaxRateConfig) steadied(t measure.Trial, times int, p learned) measure.Trial {
	settling := c.Workload.Settling(t.Rate, p.typical())
	if settling == 0 {
		return t
	}
	if c.Window == 0 && c.Workload.Turns > 1 {
		courses := time.Duration(max(times*leastRelaxations, 1)) * c.Workload.Course(p.typical())
		if c.Budget > 0 {
			courses = min(courses, c.Budget/trialShare)
		}
		t.Window = max(t.Window, courses)
	}
	if c.Warmup == 0 {
		if c.Budget > 0 {
			settling = min(settling, c.Budget/trialShare)
		}
		t.Warmup = max(t.Warmup, settling<<p.unsettled+min(t.Warmup, leastWarmup))
	}
	return t
}
