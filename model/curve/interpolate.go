package curve

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/interp"

	"planner/internal/stat"
)

// series is one statistic against the rate, rising, in ln seconds.
type series struct {
	rates, lnY []float64
	spline     interp.FritschButland
}

// newSeries merges the points of one rate, makes the latencies rise with the
// rate (the closest rising sequence, weighted by requests: latency that falls
// with load is noise) and puts a monotone spline through their logarithms
// (Fritsch and Butland 1984). It needs two rates.
func newSeries(points []Assessed, quantile float64) (*series, error) {
	s := &series{}
	var weights []float64
	for i := range points {
		p := &points[i]
		y, ok := p.Latency(quantile)
		if !ok {
			continue
		}
		w, lnY := float64(max(p.Requests, 1)), math.Log(y.Seconds())
		if last := len(s.rates) - 1; last >= 0 && s.rates[last] == p.Rate {
			sum := weights[last] + w
			s.lnY[last] += (lnY - s.lnY[last]) * w / sum
			weights[last] = sum
			continue
		}
		s.rates, s.lnY, weights = append(s.rates, p.Rate), append(s.lnY, lnY), append(weights, w)
	}
	if len(s.rates) < 2 {
		return nil, fmt.Errorf("interpolate %s: known at %d of the measured rates; at least two are needed", Name(quantile), len(s.rates))
	}
	s.lnY = stat.Monotone(s.lnY, weights)
	if err := s.spline.Fit(s.rates, s.lnY); err != nil {
		return nil, fmt.Errorf("interpolate %s: %w", Name(quantile), err)
	}
	return s, nil
}

// at is the interpolated latency in seconds, false outside the measured rates.
func (s *series) at(rate float64) (float64, bool) {
	if rate < s.rates[0] || rate > s.rates[len(s.rates)-1] {
		return 0, false
	}
	return math.Exp(s.spline.Predict(rate)), true
}

// bracket is the index of the last rate before the limit (in ln seconds) is
// exceeded: -1 if it is exceeded at once, the last index if it never is.
func (s *series) bracket(limit float64) int {
	return sort.Search(len(s.lnY), func(i int) bool { return s.lnY[i] > limit }) - 1
}

// crossing is where the spline passes the limit between two bracketing rates.
func (s *series) crossing(i int, limit float64) float64 {
	return bisect(s.rates[i], s.rates[i+1], func(rate float64) bool { return s.spline.Predict(rate) > limit })
}

// logLinear is where the straight line in ln latency between the bracketing
// rates passes the limit.
func (s *series) logLinear(i int, limit float64) float64 {
	share := (limit - s.lnY[i]) / (s.lnY[i+1] - s.lnY[i])
	return s.rates[i] + share*(s.rates[i+1]-s.rates[i])
}
