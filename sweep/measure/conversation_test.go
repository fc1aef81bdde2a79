package measure

import (
	"strings"
	"testing"
	"time"

	"planner/sweep/workload"
)

// A trial whose conversations are still starting meets the objective at less than
// the offered rate, and so not at that rate.
func TestConversationsThatAreStillStarting(t *testing.T) {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	w := &workload.Workload{Arrivals: workload.Poisson, Turns: 10, Think: 10 * time.Second, Shapes: []workload.Shape{{Prompt: one, Output: one}}}
	run := func(warmup time.Duration) Measurement {
		trial := Trial{Workload: w, Rate: 100, Warmup: warmup, Window: 60 * time.Second, Seed: 1,
			Objective: SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: time.Second}}, Errors: -1}}
		var records []Record
		for _, r := range trial.Schedule() {
			end := r.Due + 100*time.Millisecond
			records = append(records, Record{ID: r.ID, Due: r.Due, Sent: r.Due, First: end, Last: end, Prompt: 1, Output: 1, Asked: 1})
		}
		return Reduce(trial, Observation{Records: records, End: warmup + 61*time.Second})
	}
	early, late := run(time.Second), run(100*time.Second)
	if said := early.Warnings.String(); early.Verdict.State != Unsure || !strings.Contains(said, "still starting") || !strings.Contains(said, "100 offered") {
		t.Errorf("without warm-up: %v, %s", early.Verdict.State, said)
	}
	if said := late.Warnings.String(); late.Verdict.State != Met || strings.Contains(said, "offered") {
		t.Errorf("behind the course of a conversation: %v, %s", late.Verdict.State, said)
	}
}
