package stattest

import (
	"math/rand/v2"
	"testing"
)

func TestExponentialKS(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	rejected := 0
	for range 400 {
		g := make([]float64, 100)
		for i := range g {
			g[i] = rng.ExpFloat64() / 7
		}
		if _, p := ExponentialKS(g, 1.0/7); p < 0.05 {
			rejected++
		}
	}
	// 5 % of 400 is 20, standard deviation 4.4.
	if rejected < 5 || rejected > 38 {
		t.Errorf("%d of 400 true samples rejected at 5 %%", rejected)
	}
	even := make([]float64, 100)
	for i := range even {
		even[i] = 1
	}
	if _, p := ExponentialKS(even, 1); p > 1e-6 {
		t.Errorf("constant gaps pass with p = %g", p)
	}
}
