package search

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

func TestTrialLengths(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: -1}
	s := NewMaxRate(MaxRateConfig{SLO: slo, Workload: raceWorkload(), Budget: 1000 * time.Hour})
	test := func(rate float64, latency, window, warmup time.Duration) {
		t.Helper()
		s.latency = latency
		if z := s.cfg.timed(rate, 1, s.learned()); z.Window.Round(time.Second) != window || z.Warmup.Round(time.Second) != warmup {
			t.Errorf("rate %g, latency %v: window %v, warm-up %v; want %v and %v", rate, latency, z.Window, z.Warmup, window, warmup)
		}
	}
	test(25, 0, 48*time.Second, 30*time.Second)
	test(0.05, 250*time.Second, 24_000*time.Second, 375*time.Second)
	test(5000, 0, 15*time.Second, 15*time.Second)
	test(25, 20*time.Second, 60*time.Second, 30*time.Second)
}

// A server whose exceedances stay correlated for 12 s gets a longer warm-up and window than usual; one that forgets
// within a second does not.
func TestSlowServersGetLongerTrials(t *testing.T) {
	size := func(phi float64) measure.Trial {
		s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective(), Budget: time.Hour, Prior: Prior{Rate: 15, Phi: phi, Latency: time.Second}})
		return s.cfg.timed(15, 1, s.learned())
	}
	if z := size(360); z.Warmup != 36*time.Second || z.Window != 120*time.Second {
		t.Errorf("slow: %v", z)
	}
	if z := size(20); z.Warmup != leastWarmup || z.Window > 90*time.Second {
		t.Errorf("quick: %v", z)
	}
}

// At rates of a request a year trials are long but durations do not overflow, in a search, also after untrusted trials,
// and in a certificate.
func TestLengthsAtTinyRates(t *testing.T) {
	cfg := MaxRateConfig{SLO: raceObjective(), Workload: raceWorkload()}
	for _, rate := range []float64{1e-4, 4e-6, 1e-9, 1e-15} {
		for again := range few + 1 {
			l := cfg.timed(rate, 1, learned{phi: 40, distrusted: again})
			if l.Window < 24*time.Hour || l.Warmup <= 0 || l.Cooldown < 0 {
				t.Errorf("%g requests/s, %d trials not trusted: %v", rate, again, l)
			}
		}
		trials := Certify(cfg, Result{Estimate: Estimate{Value: 2 * rate, Safe: rate}}).Next()
		if len(trials) != 1 || trials[0].Window < 24*time.Hour {
			t.Errorf("certificate of %g requests/s: %v", rate, trials)
		}
	}
}
