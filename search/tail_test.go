package search

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// TestTailIsNoQuasiBinomial compares the probability of no exceedance with the quasi-binomial one, of counts divided by
// their dispersion, which is too large where clumps are nearly as long as the trial.
func TestTailIsNoQuasiBinomial(t *testing.T) {
	a := generic("ttft.p90", 0.1, false)
	for _, phi := range []float64{20, 100, 300} {
		at := func(phi float64) float64 { return stat.Dispersion{At: phi, Level: a.share, Gamma: a.gamma}.Phi(0.2) }
		got, quasi := stat.BetaBinomial{N: 1700, P: 0.2, Phi: at(phi)}.LogCDF(0), 1700*math.Log(0.8)/at(0.9*phi)
		if got > quasi {
			t.Errorf("phi %g: ln P(0) is %.2f, more than the quasi-binomial %.2f", phi, got, quasi)
		}
	}
}

// TestMinimumOfEqualBounds has three bounds with the same evidence: each quantile of their minimum is the same as that
// of one, and that of different bounds is the least of their own.
func TestMinimumOfEqualBounds(t *testing.T) {
	a := generic("ttft.p99", 0.01, false)
	one := a.infer(evidenceOf(&a, counted(20, 3000, 5), counted(25, 3000, 30)))
	other := a.infer(evidenceOf(&a, counted(21, 3000, 9), counted(26, 3000, 90)))
	alone, three, mixed := posteriors{one}, posteriors{one, one, one}, posteriors{one, other}
	for _, q := range []float64{0.05, 0.5, 0.95} {
		if x, y := alone.quantile(q), three.quantile(q); math.Abs(x-y) > 1e-9*x {
			t.Errorf("quantile %g: %.4f of three equal bounds, %.4f of one", q, y, x)
		}
		if want := min(alone.quantile(q), posteriors{other}.quantile(q)); math.Abs(mixed.quantile(q)-want) > 1e-6*want {
			t.Errorf("quantile %g: %.4f, want %.4f", q, mixed.quantile(q), want)
		}
	}
}

// TestShortWindowsOnACliff has the counts of trials of 15 s on an engine that goes from no late request to all of them
// between 113 and 122 requests/s, with a lucky rate now and then. That 12,000 requests below 113/s were all in time must
// count, however long the clumps above it are: a flat curve with clumps longer than a trial, which puts the lower end
// near 50/s, is no explanation.
func TestShortWindowsOnACliff(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.9, Limit: 300 * time.Millisecond}}, Errors: -1}
	s := NewMaxRate(MaxRateConfig{SLO: slo, Workload: raceWorkload(), Prior: Prior{Rate: 122.4, Spread: 0.2}, Warmup: 5 * time.Second, Window: 15 * time.Second})
	for _, x := range []struct {
		rate float64
		k, n int
	}{{122.4, 1209, 1209}, {75.8, 0, 1151}, {97.7, 0, 1511}, {112.3, 0, 1688}, {99.3, 0, 1501}, {107, 0, 1589}, {114.7, 200, 1708},
		{117.7, 10, 1738}, {112.9, 0, 1631}, {118.2, 0, 1738}, {108.7, 0, 1588}, {98.4, 0, 1423}, {117.3, 960, 1160}} {
		m := measure.Measurement{Trial: measure.Trial{Rate: x.rate, Warmup: 5 * time.Second, Window: 15 * time.Second}, Valid: true,
			Counts: []measure.Count{{Bound: "ttft.p90", N: x.n, K: x.k, Cluster: 1}}}
		s.Observe(m)
	}
	if e := s.Result().Estimate; e.Low < 65 || e.High > 125 || e.Value < 108 {
		t.Errorf("%v, want near 114 and not below 65", e)
	}
}

// If some requests never wait, for instance because their adapters are loaded, the share that is late is the same at any
// rate beyond the knee: such rates show that the limit is missed, but not where it is met. If the share is little above
// what is allowed they seem to show it, and a curve through all of them is far off.
func TestPlateau(t *testing.T) {
	testPlateau(t, 0.865)
	testPlateau(t, 0.65)
}

func testPlateau(t *testing.T, share float64) {
	const knee = 1.95
	for seed := range uint64(4) {
		cfg := MaxRateConfig{Workload: raceWorkload(), Seed: seed, Prior: Prior{Rate: 12},
			SLO: measure.SLO{Errors: -1, Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.5, Limit: 300 * time.Millisecond}}}}
		s := NewMaxRate(cfg)
		for batch := s.Next(); len(batch) > 0; batch = s.Next() {
			late, rng := 0.0, rand.New(rand.NewPCG(batch[0].Seed, 3))
			if batch[0].Rate > knee {
				late = share + 0.005*batch[0].Rate
			}
			var o measure.Observation
			for _, r := range batch[0].Schedule() {
				end := r.Due + 50*time.Millisecond
				if rng.Float64() < late {
					end += 13 * time.Second
				}
				o.Records = append(o.Records, measure.Record{ID: r.ID, Due: r.Due, Sent: r.Due, First: end, Last: end, Prompt: 1, Output: 1, Outcome: measure.OK})
				o.End = max(o.End, end)
			}
			s.Observe(measure.Reduce(batch[0], o))
		}
		if r := s.Result(); !(r.Estimate.Safe <= 1.1*knee) || r.Estimate.Value > 1.25*knee || r.Estimate.Value < knee/1.25 {
			t.Errorf("%v late, seed %d: %v, safe %.3g after %d trials, want about %g", share, seed, r.Estimate, r.Estimate.Safe, r.Trials, knee)
		}
	}
}
