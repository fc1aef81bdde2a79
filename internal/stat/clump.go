package stat

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// BatchDispersion estimates the dispersion of a count of exceedances from one trial: the window is
// cut into 5, 10 and 20 equal batches of time, and the largest of the three variance ratios is
// returned, since short batches hide clumps and few batches show them poorly. at holds the position
// of each observation in the window, in [0, 1), and beyond whether it exceeded. The result is NaN
// when nothing, or everything, exceeded, and biased low exactly when the trial was lucky: it must
// never be used alone.
func BatchDispersion(at []float64, beyond []bool) float64 {
	k := 0
	for _, b := range beyond {
		if b {
			k++
		}
	}
	p := float64(k) / float64(len(at))
	if k == 0 || k == len(at) {
		return math.NaN()
	}
	return worstBatches(at, p*(1-p), func(i int) float64 {
		if beyond[i] {
			return 1 - p
		}
		return -p
	})
}

// MeanDispersion is the same for the mean of values: how many times larger its variance is than
// that of independent values. It is NaN for fewer than two values or when all are equal.
func MeanDispersion(at, values []float64) float64 {
	mean, variance := stat.MeanVariance(values, nil)
	if len(values) < 2 || variance == 0 {
		return math.NaN()
	}
	return worstBatches(at, variance, func(i int) float64 { return values[i] - mean })
}

// worstBatches returns the largest ratio of the variance of sums over batches to that of sums of as
// many independent values of the given variance; off gives the deviation of each value from its
// mean.
func worstBatches(at []float64, variance float64, off func(i int) float64) float64 {
	worst := 0.0
	for _, batches := range []int{5, 10, 20} {
		excess := make([]float64, batches)
		for i, t := range at {
			excess[min(max(int(t*float64(batches)), 0), batches-1)] += off(i)
		}
		each := float64(len(at)) / float64(batches)
		worst = max(worst, floats.Dot(excess, excess)/float64(batches-1)/(variance*each))
	}
	return worst
}

// Generic is the dispersion of the exceedances of a latency limit that is just met, where nothing
// is known of the server: single-queue, pooled and batching servers near their limit have 25 to 83.
const Generic = 40

// Growth is how fast that dispersion grows with the share of exceedances, as the Gamma of a
// [Dispersion]: like the square root of the share, as in most queues.
const Growth = 0.5

// Weights of Blend, as precisions of ln phi: 1/1.0^2 for the prior, whose spread over servers is a
// factor of e, and 1/0.6^2 for a trial's own estimate from some ten batches, taken at another level
// than the limit.
const (
	priorPrecision = 1.0
	ownPrecision   = 1 / (0.6 * 0.6)
)

// Blend returns the weighted geometric mean of a prior dispersion and a trial's own, at least 1. If
// the trial's own is NaN, the prior stays.
func Blend(prior, own float64) float64 {
	if math.IsNaN(own) {
		return max(prior, 1)
	}
	sum := priorPrecision*math.Log(prior) + ownPrecision*math.Log(max(own, 1))
	return max(math.Exp(sum/(priorPrecision+ownPrecision)), 1)
}
