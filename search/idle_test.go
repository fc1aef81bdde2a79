package search

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

// What an idle engine misses is named: a latency that is beyond its limit only for
// requests that failed is not it.
func TestBrokenBy(t *testing.T) {
	slo := measure.SLO{Errors: 0.001, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.95, Limit: 500 * time.Millisecond},
		{Metric: measure.TPOT, Quantile: 0.95, Limit: 50 * time.Millisecond},
	}}
	s := NewMaxRate(MaxRateConfig{SLO: slo})
	for name, c := range map[string]struct {
		failed, ttft, tpot int
		want               int
	}{
		"none":                           {0, 0, 0, -1},
		"every request fails":            {10, 10, 10, 2},
		"most fail, the others are good": {8, 8, 8, 2},
		"slow first tokens":              {0, 10, 0, 0},
		"slow tokens":                    {0, 0, 10, 1},
		"both slow":                      {0, 10, 10, 0},
		"some fail, the others are slow": {2, 2, 10, 1},
	} {
		m := measure.Measurement{Counts: []measure.Count{
			{Bound: "ttft.p95", N: 10, K: c.ttft}, {Bound: "tpot.p95", N: 10, K: c.tpot}, {Bound: "errors", N: 10, K: c.failed},
		}}
		m.Requests, m.Failed = 10, c.failed
		if got := s.brokenBy(&m); got != c.want {
			t.Errorf("%s: bound %d, want %d", name, got, c.want)
		}
	}
}
