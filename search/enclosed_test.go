package search

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

// Where one rate met, two missed just above it and a far higher one is undecided, no safe rate lies above the misses,
// whatever curve goes through their counts.
func TestNoSafeRateAboveTheMisses(t *testing.T) {
	bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 50 * time.Millisecond}
	cfg := MaxRateConfig{SLO: measure.SLO{Bounds: []measure.Bound{bound}, Errors: -1}, Workload: raceWorkload(), Budget: 1, Window: time.Minute,
		MinRequests: 1, Precision: 0.1, Confidence: 0.9, Prior: Prior{Rate: 10, Spread: 1}}
	s := NewMaxRate(cfg)
	for _, x := range []struct {
		rate    float64
		late, n int
		state   measure.State
	}{{8, 0, 400, measure.Met}, {10, 80, 60000, measure.Missed}, {10.5, 80, 60000, measure.Missed}, {30, 400, 18000, measure.Unsure}} {
		s.Observe(measure.Measurement{
			Trial: measure.Trial{Rate: x.rate, Window: time.Minute, Objective: cfg.SLO}, Duration: time.Minute, Tally: measure.Tally{Requests: x.n},
			Counts: []measure.Count{{Bound: bound.String(), K: x.late, N: x.n, Cluster: 1}, {Bound: measure.ThroughputBound, N: x.n / 2, High: 0.1, Low: -0.1, Cluster: 1}},
			Valid:  true, Verdict: &measure.Verdict{State: x.state},
		})
	}
	s.Next()
	if e := s.Result().Estimate; e.Safe != 8 || e.High > 10.5 {
		t.Errorf("%v, safe %.3g", e, e.Safe)
	}
}
