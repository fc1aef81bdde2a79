package decide

import (
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
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

// A set that did not fit its GPU is no trial of other traffic.
func TestFitLeavesOutWhatDidNotRun(t *testing.T) {
	cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}}}
	broken := measure.Measurement{Trial: measure.Trial{Knobs: measure.Knobs{GPU: "L4"}}, Rejected: note.Text("it does not fit").Reason()}
	trials := []measure.Measurement{broken, {Trial: measure.Trial{Rate: 1, Workload: &workload.Workload{Class: "chat"}}}}
	if _, rejected, err := fitSets(cfg, trials); len(rejected) != 2 || rejected[0].Knobs.GPU != "L4" || err == nil || strings.Contains(err.Error(), "workloads") {
		t.Errorf("%v, %v", rejected, err)
	}
}
