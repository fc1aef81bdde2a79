package main

import (
	"cmp"
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/list"
	"planner/internal/parallel"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// landscape is a set of knob sets with their true maximum rates.
type landscape struct {
	name  string
	cases map[measure.Knobs]*testCase
	knobs []measure.Knobs
	best  int
	// shared and own are the errors of the simulator in ln rate: one that all sets
	// share, one of each set's own.
	shared, own float64
	// deceived makes the simulator predict 40 % less than the truth for the best
	// set.
	deceived bool
}

const (
	restart = 90 * time.Second
	// Errors of a simulator that is worth its name.
	sharedError, ownError = 0.10, 0.08
)

// landscapes are two engines with 20 knob sets each, under limits on two
// latencies, the first again with a simulator that deceives, and three that no
// constant of the race was chosen on: other engines, requests and limits, and a
// simulator that is off by twice as much.
func landscapes() []landscape {
	two := objective(measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond},
		measure.Bound{Metric: measure.TPOT, Quantile: 0.99, Limit: 50 * time.Millisecond})
	a := newLandscape("A: prompts dominate", virtual.Engine{Base: 8 * time.Millisecond, PerToken: 25 * time.Microsecond, PerSequence: 40 * time.Microsecond}, chat(), two)
	b := newLandscape("B: sequences dominate", virtual.Engine{Base: 12 * time.Millisecond, PerToken: 15 * time.Microsecond, PerSequence: 120 * time.Microsecond}, chat(), two)
	c := a
	c.name, c.deceived = "A, best set under-predicted by 40 %", true
	d := newLandscape("C, held out: long prompts, p95 TTFT and p90 E2E", virtual.Engine{Base: 15 * time.Millisecond, PerToken: 45 * time.Microsecond,
		PerSequence: 60 * time.Microsecond}, documents(), objective(measure.Bound{Metric: measure.TTFT, Quantile: 0.95, Limit: 1500 * time.Millisecond},
		measure.Bound{Metric: measure.E2E, Quantile: 0.90, Limit: 12 * time.Second}))
	e := newLandscape("D, held out: goodput, simulator twice as noisy", virtual.Engine{Base: 10 * time.Millisecond, PerToken: 35 * time.Microsecond,
		PerSequence: 85 * time.Microsecond}, chat(), objective(
		measure.Bound{Metric: measure.Goodput, Quantile: 0.95, Limits: measure.Limits{TTFT: 400 * time.Millisecond, TPOT: 35 * time.Millisecond}}))
	e.shared, e.own = 2*sharedError, 2*ownError
	f := d
	f.name, f.deceived = "C, best set under-predicted by 40 %", true
	return []landscape{a, b, c, d, e, f}
}

// documents is a workload of long prompts and short answers.
func documents() *workload.Workload {
	shape := workload.Shape{
		Prompt: workload.Lengths{Dist: workload.Lognormal, Median: 1800, Sigma: 0.6, Min: 200, Max: 8000},
		Output: workload.Lengths{Dist: workload.Lognormal, Median: 80, Sigma: 0.7, Min: 5, Max: 600},
	}
	return &workload.Workload{Class: "documents", Arrivals: workload.Poisson, Shapes: []workload.Shape{shape}}
}

func newLandscape(name string, e virtual.Engine, w *workload.Workload, slo measure.SLO) landscape {
	l := landscape{name: name, cases: map[measure.Knobs]*testCase{}, shared: sharedError, own: ownError}
	for _, budget := range []int{512, 1024, 2048, 4096} {
		for _, sequences := range []int{32, 64, 128, 256, 512} {
			k := measure.Knobs{MaxNumBatchedTokens: budget, MaxNumSeqs: sequences, TensorParallel: 1}
			e.Budget, e.Sequences = budget, sequences
			c := &testCase{name: name, server: e, workload: w, slo: slo}
			l.knobs, l.cases[k] = append(l.knobs, k), c
		}
	}
	for i, k := range l.knobs {
		c := l.cases[k]
		c.truth = bruteForce(c, 9, 6)
		if c.truth > l.cases[l.knobs[l.best]].truth {
			l.best = i
		}
	}
	return l
}

// raced is how one race ended.
type raced struct {
	regret, cost float64
	// gain says whether the interval of the gain over the default holds the true
	// one; equal that the default is as good within a per cent, said that the race
	// says so.
	gain, equal, said bool
}

// race runs one strategy on a landscape. Its cost counts a restart whenever the
// knobs change.
func (l *landscape) race(seed uint64, by search.Strategy) raced {
	cfg := search.RaceConfig{Strategy: by, Search: search.MaxRateConfig{Workload: l.cases[l.knobs[0]].workload, SLO: l.cases[l.knobs[0]].slo, Seed: seed, Overhead: trialOverhead}, OneEngine: true}
	shared := l.shared * noise(seed, 11)
	for i, k := range l.knobs {
		p := search.Prior{Knobs: k, Rate: l.cases[k].truth * math.Exp(shared+l.own*noise(seed, 100+uint64(i)))}
		if l.deceived && i == l.best {
			p.Rate = 0.6 * l.cases[k].truth
		}
		cfg.Candidates = append(cfg.Candidates, p)
	}
	if by != search.Grid {
		cfg.Default = &cfg.Candidates[13] // 2048 tokens, 256 sequences
	}
	r := search.NewRace(cfg)
	var cost time.Duration
	var running measure.Knobs
	virtual.Drive(r, func(t measure.Trial) measure.Measurement {
		if t.Knobs != running {
			cost += restart
		}
		running = t.Knobs
		m := virtual.Bench{Server: l.cases[t.Knobs].server}.Run(t)
		cost += t.Warmup + m.Duration + t.Cooldown + trialOverhead
		return m
	})
	best := l.cases[l.knobs[l.best]].truth
	end := r.Result()
	found := l.cases[end.Knobs].truth
	out := raced{regret: 1 - found/best, cost: cost.Hours()}
	if cfg.Default != nil {
		gain := found/l.cases[cfg.Default.Knobs].truth - 1
		out.equal = gain < 0.01
		out.said, out.gain = true, found == l.cases[cfg.Default.Knobs].truth
		if end.Default != nil && end.Default.Estimate.Value > 0 && end.Best.Estimate.Value > 0 {
			ratio := decide.Ratio(end.Best.Estimate, end.Default.Estimate)
			out.said, out.gain = ratio.Low <= 1, ratio.Low <= 1+gain && 1+gain <= ratio.High
		}
	}
	return out
}

// races compares the strategies.
func (s *study) races() {
	s.printf("## Knob sets: 20, TTFT p99 and TPOT p99, %v a restart\n\n| landscape | strategy | engine h | share of grid | regret | worst | regret < 5 %% | gain held | default as good | said so |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n", restart)
	for _, l := range landscapes() {
		full := 0.0
		for _, m := range []struct {
			name  string
			seeds int
			by    search.Strategy
		}{
			{"grid", max(s.seeds/10, 4), search.Grid},
			{"one at a time", max(s.seeds/4, 4), search.OneAtATime},
			{"race", s.seeds, search.ByPrediction},
		} {
			all := parallel.Map(m.seeds, func(k int) raced { return l.race(uint64(k+1), m.by) })
			cost, regret, worst, n := 0.0, 0.0, 0.0, len(all)
			for _, a := range all {
				cost, regret, worst = cost+a.cost/float64(n), regret+a.regret/float64(n), max(worst, a.regret)
			}
			full = cmp.Or(full, cost)
			count := func(is func(raced) bool) int { return list.Count(all, is) }
			s.printf("| %s | %s | %.2f | %.2f | %.4f | %.3f | %.3f | %.2f | %d of %d | %d |\n", l.name, m.name, cost, cost/full, regret, worst,
				float64(count(func(a raced) bool { return a.regret < 0.05 }))/float64(n), float64(count(func(a raced) bool { return a.gain }))/float64(n),
				count(func(a raced) bool { return a.equal }), n, count(func(a raced) bool { return a.equal && a.said }))
		}
	}
	s.printf("\n")
}
