package main

import (
	"slices"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/parallel"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// stop is how one trial ended.
type stop struct {
	early bool
	// into is the time from the start of the window.
	into       time.Duration
	overloaded bool
}

// stops runs trials of 180 s behind a warm-up of 30 s at a rate.
func (c *testCase) stops(rate float64, seeds int) []stop {
	return parallel.Map(seeds, func(k int) stop {
		t := measure.Trial{Workload: c.workload, Rate: rate, Warmup: 30 * time.Second, Window: 180 * time.Second,
			Cooldown: time.Second, Seed: uint64(900_000 + k), Objective: c.slo}
		m := virtual.Bench{Server: c.server}.Run(t)
		return stop{m.Aborted.Text != "", m.Duration, m.Overloaded}
	})
}

// abort is how often trials are ended early, and when, below, at and above the
// maximum rate: of the five servers, and of others that the tests for a hopeless
// trial were not made with.
func (s *study) abort() {
	s.abortTable("## Early ends of trials of 180 s, warm-up 30 s", s.cases)
	s.abortTable("## Early ends on servers of other kinds", heldOut(s.cases))
}

func (s *study) abortTable(title string, cases []testCase) {
	s.printf("%s\n\n| server | rate | ended early | within 30 s | median | marked overloaded |\n|---|--:|--:|--:|--:|--:|\n", title)
	for i := range cases {
		c := &cases[i]
		for _, x := range []float64{0.8, 1, 1.1, 1.2, 1.4} {
			all := c.stops(x*c.truth, s.seeds)
			early, soon, over := 0.0, 0.0, 0.0
			var times []time.Duration
			n := float64(len(all))
			for _, a := range all {
				if a.overloaded {
					over += 1 / n
				}
				if a.early {
					early += 1 / n
				}
				if a.early && a.into <= 30*time.Second {
					soon += 1 / n
				}
				times = append(times, a.into)
			}
			slices.Sort(times)
			s.printf("| %s | %.1fx | %.3f | %.3f | %v | %.3f |\n", c.name, x, early, soon, times[len(times)/2].Round(time.Second), over)
		}
	}
	s.printf("\n")
}

// heldOut are servers that differ from the five in what an early end depends on:
// how long requests stay, how services and arrivals vary, and what is limited.
func heldOut(five []testCase) []testCase {
	long := chat()
	long.Shapes[0].Output = workload.Lengths{Dist: workload.Lognormal, Median: 800, Sigma: 0.8, Min: 50, Max: 6000}
	uneven := chat()
	uneven.Arrivals, uneven.Burstiness = workload.Gamma, 0.25
	turns := chat()
	turns.Turns, turns.Think = 3, 20*time.Second
	// One request at a time, for as long as a lognormal of sigma 1.2.
	heavy := single()
	heavy.Shapes[0].Output = workload.Lengths{Dist: workload.Lognormal, Median: 20, Sigma: 1.2, Min: 1, Max: 5000}
	one := virtual.Engine{Budget: 4096, Sequences: 1, Base: time.Millisecond}
	tpot := limit(measure.TPOT, 0.99, 50*time.Millisecond)
	cases := []testCase{
		{name: "TPOT, long answers", server: decodeEngine, workload: long, slo: tpot},
		{name: "TPOT, gamma arrivals of CV 2", server: decodeEngine, workload: uneven, slo: tpot},
		{name: "TTFT, cliff, three turns", server: cliffEngine, workload: turns, slo: limit(measure.TTFT, 0.99, 500*time.Millisecond)},
		{name: "M/G/1, lognormal services", server: one, workload: heavy, slo: limit(measure.TTFT, 0.99, 2*time.Second)},
		{name: "TTFT, cliff, p50 of 100 ms", server: cliffEngine, workload: chat(), slo: limit(measure.TTFT, 0.50, 100*time.Millisecond)},
		{name: "TPOT, p90 of 40 ms", server: decodeEngine, workload: chat(), slo: limit(measure.TPOT, 0.90, 40*time.Millisecond)},
		{name: "E2E, p90 of 15 s", server: decodeEngine, workload: chat(), slo: limit(measure.E2E, 0.90, 15*time.Second)},
	}
	for i := range cases {
		cases[i].truth = bruteForce(&cases[i], 10, 8)
	}
	// A mean that is near its limit where p99 is: only a backlog can end it.
	mean := five[4]
	mean.name, mean.slo = "TPOT, mean of 40 ms", limit(measure.TPOT, 0, 40*time.Millisecond)
	g := bursty(virtual.Queue{Servers: 1, Rate: 35}, 500*time.Millisecond)
	g.name = "G/M/1, gamma arrivals of CV 2"
	return append(cases, mean, g)
}
