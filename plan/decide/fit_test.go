package decide

import (
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/sweep/measure"
)

// More trials are asked for where they help, and not where no curve can be fitted
// to what the objective bounds.
func TestFitAsksForTrialsThatHelp(t *testing.T) {
	trials := []measure.Measurement{{Trial: measure.Trial{Rate: 1}}}
	for _, c := range []struct {
		bound measure.Bound
		helps bool
	}{
		{measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}, true},
		{measure.Bound{Metric: measure.Goodput, Quantile: 0.95, Limits: measure.Limits{TTFT: time.Second}}, false},
	} {
		cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{c.bound}}}
		_, err := fitSet(cfg, trials)
		if err == nil || strings.Contains(err.Error(), "longer trials") != c.helps {
			t.Errorf("%v: %v", c.bound, err)
		}
	}
}
