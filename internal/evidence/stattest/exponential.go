// Package stattest holds what tests need to judge random draws.
package stattest

import (
	"math"
	"slices"
)

// ExponentialKS compares gaps with the exponential distribution of the given
// mean: the largest distance between the two distribution functions, and the
// probability of one as large by chance (Kolmogorov's asymptotic law with
// Stephens' 1970 correction for small samples, within 1 % from n = 20).
func ExponentialKS(gaps []float64, mean float64) (distance, probability float64) {
	x := slices.Sorted(slices.Values(gaps))
	n := float64(len(x))
	for i, v := range x {
		f := -math.Expm1(-v / mean)
		distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
	}
	root := math.Sqrt(n)
	return distance, kolmogorov((root + 0.12 + 0.11/root) * distance)
}

// kolmogorov is the probability that the scaled distance is at least t.
func kolmogorov(t float64) float64 {
	if t < 0.2 {
		return 1
	}
	sum, sign := 0.0, 1.0
	for j := 1.0; j <= 100; j++ {
		sum += sign * math.Exp(-2*j*j*t*t)
		sign = -sign
	}
	return min(max(2*sum, 0), 1)
}
