package main

import (
	"fmt"
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/parallel"
	"planner/search"
	"planner/sweep/measure"
)

// mixedCase is one search or race of the mixed set.
type mixedCase struct {
	name string
	run  func() answer
}

// mixed is a small set of searches of many kinds with known answers, as what a number of the search
// is compared on: a row each, all of a seed.
func (s *study) mixed() {
	all := s.mixedCases()
	answers := parallel.Map(len(all), func(i int) answer { return all[i].run() })
	for i, a := range answers {
		mark := map[bool]string{true: "yes", false: "NO"}
		s.printf("mixed %s, %.4g (%.4g..%.4g)  %+.4f %s %s %.0f s, %d trials, %v\n", all[i].name, a.Estimate.Value, a.Estimate.Low, a.Estimate.High, a.log(),
			mark[a.covered()], mark[a.Estimate.Safe <= 1.01*a.truth], a.EngineTime.Seconds(), a.Trials, a.Outcome)
	}
}

func (s *study) mixedCases() []mixedCase {
	var all []mixedCase
	add := func(c testCase, k knowledge, seed uint64, budget time.Duration, precision float64) {
		all = append(all, mixedCase{c.name + ", prior " + k.name, func() answer { return ours(&c, k, seed, budget, precision) }})
	}
	for i, k := range []knowledge{right, nothing, double, nothing, nothing} {
		add(s.cases[i], k, uint64(i+1), time.Hour, 0.1)
	}
	for i, of := range []struct {
		quantile, rate float64
		limit          time.Duration
	}{{0.5, 35, 100 * time.Millisecond}, {0.9, 35, 300 * time.Millisecond}, {0.999, 35, 500 * time.Millisecond}, {0.99, 0.07, 250 * time.Second}, {0, 35, 120 * time.Millisecond}} {
		q := virtual.Queue{Servers: 1, Rate: of.rate}
		truth := of.rate - 1/of.limit.Seconds()
		if of.quantile > 0 {
			truth = q.MaxRate(of.limit, 1-of.quantile)
		}
		c := testCase{name: fmt.Sprintf("M/M/1 of %v/s, %v of %v", of.rate, of.quantile, of.limit), server: q, workload: single(), slo: limit(measure.TTFT, of.quantile, of.limit), truth: truth}
		add(c, nothing, uint64(i+1), time.Duration(25/truth*float64(time.Hour)), 0.1)
	}
	for i, c := range s.tiny {
		add(c, nothing, uint64(i+1), 20*time.Minute, 0.2)
	}
	return append(all, mixedCase{"race of 12 queues", func() answer { return queueRace(1, 0) }},
		mixedCase{"race of 12 queues in an hour", func() answer { return queueRace(2, time.Hour) }})
}

// queueRace lets queues race whose predicted rates are off by a tenth, and holds the answer against
// that of the queue that was chosen.
func queueRace(seed uint64, budget time.Duration) answer {
	slo := limit(measure.TTFT, 0.99, 500*time.Millisecond)
	cfg := search.RaceConfig{OneEngine: true, Search: search.MaxRateConfig{Workload: single(), SLO: slo, Seed: seed, Budget: budget}}
	sets := map[measure.Knobs]virtual.Queue{}
	rate := func(k measure.Knobs) float64 { return sets[k].MaxRate(slo.Bounds[0].Limit, 0.01) }
	for i := range 12 {
		k := measure.Knobs{MaxNumSeqs: i + 1, TensorParallel: 1}
		sets[k] = virtual.Queue{Servers: 1, Rate: 25 + float64(i*5%12)}
		cfg.Candidates = append(cfg.Candidates, search.Prior{Knobs: k, Rate: rate(k) * math.Exp(ownError*noise(seed, uint64(i))), Spread: ownError})
	}
	cfg.Default = &cfg.Candidates[3]
	return runRace(cfg, func(t measure.Trial) measure.Measurement { return virtual.Bench{Server: sets[t.Knobs]}.Run(t) }, rate)
}
