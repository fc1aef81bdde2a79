package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/list"
)

// Difference is how much larger one figure is than another, with an interval around it; NaN is not
// known.
type Difference struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// PairedT returns the mean of paired differences with Student's interval, which takes them as
// independent and about normal, and the two-sided p-value of no difference. others are differences
// of pairs that do not differ, with the same scatter: they add to the estimate of the variance. One
// pair without others gives neither. Pairs that all differ by the same leave no doubt.
func PairedT(differences, others []float64, confidence float64) (d Difference, p float64) {
	mean, spread, free := scatter(differences, others)
	d, p = Difference{mean, mean, mean}, pairedP(mean, spread, free)
	switch {
	case !(free > 0):
		d.Low, d.High = math.NaN(), math.NaN()
	case p > 0 && spread > 0:
		half := StudentT(0.5+confidence/2, free) * spread
		d.Low, d.High = mean-half, mean+half
	}
	return d, p
}

// scatter returns the mean of differences, NaN if there are none, its standard error, and the
// degrees of freedom of that error.
func scatter(differences, others []float64) (mean, spread, free float64) {
	n := float64(len(differences))
	mean, free = stat.Mean(differences, nil), n-1+float64(len(others))
	squares := 0.0
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	for _, d := range others {
		squares += d * d
	}
	return mean, math.Sqrt(squares / free / n), free
}

// pairedP returns the two-sided p-value of a mean difference: 0 if all pairs differ by the same,
// NaN if the scatter is not known.
func pairedP(mean, spread, free float64) float64 {
	switch {
	case !(free > 0):
		return math.NaN()
	case mean == 0 && spread == 0:
		return 1
	case spread <= rounding*math.Abs(mean):
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: free}.Survival(math.Abs(mean)/spread)
}

// mostFlipped is the largest number of pairs for which [SignFlips] goes through all signs; more
// pairs are informative enough without.
const mostFlipped = 12

// SignFlips adjusts the p-values of Student's test over several figures of the same pairs, one row
// per figure and one column per pair, for multiple tests as [Holm] does, but allows for figures
// that move together: if there is no difference it is chance which of a pair is called A, so that
// all signs of the pairs are equally likely (step-down minP of Westfall and Young 1993). A figure
// that a pair does not have is NaN there. With n pairs no p-value is below 2^(1-n): figures of too
// few pairs to reach the level are NaN, left to another test. It is nil for more than mostFlipped
// pairs, or none.
func SignFlips(rows [][]float64, level float64) []float64 {
	if len(rows) == 0 || len(rows[0]) == 0 || len(rows[0]) > mostFlipped {
		return nil
	}
	test := func(row []float64, signs int) float64 {
		var known []float64
		for i, d := range row {
			if signs>>i&1 == 1 {
				d = -d
			}
			if !math.IsNaN(d) {
				known = append(known, d)
			}
		}
		return pairedP(scatter(known, nil))
	}
	p := make([]float64, len(rows))
	var order []int
	for i, row := range rows {
		p[i] = math.NaN()
		if math.Ldexp(2, -list.Count(row, func(d float64) bool { return !math.IsNaN(d) })) <= level {
			p[i] = test(row, 0)
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	all := 1 << (len(rows[0]) - 1) // the other half are their opposites, of the same p-values
	reached := make([]int, len(order))
	for signs := range all {
		least := 1.0
		for rank, i := range slices.Backward(order) {
			if least = min(least, test(rows[i], signs)); least <= p[i]*(1+rounding) {
				reached[rank]++
			}
		}
	}
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, float64(reached[rank])/float64(all))
		p[i] = worst
	}
	return p
}

// Holm adjusts the p-values of several tests so that the probability of any false alarm among them
// stays below the level that an adjusted one is compared with (Holm 1979). NaN stays NaN and does
// not count as a test.
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
