package virtual_test

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// served is the mean time of requests of one token at a rate, and how many a second
// end in four hours.
func served(s virtual.Server, rate float64, seed uint64) (mean, perSecond float64) {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	w := &workload.Workload{Class: "one", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: one, Output: one}}}
	const span = 4 * time.Hour
	records := s.Serve(w.Schedule(rate, span, seed), 1, seed)
	for _, r := range records {
		if r.Outcome != measure.OK || r.First < r.Due {
			return math.NaN(), math.NaN()
		}
		mean += (r.Last - r.Due).Seconds() / float64(len(records))
		if r.Last < span {
			perSecond += 1 / span.Seconds()
		}
	}
	return mean, perSecond
}

// TestOddQueues compares mean times with Pollaczek and Khinchin's, and the rate that
// is carried under overload with the share of the time in which servers work.
func TestOddQueues(t *testing.T) {
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got/want-1) < tolerance) {
			t.Errorf("%s: %.4g, want %.4g", name, got, want)
		}
	}
	// E[T] = 1/mu + lambda E[S^2] / 2 (1 - rho).
	mean, _ := served(virtual.Queue{Servers: 1, Rate: 10, Sigma: 0.8}, 5, 1)
	near("M/G/1, lognormal", mean, 0.1+5*0.01*math.Exp(0.64)/2/0.5, 0.03)
	mean, _ = served(virtual.Queue{Servers: 1, Rate: 10, Pareto: 4}, 5, 1)
	near("M/G/1, Pareto", mean, 0.1+5*0.01*(9.0/16)*2/2/0.5, 0.03)
	mean, _ = served(virtual.Queue{Servers: 1, Rate: 10}, 5, 1)
	near("M/M/1", mean, 0.2, 0.03)
	_, rate := served(virtual.Queue{Servers: 4, Rate: 10, Work: 9 * time.Second, Rest: time.Second}, 60, 1)
	near("rests", rate, 36, 0.02)
	_, rate = served(virtual.Queue{Servers: 4, Rate: 10, Crowd: 50, Slower: 2}, 60, 1)
	near("crowd", rate, 20, 0.02)
	_, rate = served(virtual.Batches{Size: 8, Service: 200 * time.Millisecond, Wait: 100 * time.Millisecond}, 60, 1)
	near("batches", rate, 40, 0.01)
	mean, _ = served(virtual.Batches{Size: 8, Service: 200 * time.Millisecond, Wait: 100 * time.Millisecond}, 0.01, 1)
	near("lone batches", mean, 0.3, 0.01)
}
