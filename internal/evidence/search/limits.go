package main

import (
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/parallel"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// variant is a case that differs from the five of the study, with the budget
// and precision of its searches.
type variant struct {
	testCase
	budget    time.Duration
	precision float64
}

// limits is the coverage under other quantiles, several limits at a time, other
// arrivals, rates far from those of the five servers, and drift.
func (s *study) limits() {
	s.printf("## Other limits, loads and rates\n\n" + scoreHead)
	all := variants(s.cases)
	for i := range all {
		v := &all[i]
		for _, k := range []knowledge{right, nothing} {
			r := scoreOf(&v.testCase, parallel.Map(s.seeds, func(n int) answer {
				return ours(&v.testCase, k, uint64(n+1), v.budget, v.precision)
			}))
			s.row("ours, "+k.name, v.name, r)
		}
	}
	s.printf("\n")
}

func variants(five []testCase) []variant {
	mm1 := virtual.Queue{Servers: 1, Rate: 35}
	var all []variant
	add := func(name string, c testCase, scale float64) *variant {
		c.name, c.overhead = name, 6*time.Second
		all = append(all, variant{c, time.Duration(1355 / scale * float64(time.Second)), never})
		return &all[len(all)-1]
	}
	queue := func(q virtual.Queue, quantile float64, d time.Duration) testCase {
		return testCase{server: q, workload: single(), slo: limit(measure.TTFT, quantile, d), truth: q.MaxRate(d, 1-quantile)}
	}
	add("M/M/1, p50 of 100 ms", queue(mm1, 0.50, 100*time.Millisecond), 1)
	add("M/M/1, p90 of 300 ms", queue(mm1, 0.90, 300*time.Millisecond), 1)
	add("M/M/1, p99.9 of 500 ms", queue(mm1, 0.999, 500*time.Millisecond), 1)
	add("engine, TTFT p50 of 100 ms", testCase{server: cliffEngine, workload: chat(), slo: limit(measure.TTFT, 0.50, 100*time.Millisecond)}, 1)
	add("engine, TTFT p90 of 300 ms", testCase{server: cliffEngine, workload: chat(), slo: limit(measure.TTFT, 0.90, 300*time.Millisecond)}, 1)
	add("engine, three limits at once", testCase{server: decodeEngine, workload: chat(), slo: threeLimits(&five[4])}, 1)
	add("engine, goodput: 95 % within TTFT 300 ms and TPOT 45 ms", testCase{server: decodeEngine, workload: chat(), slo: measure.SLO{
		Errors: errorsAllowed, Bounds: []measure.Bound{{Metric: measure.Goodput, Quantile: 0.95,
			Limits: measure.Limits{TTFT: 300 * time.Millisecond, TPOT: 45 * time.Millisecond}}}}}, 1)
	add("M/M/1, mean of 120 ms", testCase{server: mm1, workload: single(), slo: limit(measure.TTFT, 0, 120*time.Millisecond), truth: 35 - 1/0.12}, 1)
	add("G/M/1, gamma arrivals of CV 2", bursty(mm1, 500*time.Millisecond), 1)
	slow := 0.05 / five[0].truth
	add("M/M/1 at 0.05/s", queue(virtual.Queue{Servers: 1, Rate: 35 * slow}, 0.99, time.Duration(0.5/slow*float64(time.Second))), slow)
	fast := 5000 / five[0].truth
	v := add("M/M/1 at 5,000/s", queue(virtual.Queue{Servers: 1, Rate: 35 * fast}, 0.99, time.Duration(0.5/fast*float64(time.Second))), 1)
	v.precision = 0.05
	drifting := queue(mm1, 0.99, 500*time.Millisecond)
	drifting.drift = 0.04
	add("M/M/1, 4 % drift a trial", drifting, 1)
	cliff := five[3]
	cliff.drift = 0.04
	add("TTFT, cliff, 4 % drift a trial", cliff, 1)
	v = add("short answers, TTFT p90, trials fixed at 15 s", pinned(), 1355.0/300)
	v.window, v.warmup = 15*time.Second, 5*time.Second
	for i := range all {
		c := &all[i].testCase
		if _, exact := c.server.(virtual.Queue); c.drift > 0 {
			*c = c.differing(c.drift)
		} else if !exact {
			c.truth = precise(c, bruteForce(c, 12, 16))
		}
		if c.slo.Bounds[0].Quantile > 0 {
			still := *c
			still.drift = 0
			c.phi, c.kappa = longPhi(&still, 3), steepness(&still)
		}
	}
	return all
}

// threeLimits are limits on three latencies of an engine that all become
// binding at about the same rate, the hardest case for a search of their
// minimum: what each statistic is at 95 % of the rate of the first.
func threeLimits(c *testCase) measure.SLO {
	t := measure.Trial{Workload: c.workload, Rate: 0.95 * c.truth, Warmup: 100 * time.Second, Window: 20_000 * time.Second, Seed: 4_000_000}
	m := measure.Reduce(t, measure.Observation{Records: c.server.Serve(t.Schedule(), 1, t.Seed)})
	return measure.SLO{Errors: errorsAllowed, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.99, Limit: m.TTFT.P99},
		{Metric: measure.TPOT, Quantile: 0.99, Limit: m.TPOT.P99},
		{Metric: measure.E2E, Quantile: 0.90, Limit: m.E2E.P90},
	}}
}

// pinned is an engine with a sheer cliff, from no late request to all within a few
// per cent of the rate, whose user fixes the trials at a length in which a queue
// above the cliff may or may not come to be.
func pinned() testCase {
	w := chat()
	w.Shapes[0].Prompt = workload.Lengths{Dist: workload.Lognormal, Median: 200, Sigma: 0.5, Min: 20, Max: 1000}
	w.Shapes[0].Output = workload.Lengths{Dist: workload.Lognormal, Median: 60, Sigma: 0.5, Min: 10, Max: 200}
	e := cliffEngine
	e.Budget, e.Sequences = 4096, 128
	return testCase{server: e, workload: w, slo: limit(measure.TTFT, 0.90, 300*time.Millisecond), truth: 110}
}

// bursty is a G/M/1 queue whose gaps are gamma with shape 1/4. Its sojourn is
// exponential with rate mu (1 - sigma), where sigma = (1 + mu (1 - sigma) /
// (a lambda))^-a.
func bursty(q virtual.Queue, d time.Duration) testCase {
	const shape = 0.25
	w := single()
	w.Arrivals, w.Burstiness = workload.Gamma, shape
	gap := math.Log(100) / d.Seconds()
	sigma := 1 - gap/q.Rate
	return testCase{server: q, workload: w, slo: limit(measure.TTFT, 0.99, d), truth: gap / (shape * (math.Pow(sigma, -1/shape) - 1))}
}
