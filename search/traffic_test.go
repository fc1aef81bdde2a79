package search

import (
	"math"
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

func TestTrialsCountAtTheRateThatWasSent(t *testing.T) {
	cfg := conversations()
	s := NewMaxRate(cfg)
	tell := func(warmup time.Duration, sentShare float64) *measure.Measurement {
		m := &measure.Measurement{Trial: measure.Trial{Workload: cfg.Workload, Rate: 50, Warmup: warmup, Window: 10 * time.Second, Seed: 3}, Duration: 10 * time.Second}
		due := 0
		for _, r := range cfg.Workload.Schedule(50, warmup+m.Duration, 3) {
			if r.Due >= warmup {
				due++
			}
		}
		m.Sent = sentShare * float64(due) / m.Duration.Seconds()
		return m
	}
	steady := cfg.Workload.Steady(0, 10*time.Second)
	for _, c := range []struct {
		why    string
		warmup time.Duration
		sent   float64
		met    bool
		want   float64
	}{
		{"all was sent", time.Minute, 1, true, 50},
		{"a little is on its way", time.Minute, 0.97, true, 50},
		{"turns waited and all was well", time.Minute, 0.8, true, 40},
		{"turns waited because the server is too slow", time.Minute, 0.8, false, 50},
		{"conversations were starting", 0, 1, true, 50 * steady},
		{"conversations were starting, and that was too much", 0, 0.5, false, 50 * steady},
	} {
		if got := s.carried(tell(c.warmup, c.sent), c.met); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: counts at %.4g/s, want %.4g", c.why, got, c.want)
		}
	}
	cfg.Workload.Turns = 1
	if got := s.carried(&measure.Measurement{Trial: measure.Trial{Rate: 50, Window: time.Second}, Duration: time.Second}, true); got != 50 {
		t.Errorf("single requests count at %g/s, want 50", got)
	}
}
