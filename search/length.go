package search

import (
	"cmp"
	"math"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// learned is what a search has learned so far that the length of its next trial depends on.
type learned struct {
	latency, mean time.Duration // as those of [MaxRate]
	// phi is the dispersion of the bound that limits the rate.
	phi float64
	// distrusted counts the untrusted trials at the end, in a row: each doubles the next trial. unsettled counts all of
	// them: each doubles the time in which conversations and prefixes settle.
	distrusted, unsettled int
}

// learned is what the trials so far tell.
func (s *MaxRate) learned() learned {
	p := learned{s.latency, s.mean, s.cfg.Prior.Phi, min(s.inRow, few), min(len(s.doubted), few)}
	if len(s.posteriors) > 0 {
		_, j := s.posteriors.binding()
		p.phi = s.posteriors[j].phi
	}
	return p
}

// timed plans a trial that is times as long as a measuring one: long enough for the quantiles of the objective, for many
// clumps of exceedances, for the slowest requests, for an initially empty queue to reach its usual length, and for a
// whole trace: what bursts do to a server shows only when all of them are counted. The window begins when the traffic of
// conversations and shared prefixes is steady and the prefix cache full, and spans several conversations: the requests
// of one are one clump, and the number in progress changes over the length of one. 0 times is a coarse trial, which
// looks for the right order of magnitude.
func (c *MaxRateConfig) timed(rate float64, times int, p learned) measure.Trial {
	mean := c.Workload.MeanRate(rate)
	least, fill := settled*p.latency, settled*p.latency
	if !c.free() {
		least, fill = max(least, leastWarmup), fill/2 // some seconds even if requests are only counted
	}
	window := max(workload.Span(coarseRequests, mean), least)
	if times > 0 {
		enough := max(c.leastRequests(), enoughBeyond*coarseRequests*float64(max(c.Workload.Turns, 1)))
		window = c.longer(max(workload.Span(enough, mean), least, c.relaxing(leastRelaxations, mean, p.phi)), times, mean)
	}
	window = c.within(window)
	if lap := c.Workload.Lap(rate); lap == c.within(lap) {
		window = max(window, lap)
	}
	window = cmp.Or(c.Window, window<<p.distrusted)
	warmup := min(c.within(2*max(leastWarmup, cmp.Or(fill, 2*leastWarmup), c.relaxing(settled, mean, p.phi)))/2<<p.distrusted, window)
	latency := cmp.Or(p.mean, p.latency)
	if settling := c.Workload.Settling(rate, latency); settling > 0 {
		if c.Window == 0 && c.Workload.Turns > 1 {
			course := time.Duration(max(min(times, 1)*leastRelaxations, 1)) * c.Workload.Course(latency)
			window = max(window, c.within(c.longer(course, max(times, 1), mean)))
		}
		warmup = max(warmup, c.within(settling)<<p.unsettled+min(warmup, leastWarmup))
	}
	return measure.Trial{Rate: rate, Warmup: cmp.Or(c.Warmup, warmup), Window: window, Cooldown: min(c.SLO.Horizon(c.output), window/2)}
}

// longer is so many times a window or, where engine time is free, as much of that as can be simulated quickly.
func (c *MaxRateConfig) longer(window time.Duration, times int, mean float64) time.Duration {
	long := window * time.Duration(times)
	if c.free() {
		long = max(window, min(long, workload.Span(freeSpend/trialShare, mean)))
	}
	return long
}

// within caps a time at what one trial may take of the budget.
func (c *MaxRateConfig) within(t time.Duration) time.Duration {
	if c.free() {
		return t
	}
	return min(t, c.Budget/trialShare)
}

// free reports whether engine time is free, as on a simulated engine.
func (c *MaxRateConfig) free() bool { return c.Budget == 0 }

// leastRequests is how many requests a trial needs to resolve the quantiles of the objective: enoughBeyond beyond each.
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

// relaxing is so many relaxation times of a queue, as far as its dispersion tells: exceedances that stay correlated for
// a time tau have a dispersion of 2 rate tau. The turns of a conversation are one clump and no sign of a slow queue; how
// long conversations take to settle is known otherwise.
func (c *MaxRateConfig) relaxing(times, rate, phi float64) time.Duration {
	return workload.Span(times*phi/float64(max(c.Workload.Turns, 1)), 2*rate)
}

// windowShort warns where the window was fixed at less than half of what the search would choose at a rate.
func (s *MaxRate) windowShort(rate float64) note.Notes {
	free, known := s.cfg, s.learned()
	free.Window, known.distrusted = 0, 0
	own := free.timed(rate, 1, known).Window
	return note.If(s.cfg.Window > 0 && s.cfg.Window < own/2, note.WindowShort, s.cfg.Window, own.Round(time.Second))
}
