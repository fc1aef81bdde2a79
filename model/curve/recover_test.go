package curve

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

const seeds = 6

// Points of a stationary law with 5 % noise: the law, its saturation rate and
// its crossing come back, and nothing is called overload.
func TestRecoverStationary(t *testing.T) {
	t.Parallel()
	l := stationaryLaw(0.05)
	bound := ttft(0.99, 500*time.Millisecond)
	want, _ := l.Crossing(0.99, 0.5)
	var mu, cross deviations
	overload, form := 0, 0
	for seed := range uint64(seeds) {
		c := must.Get(Fit(measure.TTFT, l.draw(seed, 1, 4, 8, 12, 16, 20, 24, 28, 30), seed))
		for _, p := range c.Points {
			if p.Regime != Stable {
				overload++
				break
			}
		}
		if c.Model.Form == Stationary {
			form++
		}
		mu.add(c.Model.Mu, 33)
		cross.add(must.Get(c.Crossing(bound)).Value, want)
	}
	mu.check(t, "mu", 0.05)
	cross.check(t, "crossing", 0.03)
	if form < seeds*9/10 {
		t.Errorf("the form came back from %d of %d", form, seeds)
	}
	if overload > 1 {
		t.Errorf("overload named in %d of %d curves that have none", overload, seeds)
	}
}

// Points of a queue observed for a finite time, some above saturation: the
// overload is named from latencies alone.
func TestRecoverTimeDependent(t *testing.T) {
	t.Parallel()
	l := timeDependentLaw(0.05)
	bound := ttft(0.99, 500*time.Millisecond)
	want, _ := l.Crossing(0.99, 0.5)
	var mu, cross deviations
	form := 0
	for seed := range uint64(seeds) {
		c := must.Get(Fit(measure.TTFT, l.draw(seed, 1, 5, 10, 15, 20, 24, 28, 36, 40, 44), seed))
		for _, p := range c.Points {
			if want := map[bool]Regime{true: Overload, false: Stable}[p.Rate > 33]; p.Regime != want {
				t.Errorf("seed %d: %g requests/s is %v", seed, p.Rate, p.Regime)
			}
		}
		if c.Whole != nil && c.Whole.Form == TimeDependent && c.Model.Form == Stationary {
			form++
		}
		mu.add(c.Saturation.Value, 33)
		cross.add(must.Get(c.Crossing(bound)).Value, want)
	}
	mu.check(t, "mu", 0.05)
	cross.check(t, "crossing", 0.03)
	if form < seeds*9/10 {
		t.Errorf("the forms came back from %d of %d", form, seeds)
	}
}

// A stationary form through overload points would put mu above them all: the
// forms are never fitted to them.
func TestStationaryRefusesOverload(t *testing.T) {
	c := must.Get(Fit(measure.TTFT, timeDependentLaw(0).draw(1, 1, 5, 10, 15, 20, 24, 28, 36, 40, 44), 0))
	for _, k := range c.Candidates {
		stationary := k.Model.Form == Stationary || k.Model.Form == StationaryPower
		if stationary == (k.Points == allPoints) {
			t.Errorf("%v was fitted to %s points", k.Model.Form, k.Points)
		}
	}
	all := fit(newSample(timeDependentLaw(0).draw(1, 1, 5, 10, 15, 20, 24, 28, 36, 40, 44), []float64{0.5, 0.99}), Model{Form: Stationary, Joint: true}, 1)
	if all.model.Mu < 44 || all.rmse() < 0.2 {
		t.Errorf("the refused fit has mu %.1f and rmse %.2f: the test shows nothing", all.model.Mu, all.rmse())
	}
}

// deviations collects relative errors.
type deviations struct{ values []float64 }

func (e *deviations) add(got, want float64) { e.values = append(e.values, got/want-1) }

// check demands the root mean square error within the limit, and the mean
// within half of it.
func (e *deviations) check(t *testing.T, name string, limit float64) {
	t.Helper()
	sum, squares, worst := 0.0, 0.0, 0.0
	for _, v := range e.values {
		sum += v
		squares += v * v
		worst = max(worst, math.Abs(v))
	}
	n := float64(len(e.values))
	t.Logf("%s: mean %+.2f %%, rms %.2f %%, worst %.2f %%", name, 100*sum/n, 100*math.Sqrt(squares/n), 100*worst)
	if math.Abs(sum/n) > limit/2 || math.Sqrt(squares/n) > limit {
		t.Errorf("%s: mean error %+.2f %%, rms %.2f %%, limit %g %%", name, 100*sum/n, 100*math.Sqrt(squares/n), 100*limit)
	}
}
