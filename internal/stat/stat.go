// Package stat holds the quantiles, intervals and count distributions that no
// library gives in the form that latency trials need: exceedances of a limit
// come in clumps, so every interval takes a dispersion.
package stat

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// rank returns the 1-based rank of the q-quantile of n sorted values under the definition used
// throughout, the inverse of the empirical distribution: the smallest value x such that at least a
// share q of the values is <= x (type 1 of Hyndman and Fan 1996). It is chosen over the
// interpolating definitions because it agrees with counting: the quantile is <= a limit if and only
// if no more than a share 1-q of the values is above the limit. Products such as 0.07*100 that miss
// a whole number by rounding count as that number.
func rank(n int, q float64) int {
	r := int(math.Ceil(q*float64(n) - rounding*float64(n)))
	return min(max(r, 1), n)
}

// rounding is the relative slack for shares that are whole in decimal but not in binary.
const rounding = 1e-12

// Quantile returns the q-quantile of ascending values as rank defines it. It panics if there are
// none.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	return sorted[rank(len(sorted), q)-1]
}

// Monotone returns the non-decreasing sequence nearest to y in weighted least squares, by pooling
// adjacent violators (Ayer et al. 1955). Weights must be positive; nil means equal ones.
func Monotone(y, weights []float64) []float64 {
	type block struct {
		value, weight float64
		n             int
	}
	var blocks []block
	for i, v := range y {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		b := block{v, w, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].value >= b.value {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			sum := last.weight + b.weight
			b = block{(last.value*last.weight + b.value*b.weight) / sum, sum, last.n + b.n}
		}
		blocks = append(blocks, b)
	}
	out := make([]float64, 0, len(y))
	for _, b := range blocks {
		out = append(out, slices.Repeat([]float64{b.value}, b.n)...)
	}
	return out
}

// Rounded rounds a number to so many significant digits.
func Rounded(x float64, digits int) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64) // what FormatFloat writes always parses
	return y
}

// RoundedDown rounds a positive number down to so many significant digits, as for a safe rate that
// a fleet is to rely on; any other number stays as it is.
func RoundedDown(x float64, digits int) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return x
	}
	unit := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(x)))
	return math.Floor(x*unit*(1+1e-12)) / unit
}
