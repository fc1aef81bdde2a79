package search

import (
	"testing"
	"time"

	"planner/sweep/workload"
)

// trace has n rows, ten a second.
func trace(n int) *workload.Workload {
	w := &workload.Workload{Class: "trace", Arrivals: workload.Trace}
	for i := range n {
		w.Replay = append(w.Replay, workload.TraceRow{Arrival: time.Duration(i) * 100 * time.Millisecond, Prompt: 1, Output: 1})
	}
	return w
}

// Trials on a trace are as long as the trace if the budget allows, and start anywhere in it; the caller's workload is
// not changed.
func TestTrialsCoverTheTrace(t *testing.T) {
	w := trace(6000)
	s := NewMaxRate(MaxRateConfig{Workload: w, SLO: raceObjective(), Prior: Prior{Rate: 20}})
	got := s.Next()[0]
	if got.Window != 300*time.Second || !got.Workload.AnyRow || w.AnyRow {
		t.Errorf("window %v, from any row %v, the caller's %v", got.Window, got.Workload.AnyRow, w.AnyRow)
	}
	s = NewMaxRate(MaxRateConfig{Workload: w, SLO: raceObjective(), Prior: Prior{Rate: 20}, Budget: 20 * time.Minute})
	if got := s.Next()[0]; got.Window >= 300*time.Second {
		t.Errorf("a lap of a quarter of the budget: window %v", got.Window)
	}
	// If rates are those of the busiest hour, three times the mean, a rate three times as high is the same trial.
	w.Rates = &workload.Rates{Of: workload.RateOfBusiestHour, Mean: 10, BusiestHour: 30, BusiestMinute: 40}
	s = NewMaxRate(MaxRateConfig{Workload: w, SLO: raceObjective(), Prior: Prior{Rate: 60}})
	if got := s.Next()[0]; got.Rate != 60 || got.Window != 300*time.Second {
		t.Errorf("60/s in the busiest hour: %g/s for %v", got.Rate, got.Window)
	}
	found := Result{Estimate: Estimate{Value: 60, Safe: 54}}
	hour, mean := Certify(MaxRateConfig{Workload: w, SLO: raceObjective()}, found).Next()[0].Window, *w
	mean.Rates = nil
	found.Estimate = Estimate{Value: 20, Safe: 18}
	if same := Certify(MaxRateConfig{Workload: &mean, SLO: raceObjective()}, found).Next()[0].Window; hour != same {
		t.Errorf("certified in %v, by the mean in %v", hour, same)
	}
}
