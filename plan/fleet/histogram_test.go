package fleet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHistogramQuantile takes examples of Prometheus' histogram_quantile, and one that
// llm-d published: a p90 of 38 ms where every token takes between 20 and 40 ms.
func TestHistogramQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
		bounds  []float64
	}{
		{[]float64{0.021, 0.022, 0.023}, 0.9, 0.038, routerTPOT[:]},
		{[]float64{0.5, 1.5, 1.5, 3}, 0.5, 1.5, []float64{1, 2, 4}},
		{[]float64{0.5, 1.5, 1.5, 3}, 1, 4, []float64{1, 2, 4}},
		{[]float64{1, 1}, 0.5, 0.5, []float64{1, 2}}, // a value on a bound is below it
		{[]float64{9, 9}, 0.5, 2, []float64{1, 2}},   // above all
		{[]float64{0.5, 9}, 0.5, 1, []float64{1, 2}},
	} {
		if got := histogramQuantile(c.values, c.q, c.bounds); !close(got, c.want) {
			t.Errorf("%v of %v in %v: %v, want %v", c.q, c.values, c.bounds[:min(len(c.bounds), 4)], got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]float64, 1+rng.IntN(80))
		for i := range values {
			values[i] = math.Exp(3 * rng.NormFloat64())
		}
		q := rng.Float64()
		got := histogramQuantile(values, q, routerTTFT[:])
		slices.Sort(values)
		// The true one is in the same bucket.
		i, _ := slices.BinarySearch(routerTTFT[:], values[max(int(math.Ceil(q*float64(len(values))))-1, 0)])
		low := 0.0
		if i > 0 {
			low = routerTTFT[i-1]
		}
		if got < low || i < len(routerTTFT) && got > routerTTFT[i] {
			t.Fatalf("%v of %v: %v, want the bucket above %v", q, values, got, low)
		}
	}
}
