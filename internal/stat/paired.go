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
	return PairedTBeside(differences, nil, confidence)
}

// PairedTBeside is the same where others, of things that do not differ, scatter alike: they
// tell the variance too, so that one pair beside them has an interval.
func PairedTBeside(differences, others []float64, confidence float64) Change {
	n := float64(len(differences))
	nan := math.NaN()
	if n == 0 {
		return Change{nan, nan, nan, nan}
	}
	mean, squares, free := stat.Mean(differences, nil), 0.0, n-1+float64(len(others))
	if free == 0 {
		return Change{mean, nan, nan, nan}
	}
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	for _, d := range others {
		squares += d * d
	}
	spread := math.Sqrt(squares / free / n)
	if spread <= rounding*math.Abs(mean) {
		p := 0.0
		if mean == 0 {
			p = 1
		}
		return Change{mean, mean, mean, p}
	}
	half := StudentT(0.5+confidence/2, free) * spread
	p := 2 * distuv.StudentsT{Sigma: 1, Nu: free}.Survival(math.Abs(mean)/spread)
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
