package decide

import (
	"testing"

	"planner/internal/config"
	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
)

// Of 64 adapters 3.4 requests in flight use eight or more in 1.6 % of the time, 64 x (1 - exp(-3.4/64)) = 3.3 in the mean:
// they are what a p99 waits for, and no p90, mean or pace of tokens.
func TestFewSlots(t *testing.T) {
	some := func(float64) float64 { return 3.4 }
	at := func(metric measure.Metric, quantile float64) measure.Bound {
		return measure.Bound{Metric: metric, Quantile: quantile, Limit: 1e9}
	}
	for _, tc := range []struct {
		slots    int
		bound    measure.Bound
		inFlight func(float64) float64
		want     bool
	}{
		{8, at(measure.TTFT, 0.99), some, true}, {9, at(measure.TTFT, 0.99), some, false}, {8, at(measure.TTFT, 0.90), some, false}, {5, at(measure.TTFT, 0.90), some, true},
		{8, at(measure.E2E, 0), some, false}, {3, at(measure.E2E, 0), some, true}, {3, at(measure.TPOT, 0.99), some, false},
		{64, at(measure.TTFT, 0.99), func(float64) float64 { return 1000 }, false}, {8, at(measure.TTFT, 0.99), nil, false},
	} {
		var cfg config.Config
		cfg.Engine.LoRA = model.LoRA{Adapters: 64, Slots: tc.slots, Rank: 16}
		cfg.Objective.Bounds = []measure.Bound{tc.bound}
		if got := fewSlots(&cfg, tc.bound.String(), tc.inFlight, 1); got.Has(note.FewSlots) != tc.want {
			t.Errorf("%d slots, %v: %q", tc.slots, tc.bound, got)
		}
	}
	if got := fewSlots(&config.Config{}, "ttft.p99", some, 1); got != nil {
		t.Errorf("no adapters: %q", got)
	}
}
