package search

import (
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

func conversations() MaxRateConfig {
	w := raceWorkload()
	w.Arrivals, w.Turns, w.Think = workload.Poisson, 20, time.Second
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: -1}
	return MaxRateConfig{SLO: slo, Workload: w, Prior: Prior{Rate: 50, Latency: time.Second}}
}

func TestConversationsAreSteadyWhenTheWindowBegins(t *testing.T) {
	s := NewMaxRate(conversations())
	course := s.cfg.Workload.Course(time.Second)
	if z := s.cfg.timed(50, 1, s.learned()); z.Warmup < course+time.Second || z.Window < leastRelaxations*course {
		t.Errorf("warm-up %v, window %v for conversations of %v", z.Warmup, z.Window, course)
	}
	cfg := conversations()
	cfg.Budget = time.Hour
	if z := cfg.timed(50, longTimes, learned{latency: 20 * time.Second}); z.Window > cfg.Budget/trialShare || z.Warmup > cfg.Budget/4 {
		t.Errorf("on a budget of %v a warm-up of %v and a window of %v", cfg.Budget, z.Warmup, z.Window)
	}
	cfg = conversations()
	cfg.Warmup, cfg.Window = 3*time.Second, 10*time.Second
	if z := cfg.timed(50, 1, learned{}); z.Warmup != cfg.Warmup || z.Window != cfg.Window {
		t.Errorf("%v and %v asked for, %v and %v planned", cfg.Warmup, cfg.Window, z.Warmup, z.Window)
	}
}
