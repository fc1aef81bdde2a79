package search

import (
	"math"
	"testing"
	"time"

	"planner/sweep/measure"
)

// The share of all requests beyond a limit, or the mean of all, is that of the curve, however much trials scatter and
// with or without a floor of lone requests.
func TestScatterKeepsTheShareOfAll(t *testing.T) {
	for _, allowed := range []float64{0, 0.01, 0.1, 0.5} {
		a := generic("ttft", allowed, false)
		value := func(z float64) float64 {
			if allowed == 0 {
				return math.Exp(z)
			}
			return unlink(z)
		}
		for _, floor := range []float64{0, 0.2, 0.6} {
			for _, sd := range []float64{0.3, 1, 2} {
				for _, z := range []float64{a.offset - 1, a.offset} {
					at, all := value(raised(a.offset, floor, z)), 0.0
					for i, x := range phiOffsets {
						all += nodeWeights[i] * value(raised(a.offset, floor, z-a.below(floor, z, sd)+x*sd))
					}
					// The mean of an exponentiated normal is not that of five nodes, which lack its tail.
					if off := all / at; math.Abs(off-1) > 2e-3 && (allowed > 0 || off > 1 || off < 0.98 && sd <= 0.3) {
						t.Errorf("allowed %g, floor %g, z %+.1f, trials off by %.1f: %.4f times the curve", allowed, floor, z-a.offset, sd, off)
					}
				}
			}
		}
	}
}

// Trials that differ by more than the draw of their requests explains widen the interval and are named; those on one
// curve are not.
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

// Trials may scatter on engines in real time, but not on simulated ones, with a budget or without.
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
