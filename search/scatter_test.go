package search

import (
	"math"
	"testing"
	"time"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// The share of all requests beyond a limit is that of the curve, by however much trials differ.
func TestScatterKeepsTheShareOfAll(t *testing.T) {
	for _, z := range []float64{stat.CLogLog(1e-4), stat.CLogLog(0.01), stat.CLogLog(0.1), stat.CLogLog(0.5)} {
		for _, sd := range []float64{0.3, 1, 4} {
			shift, share := (&assumed{}).below(z, sd), 0.0
			for i, x := range phiOffsets {
				share += nodeWeights[i] * unlink(z-shift+x*sd)
			}
			if math.Abs(share/unlink(z)-1) > 1e-3 {
				t.Errorf("z %.2f, trials off by %.1f: %.5g of all requests are late, and %.5g by the curve", z, sd, share, unlink(z))
			}
		}
	}
}

// Trials that differ by more than their requests explain widen the interval and are named; those
// that lie on one curve are not.
func TestScatterIsTold(t *testing.T) {
	const n = 5000
	a := generic("ttft.p99", 0.01, true)
	var alike, differ []likelihood
	for i, rate := range []float64{8, 8.5, 9, 9.5, 10, 10.5, 11, 11.5} {
		z := a.offset + rise(genericKappa, rate/10)
		faster := 1.4 - 0.6*float64(i%2)
		off := a.offset + rise(genericKappa, rate/10/faster)
		alike = append(alike, evidenceOf(&a, counted(rate, n, int(n*unlink(z))))...)
		differ = append(differ, evidenceOf(&a, counted(rate, n, int(n*unlink(off))))...)
	}
	same, apart := a.infer(alike), a.infer(differ)
	if same.steady < 0.3 || same.scatter > usualScatter {
		t.Errorf("trials on one curve are steady with probability %.2f, and differ by %.3f", same.steady, same.scatter)
	}
	if apart.steady > safeQuantile || apart.scatter < 0.05 {
		t.Errorf("trials of two speeds are steady with probability %.2f, and differ by %.3f", apart.steady, apart.scatter)
	}
	if narrow, broad := (posteriors{same}).halfWidth(0.9), (posteriors{apart}).halfWidth(0.9); broad < 2*narrow {
		t.Errorf("the interval is %.3f wide where trials are alike and %.3f where they differ", narrow, broad)
	}
}

// Trials differ on engines in real time, and not on simulated ones, with a budget or without.
func TestSimulatedEnginesAreSteady(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: -1}
	for _, c := range []struct {
		cfg      MaxRateConfig
		scatters int
	}{
		{MaxRateConfig{Budget: time.Hour}, phiNodes + 1}, {MaxRateConfig{Budget: time.Hour, Steady: true}, 1}, {MaxRateConfig{Steady: true}, 1},
	} {
		c.cfg.SLO, c.cfg.Workload = slo, raceWorkload()
		for _, b := range NewMaxRate(c.cfg).bounds {
			want := c.scatters * 4
			if b.kind == onThroughput {
				want = c.scatters
			}
			if len(b.forms) != want {
				t.Errorf("budget %v, steady %v: %s has %d forms, want %d", c.cfg.Budget, c.cfg.Steady, b.name, len(b.forms), want)
			}
		}
	}
}
