package main

import (
	"math"
	"slices"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// span is a part of a run.
type span struct{ from, to time.Duration }

// pool is the statistic of a bound over its limit, from the requests of several runs
// that were due in a span; false without any.
func pool(b measure.Bound, s span, runs ...*measure.Observation) (ratio float64, ok bool) {
	if b.Metric == measure.ITL {
		return gaps(b, runs)
	}
	var all []float64
	for _, o := range runs {
		for i := range o.Records {
			r := &o.Records[i]
			if r.Due < s.from || r.Due >= s.to {
				continue
			}
			if v, ok := figure(b, r); ok {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	if b.Quantile > 0 {
		slices.Sort(all)
		return all[int(math.Ceil(b.Quantile*float64(len(all))))-1], true
	}
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all)), true
}

// gaps is pool for the times between tokens, which runs record for their window.
func gaps(b measure.Bound, runs []*measure.Observation) (ratio float64, ok bool) {
	all := runs[0].Gaps
	for _, o := range runs[1:] {
		all.Merge(o.Gaps)
	}
	limit := float64(b.Limit) / float64(time.Microsecond)
	if b.Quantile == 0 {
		return all.Mean() / limit, all.TotalCount() > 0
	}
	return float64(all.ValueAtQuantile(100*b.Quantile)) / limit, all.TotalCount() > 0
}

// figure is what of a request is bounded over its limit; false if it has no such
// latency.
func figure(b measure.Bound, r *measure.Record) (ratio float64, ok bool) {
	var v time.Duration
	switch b.Metric {
	case measure.Goodput:
		return b.Limits.Worst(r)
	case measure.TTFT:
		v, ok = r.TTFT()
	case measure.TPOT:
		v, ok = r.TPOT()
	default:
		v, ok = r.E2E()
	}
	return float64(v) / float64(b.Limit), ok
}

// run simulates a load of n requests at a rate, behind a warm-up in which the
// traffic becomes steady. A trace is replayed twice, behind a lap of it.
func (in *instance) run(rate, n float64, seed uint64) (*measure.Observation, span) {
	w := in.cfg.Workload
	w.Timeout, w.AnyRow = 0, true
	if w.Replayed() {
		n = 2 * float64(len(w.Replay))
	}
	warmup := max(workload.Span(n/2, rate), w.Settling(rate, 4*in.latency))
	t := measure.Trial{Knobs: in.knobs, Workload: &w, Rate: rate, Warmup: warmup, Window: workload.Span(n, rate), Seed: seed, Whole: true,
		Objective: in.cfg.Objective}
	o, err := in.sim.Observe(t)
	if err != nil {
		panic(err) // it ran on the idle engine
	}
	return &o, span{t.Warmup, t.Warmup + t.Window}
}

// worst is the logarithm of the largest ratio of a statistic to its limit at a rate,
// and the bound that has it.
func (in *instance) worst(rate, n float64, seeds int) (level float64, binding measure.Bound) {
	var runs []*measure.Observation
	var s span
	for seed := range seeds {
		o, window := in.run(rate, n, truthSeed+uint64(seed))
		runs, s = append(runs, o), window
	}
	level = math.Inf(-1)
	for _, b := range in.cfg.Objective.Bounds {
		if ratio, ok := pool(b, s, runs...); ok && math.Log(ratio) > level {
			level, binding = math.Log(ratio), b
		}
	}
	return level, binding
}

// truthSeed is the first seed of the runs for a truth, far from those of searches.
const truthSeed = 900_000_000

// throughput is how many requests a second end in the window of a load.
func (in *instance) throughput(rate, n float64, seeds int) float64 {
	sum := 0.0
	for seed := range seeds {
		o, window := in.run(rate, n, truthSeed+uint64(seed))
		ended := 0
		for i := range o.Records {
			if last := o.Records[i].Last; last >= window.from && last < window.to {
				ended++
			}
		}
		sum += float64(ended) / (window.to - window.from).Seconds() / float64(seeds)
	}
	return sum
}
