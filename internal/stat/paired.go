package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Change is how much larger one figure is than another: the value, an interval
// around it, and the probability of one as far from zero if nothing had changed
// (two-sided). Low, High and P are NaN where the sample does not tell.
type Change struct{ Value, Low, High, P float64 }

// PairedT is the mean of differences of pairs with Student's interval, which
// takes them as independent and about normal. One pair gives no interval. Pairs
// that all differ by the same leave no doubt.
func PairedT(differences []float64, confidence float64) Change {
	n := float64(len(differences))
	nan := math.NaN()
	if n == 0 {
		return Change{nan, nan, nan, nan}
	}
	mean, variance := stat.MeanVariance(differences, nil)
	if n == 1 {
		return Change{differences[0], nan, nan, nan}
	}
	spread := math.Sqrt(variance / n)
	if spread <= rounding*math.Abs(mean) {
		p := 0.0
		if mean == 0 {
			p = 1
		}
		return Change{mean, mean, mean, p}
	}
	half := StudentT(0.5+confidence/2, n-1) * spread
	p := 2 * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(math.Abs(mean)/spread)
	return Change{mean, mean - half, mean + half, p}
}

// Holm adjusts the probabilities of several tests so that the chance of any
// false alarm among them stays below the level that an adjusted one is held
// against (Holm 1979). NaN stays NaN and does not count as a test.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, p[i]*float64(len(order)-rank)))
		out[i] = worst
	}
	return out
}
