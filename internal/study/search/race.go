package main

import (
	"math"
	"time"

	"planner/internal/study/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// landscape is a set of knob sets with their true maximum rates.
type landscape struct {
	name  string
	cases map[measure.Knobs]*testCase
	knobs []measure.Knobs
	best  int
	// deceived makes the simulator predict 40 % less than the truth for the best
	// set.
	deceived bool
}

const (
	restart = 90 * time.Second
	// Errors of the simulator: one that all sets share, one of each set's own.
	sharedError, ownError = 0.10, 0.08
)

// landscapes are two engines with 20 knob sets each, under limits on two
// latencies, and the first again with a simulator that deceives.
func landscapes() []landscape {
	a := newLandscape("A: prompts dominate", virtual.Engine{Base: 8 * time.Millisecond, PerToken: 25 * time.Microsecond, PerSequence: 40 * time.Microsecond})
	b := newLandscape("B: sequences dominate", virtual.Engine{Base: 12 * time.Millisecond, PerToken: 15 * time.Microsecond, PerSequence: 120 * time.Microsecond})
	c := a
	c.name, c.deceived = "A, best set under-predicted by 40 %", true
	return []landscape{a, b, c}
}

func newLandscape(name string, e virtual.Engine) landscape {
	l := landscape{name: name, cases: map[measure.Knobs]*testCase{}}
	slo := measure.SLO{Errors: errorsAllowed, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond},
		{Metric: measure.TPOT, Quantile: 0.99, Limit: 50 * time.Millisecond},
	}}
	for _, budget := range []int{512, 1024, 2048, 4096} {
		for _, sequences := range []int{32, 64, 128, 256, 512} {
			k := measure.Knobs{MaxNumBatchedTokens: budget, MaxNumSeqs: sequences, TensorParallel: 1}
			e.Budget, e.Sequences = budget, sequences
			c := &testCase{name: name, server: e, workload: chat(), slo: slo, overhead: 6 * time.Second}
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
}

// contest is what a knob search gives.
type contest interface {
	source
	Result() search.RaceResult
}

// race runs one strategy on a landscape. Its cost counts a restart whenever the
// knobs change.
func (l *landscape) race(seed uint64, make func(search.RaceConfig) contest) raced {
	cfg := search.RaceConfig{Search: search.MaxRateConfig{Workload: chat(), SLO: l.cases[l.knobs[0]].slo, Seed: seed, Overhead: 6 * time.Second}}
	shared := sharedError * noise(seed, 11)
	for i, k := range l.knobs {
		p := search.Prior{Knobs: k, Rate: l.cases[k].truth * math.Exp(shared+ownError*noise(seed, 100+uint64(i)))}
		if l.deceived && i == l.best {
			p.Rate = 0.6 * l.cases[k].truth
		}
		cfg.Candidates = append(cfg.Candidates, p)
	}
	cfg.Default = &cfg.Candidates[13] // 2048 tokens, 256 sequences
	r := make(cfg)
	var cost time.Duration
	// A grid works on several sets at a time; on one engine it would finish each
	// before the next, so it is charged one restart a set.
	started := map[measure.Knobs]bool{}
	_, once := r.(*search.Grid)
	var running measure.Knobs
	for batch := r.Next(); len(batch) > 0; batch = r.Next() {
		for _, t := range batch {
			if t.Knobs != running && !(once && started[t.Knobs]) {
				cost += restart
			}
			running, started[t.Knobs] = t.Knobs, true
			m := virtual.Bench{Server: l.cases[t.Knobs].server}.Run(t)
			cost += t.Warmup + m.Duration + t.Cooldown + 6*time.Second
			r.Observe(m)
		}
	}
	best := l.cases[l.knobs[l.best]].truth
	found := l.cases[r.Result().Knobs].truth
	return raced{regret: 1 - found/best, cost: cost.Hours()}
}

// races compares the strategies.
func (s *study) races() {
	s.printf("## Knob sets: 20, TTFT p99 and TPOT p99, %v a restart\n\n| landscape | strategy | engine h | share of grid | regret | worst | regret < 5 %% |\n|---|---|--:|--:|--:|--:|--:|\n", restart)
	for _, l := range landscapes() {
		full := 0.0
		for _, m := range []struct {
			name  string
			seeds int
			make  func(search.RaceConfig) contest
		}{
			{"grid", max(s.seeds/10, 4), func(c search.RaceConfig) contest { c.Default = nil; return search.NewGrid(c) }},
			{"one at a time", max(s.seeds/4, 4), func(c search.RaceConfig) contest { return search.NewOneAtATime(c) }},
			{"race", s.seeds, func(c search.RaceConfig) contest { return search.NewRace(c) }},
		} {
			all := parallel(m.seeds, func(k int) raced { return l.race(uint64(k+1), m.make) })
			cost, regret, worst, good := 0.0, 0.0, 0.0, 0.0
			n := float64(len(all))
			for _, a := range all {
				cost += a.cost / n
				regret += a.regret / n
				worst = max(worst, a.regret)
				if a.regret < 0.05 {
					good += 1 / n
				}
			}
			if full == 0 {
				full = cost
			}
			s.printf("| %s | %s | %.2f | %.2f | %.4f | %.3f | %.3f |\n", l.name, m.name, cost, cost/full, regret, worst, good)
		}
	}
	s.printf("\n")
}
