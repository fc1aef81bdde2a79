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
	// next one is twice as long for each.
	distrusted int
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
		if t.valid {
			p.distrusted = 0
		}
	}
	p.distrusted = min(p.distrusted, invalidInRow)
	return p
}

// timed is the next trial of a search at a rate.
func (s *MaxRate) timed(rate float64, coarse bool) measure.Trial {
	return s.cfg.timed(rate, coarse, s.learned())
}

// typical is the mean time of a request, as far as it is known.
func (p learned) typical() time.Duration {
	if p.mean > 0 {
		return p.mean
	}
	return p.latency
}

const (
	firstWindow = 40 * time.Second
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
	// longestRelaxation bounds what a dispersion is believed to say of time,
	// freeRelaxation where time costs nothing.
	longestRelaxation = 40 * time.Second
	freeRelaxation    = 100 * time.Hour
	// leastCourses is the length of a window in conversations, one after another. An
	// engine whose cache just holds the histories of those under way fails when
	// their number happens to rise, which it does within some tens of courses.
	leastCourses = 10
	// freeRequests make a trial that costs no engine time: they are simulated in
	// milliseconds; freeQuantiles are so many times what the quantiles need.
	freeRequests, freeQuantiles = 2500, 2.5
	// settlingShare is the part of the budget, as a divisor, that the warm-up of one
	// trial may take, lapShare the one that one lap of a trace may.
	settlingShare, lapShare = 10, 8
)

// timed plans a trial's length: it grows from trial to trial, is long enough for
// the quantiles of the objective and for the slowest requests, and at high rates no
// longer than what its requests are worth. A coarse trial looks for the right order
// of magnitude.
func (c *MaxRateConfig) timed(rate float64, coarse bool, p learned) measure.Trial {
	mean := c.Workload.MeanRate(rate)
	relaxation := c.relaxation(mean, p.phi)
	window := c.window(mean, p)
	if coarse {
		window = max(workload.Span(60, mean), 5*p.latency, min(20*time.Second, workload.Span(300, mean)), least(mean))
	} else {
		window = max(window, leastRelaxations*relaxation)
	}
	if c.free() {
		requests := max(freeRequests, freeQuantiles*c.leastRequests())
		if coarse {
			requests /= 4
		}
		window = max(window, workload.Span(requests, rate))
	}
	window = c.lap(window, rate) << p.distrusted
	if c.Window > 0 {
		window = c.Window
	}
	warmup := unknownWarmup
	if p.latency > 0 {
		warmup = max(leastWarmup, p.latency*3/2)
	}
	warmup = min(max(warmup, 3*relaxation)<<p.distrusted, window)
	if c.Warmup > 0 {
		warmup = c.Warmup
	}
	t := c.steadied(measure.Trial{Rate: rate, Warmup: warmup, Window: window}, coarse, p)
	t.Cooldown = min(c.SLO.Horizon(c.output), t.Window/2, mostCooldown)
	return t
}

// window is that of a trial which measures.
func (c *MaxRateConfig) window(rate float64, p learned) time.Duration {
	enough := c.leastRequests()
	window := max(firstWindow, workload.Span(enough, rate))
	clumps := usualRequests * float64(max(c.Workload.Turns, 1))
	window = min(window, max(workload.Span(max(enough, clumps), rate), least(rate)))
	return max(window, 5*p.latency)
}

// free reports whether engine time costs nothing, as of a simulated engine.
func (c *MaxRateConfig) free() bool { return c.Budget == 0 }

// least is the shortest window: even a search that only counts requests gives a real
// engine some seconds.
func least(rate float64) time.Duration { return min(shortWindow, workload.Span(20_000, rate)) }

// leastRequests is how many requests a trial needs to resolve the quantiles of
// the objective: 12 beyond each.
func (c *MaxRateConfig) leastRequests() float64 {
	if c.MinRequests > 0 {
		return float64(c.MinRequests)
	}
	n := 100.0
	for _, b := range c.SLO.Bounds {
		if p := b.Allowed(); p > 0 {
			n = max(n, 12/(p*c.Workload.Share(b.Class)))
		}
	}
	return math.Round(n)
}

// relaxation is how long a queue that starts empty takes to come near the length
// that it has in the long run, as far as it is known: exceedances that stay
// correlated for a time tau have a dispersion of 2 rate tau. The turns of a
// conversation are one clump; how long they take to settle is known otherwise.
func (c *MaxRateConfig) relaxation(rate, phi float64) time.Duration {
	longest := longestRelaxation
	if c.free() {
		longest = freeRelaxation
	}
	return min(workload.Span(phi/float64(max(c.Workload.Turns, 1)), 2*rate), longest)
}

// lap lengthens the window of a trial to the whole trace: what bursts do to a server
// is seen by counting all of them once. Where engine time is short, and a lap would
// take more of it than one trial may, the window stays.
func (c *MaxRateConfig) lap(window time.Duration, rate float64) time.Duration {
	lap := c.Workload.Lap(rate)
	if c.Budget > 0 && lap > c.Budget/lapShare {
		return window
	}
	return max(window, lap)
}

// steadied lengthens a trial of conversations or shared prefixes so that the traffic
// is steady, and the prefix cache full, when the window begins. The requests of
// a conversation are one clump, and its length is the time that the number under
// way takes to change: the window is lengthened as well.
func (c *MaxRateConfig) steadied(t measure.Trial, coarse bool, p learned) measure.Trial {
	settling := c.Workload.Settling(t.Rate, p.typical())
	if settling == 0 {
		return t
	}
	courses := time.Duration(leastCourses)
	if coarse {
		courses = 1
	}
	if c.Window == 0 && c.Workload.Turns > 1 {
		t.Window = max(t.Window, courses*c.Workload.Course(p.typical()))
	}
	if c.Warmup == 0 {
		if c.Budget > 0 {
			settling = min(settling, c.Budget/settlingShare)
		}
		t.Warmup = max(t.Warmup, settling+min(t.Warmup, leastWarmup))
	}
	return t
}
