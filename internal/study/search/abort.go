package main

import (
	"slices"
	"time"

	"planner/internal/study/search/virtual"
	"planner/sweep/measure"
)

// stop is how one trial ended.
type stop struct {
	early bool
	// into is the time from the start of the window.
	into       time.Duration
	overloaded bool
}

// abort is how often trials of 180 s are ended early, and when, below, at and
// above the maximum rate.
func (s *study) abort() {
	s.printf("## Early ends of trials of 180 s, warm-up 30 s\n\n| server | rate | ended early | within 30 s | median | marked overloaded |\n|---|--:|--:|--:|--:|--:|\n")
	for i := range s.cases {
		c := &s.cases[i]
		for _, x := range []float64{0.8, 1, 1.1, 1.2, 1.4} {
			all := parallel(s.seeds, func(k int) stop {
				t := measure.Trial{Workload: c.workload, Rate: x * c.truth, Warmup: 30 * time.Second, Window: 180 * time.Second,
					Cooldown: time.Second, Seed: uint64(900_000 + k), Objective: c.slo}
				m := virtual.Bench{Server: c.server}.Run(t)
				return stop{m.Aborted != "", m.Duration, m.Overloaded}
			})
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
