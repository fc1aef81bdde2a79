package decide

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestDispersion compares the dispersion of M/M/1 exceedances with
// ((1+rho)/(1-rho))^2 (1-p), from a million requests at utilisations of 0.5, 0.7
// and 0.8. The limit is where one request in a hundred is beyond it.
func TestDispersion(t *testing.T) {
	const mu = 35.0
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	w := &workload.Workload{Class: "one", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: one, Output: one}}}
	for _, rho := range []float64{0.5, 0.7, 0.8} {
		rate := rho * mu
		limit := time.Duration(math.Log(100) / (mu - rate) * float64(time.Second))
		batch := time.Duration(4000 / rate * float64(time.Second))
		trial := measure.Trial{Workload: w, Rate: rate, Warmup: 60 * time.Second, Window: 250 * batch, Seed: 11}
		records := virtual.Queue{Servers: 1, Rate: mu}.Serve(trial.Schedule(), 1, trial.Seed)
		bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: limit}
		counts := batches(records, bound, trial.Warmup, batch, 250)
		d, ok := dispersionOf([][]measure.Count{counts}, 0.01)
		want := math.Pow((1+rho)/(1-rho), 2)
		if got := d.Phi(0.01); !ok || math.Abs(math.Log(got/want)) > math.Log(1.3) {
			t.Errorf("rho %.1f: dispersion %.1f, want %.0f within 30 %%", rho, got, want)
		}
	}
}

func TestDispersionNeedsExceedances(t *testing.T) {
	if d, ok := dispersionOf([][]measure.Count{{{N: 1000}, {N: 1000}, {N: 1000}}}, 0.01); ok {
		t.Errorf("no exceedance gives %+v", d)
	}
}
