package main

import (
	"math"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// subject is what has a maximum rate: a server with its load and its limits.
type subject struct {
	workload  *workload.Workload
	objective measure.SLO
	knobs     measure.Knobs
	observe   func(measure.Trial) (measure.Observation, error)
	// start is a first guess at the capacity, latency is the mean time of a request on
	// an idle server.
	start   float64
	latency time.Duration
	// starts is the least number of starts of the server that must be seen.
	starts int
}

// truthSeed is the first seed of the runs for a truth, far from those of searches.
const truthSeed = 900_000_000

// runs simulates a load of n requests at a rate with each of several seeds, behind a
// warm-up in which the traffic becomes steady. A trace is replayed twice behind a lap
// of it, and once is enough.
func (s *subject) runs(rate, n float64, seeds int) ([]*measure.Observation, span) {
	w := *s.workload
	w.Timeout = 0
	if w.Replayed() {
		n, seeds = 2*float64(len(w.Replay)), 1
	}
	t := measure.Trial{Knobs: s.knobs, Workload: &w, Rate: rate, Window: workload.Span(n, rate), Whole: true, Objective: s.objective,
		Warmup: max(workload.Span(n/2, rate), w.Settling(rate, 4*s.latency))}
	var all []*measure.Observation
	for seed := range seeds {
		t.Seed = truthSeed + uint64(seed)
		o, err := s.observe(t)
		if err != nil {
			panic(err) // it ran when it was idle
		}
		all = append(all, &o)
	}
	return all, span{t.Warmup, t.Warmup + t.Window}
}

// worst is the logarithm of the largest ratio of a statistic to its limit at a rate,
// and the bound that has it. A trace is all there is, so nothing of it is uncertain.
func (s *subject) worst(rate, n float64, seeds int) (level sample, binding measure.Bound) {
	runs, window := s.runs(rate, n, seeds)
	level = sample{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for _, b := range s.objective.Bounds {
		ratio, ok := pool(b, window, runs...)
		if !ok {
			continue
		}
		if s.workload.Replayed() {
			ratio.low, ratio.high = ratio.value, ratio.value
		}
		if math.Log(ratio.value) > level.value {
			level.value, binding = math.Log(ratio.value), b
		}
		level.low, level.high = max(level.low, math.Log(max(ratio.low, least))), max(level.high, math.Log(ratio.high))
	}
	return level, binding
}

// least is a ratio to a limit that is as good as none.
const least = 1e-6

// flow is how many requests a second come in the window of a load, and how many end. What
// comes counts at the time that is intended for it, also where it is a turn that waits for
// the answer to the one before: such turns a server owes as it does those that were sent.
// One that keeps up owes about as many at the end as at the beginning, be they late or not.
func (s *subject) flow(rate, n float64, seeds int) (came, left, wide float64) {
	runs, window := s.runs(rate, n, seeds)
	within := func(at time.Duration) bool { return at >= window.from && at < window.to }
	perSecond := func(n int) float64 {
		return rate / s.workload.MeanRate(rate) * float64(n) / (window.to - window.from).Seconds()
	}
	ended := func(o *measure.Observation) float64 {
		return perSecond(list.Count(o.Records, func(r measure.Record) bool { return within(r.Last) }))
	}
	for i, o := range runs {
		due := s.workload.Schedule(rate, window.to, truthSeed+uint64(i))
		came += perSecond(list.Count(due, func(r workload.Request) bool { return within(r.Due) })) / float64(len(runs))
		left += ended(o) / float64(len(runs))
	}
	return came, left, twoErrors(runs, ended)
}
