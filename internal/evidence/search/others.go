package main

import (
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// others is the accuracy on servers that no assumption of the search was made
// with: queues of other sizes and limits, services that vary much, and an engine
// with long prompts.
func (s *study) others() {
	s.printf("## Held-out servers, 1355 s\n\n")
	all := otherServers()
	five := s.cases
	s.cases = all
	s.truths()
	s.printf(scoreHead)
	for _, k := range []knowledge{right, half, double, nothing} {
		s.repeat("ours, "+k.name, func(c *testCase, seed uint64) answer {
			return ours(c, k, seed, 1355*time.Second, never)
		})
	}
	s.cases = five
	s.printf("\n")
}

func otherServers() []testCase {
	queue := func(name string, q virtual.Queue, quantile float64, d time.Duration) testCase {
		return testCase{name: name, server: q, workload: single(), slo: limit(measure.TTFT, quantile, d), truth: q.MaxRate(d, 1-quantile)}
	}
	uneven := single()
	uneven.Shapes[0].Output = workload.Lengths{Dist: workload.Lognormal, Median: 25, Sigma: 0.8, Min: 1, Max: 1000}
	prompts := chat()
	prompts.Shapes[0].Prompt = workload.Lengths{Dist: workload.Lognormal, Median: 2500, Sigma: 0.6, Min: 200, Max: 12_000}
	prompts.Shapes[0].Output = workload.Lengths{Dist: workload.Lognormal, Median: 80, Sigma: 0.6, Min: 10, Max: 400}
	cases := []testCase{
		queue("M/M/2, p99 of 300 ms", virtual.Queue{Servers: 2, Rate: 20, Waiting: true}, 0.99, 300*time.Millisecond),
		queue("M/M/32, p99 of 1 s", virtual.Queue{Servers: 32, Rate: 2, Waiting: true}, 0.99, time.Second),
		queue("M/D/1, p95 of 100 ms", virtual.Queue{Servers: 1, Rate: 60, Constant: true}, 0.95, 100*time.Millisecond),
		{name: "M/G/1, lognormal services", server: virtual.Engine{Budget: 4096, Sequences: 1, Base: time.Millisecond}, workload: uneven,
			slo: limit(measure.TTFT, 0.99, 500*time.Millisecond), truth: 20},
		{name: "long prompts, TTFT p99 of 2 s", server: virtual.Engine{Budget: 8192, Sequences: 256, Base: 8 * time.Millisecond, PerToken: 25 * time.Microsecond, PerSequence: 60 * time.Microsecond},
			workload: prompts, slo: limit(measure.TTFT, 0.99, 2*time.Second), truth: 9},
	}
	return finished(cases, 7)
}

// trialOverhead is what a trial costs besides its load.
const trialOverhead = 6 * time.Second

// finished fills in what a case needs beside its server and objective. The rates
// of queues are exact; others are found around the one that is given.
func finished(cases []testCase, seed uint64) []testCase {
	for i := range cases {
		c := &cases[i]
		c.overhead = trialOverhead
		if _, exact := c.server.(virtual.Queue); !exact {
			c.truth = precise(c, bruteForce(c, 12, 16))
		}
	}
	for i := range cases {
		cases[i].phi, cases[i].kappa = longPhi(&cases[i], seed), steepness(&cases[i])
	}
	return cases
}
