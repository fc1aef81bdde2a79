package search

import "math"

// Drift estimates the standard deviation of ln capacity between restarts of a
// server from one estimate a restart: what the spread of the values has beyond
// what their own intervals explain (the moment estimator of DerSimonian and
// Laird 1986, unweighted). Fewer than three restarts say nothing; it is then 0.
func Drift(restarts []Estimate) float64 {
	if len(restarts) < leastStarts {
		return 0
	}
	mean, within := 0.0, 0.0
	n := float64(len(restarts))
	for _, e := range restarts {
		mean += math.Log(e.Value) / n
		sd := math.Log(e.High/e.Low) / (2 * normalTail(e.Confidence))
		within += sd * sd / n
	}
	between := 0.0
	for _, e := range restarts {
		d := math.Log(e.Value) - mean
		between += d * d / (n - 1)
	}
	return math.Sqrt(max(between-within, 0))
}

// Widen adds the drift between restarts to an estimate that rests on the given
// number of them: the interval grows by the normal quantile of its confidence
// times sigma/sqrt(restarts).
func (e Estimate) Widen(sigma float64, restarts int) Estimate {
	if sigma <= 0 {
		return e
	}
	sd := sigma / math.Sqrt(float64(max(restarts, 1)))
	f := math.Exp(normalTail(e.Confidence) * sd)
	e.Low /= f
	e.High *= f
	e.Safe /= math.Exp(quantile95 * sd)
	return e
}

// normalTail is the standard normal quantile that a central interval of the
// given confidence reaches.
func normalTail(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}

// leastStarts is how many starts of an engine tell what starts differ by.
const leastStarts = 3
