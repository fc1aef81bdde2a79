package search_test

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// TestDispersion compares the dispersion of M/M/1 exceedances with
// ((1+rho)/(1-rho))^2 (1-p), from a million requests at utilisations of 0.5, 0.7
// and 0.8. The limit is where one request in a hundred is beyond it.
func TestDispersion(t *testing.T) {
	const mu = 35.0
	for _, rho := range []float64{0.5, 0.7, 0.8} {
		rate := rho * mu
		limit := time.Duration(math.Log(100) / (mu - rate) * float64(time.Second))
		batch := time.Duration(4000 / rate * float64(time.Second))
		trial := measure.Trial{Workload: poisson(), Rate: rate, Warmup: 60 * time.Second, Window: 250 * batch, Seed: 11}
		records := virtual.Queue{Servers: 1, Rate: mu}.Serve(trial.Schedule(), 1, trial.Seed)
		bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: limit}
		counts := search.Batches(records, bound, trial.Warmup, batch, 250)
		d, ok := search.Dispersion([][]measure.Count{counts}, 0.01)
		want := math.Pow((1+rho)/(1-rho), 2)
		if got := d.Phi(0.01); !ok || math.Abs(math.Log(got/want)) > math.Log(1.3) {
			t.Errorf("rho %.1f: dispersion %.1f, want %.0f within 30 %%", rho, got, want)
		}
	}
}

func TestDispersionNeedsExceedances(t *testing.T) {
	if d, ok := search.Dispersion([][]measure.Count{{{N: 1000}, {N: 1000}, {N: 1000}}}, 0.01); ok {
		t.Errorf("no exceedance gives %+v", d)
	}
}

// TestCertificate certifies 15 % below the maximum rate of M/M/1 and counts how
// often the maximum rate itself is certified: at most twice 3 % of 16, with
// allowance for chance.
func TestCertificate(t *testing.T) {
	truth := single.MaxRate(half, 0.01)
	certified := func(rate float64) (n int) {
		for seed := range uint64(16) {
			found := search.Result{Estimate: search.Estimate{Value: rate / 0.9, Safe: rate}}
			c := search.Certify(config(search.Prior{Phi: 44}, seed), found, 600*time.Second)
			for batch := c.Next(); len(batch) > 0; batch = c.Next() {
				c.Observe(virtual.Bench{Server: single, NoAbort: true}.Run(batch[0]))
			}
			if c.Result().State == measure.Met {
				n++
			}
		}
		return n
	}
	if n := certified(truth); n > 3 {
		t.Errorf("the maximum rate was certified %d times of 16", n)
	}
	if n := certified(0.85 * truth); n < 12 {
		t.Errorf("85 %% of the maximum rate was certified %d times of 16", n)
	}
}
