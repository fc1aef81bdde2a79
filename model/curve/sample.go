package curve

import (
	"math"
	"slices"

	"planner/internal/list"
)

// fitPoint is one statistic of one point, in ln seconds.
type fitPoint struct {
	point, level int
	rate, lnY    float64
	weight       float64
}

// sample is what a form is fitted to.
type sample struct {
	levels []float64
	obs    []fitPoint
	// floor is the largest idle latency that a fit may give each level, common that of a floor shared
	// by all: slightly above the smallest measured one.
	floor  []float64
	common float64
	// highest is the largest rate that a stationary form must carry; mu of StationaryFluid lies between
	// it and next.
	highest, next float64
	points        int
}

// floorSlack lets a floor exceed the smallest measured latency by the noise of one point.
const floorSlack = 1.05

// newSample takes the statistics of the levels from the points.
func newSample(points []Point, levels []float64) *sample {
	s := &sample{levels: levels, points: len(points), common: math.Inf(1), next: math.Inf(1), floor: slices.Repeat([]float64{math.Inf(1)}, len(levels))}
	for i := range points {
		p := &points[i]
		s.highest = max(s.highest, p.Rate)
		for j, q := range levels {
			y, ok := p.Latency(q)
			if !ok {
				continue
			}
			s.floor[j] = min(s.floor[j], floorSlack*y.Seconds())
			s.common = min(s.common, floorSlack*y.Seconds())
			s.obs = append(s.obs, fitPoint{point: i, level: j, rate: p.Rate, lnY: math.Log(y.Seconds()), weight: 1})
		}
	}
	return s
}

// without returns the sample less one point; bounds stay those of the whole.
func (s *sample) without(point int) *sample {
	t := *s
	t.obs = list.Filter(s.obs, func(o fitPoint) bool { return o.point != point })
	return &t
}

// rates returns the distinct rates in ascending order.
func rates(points []Point) []float64 {
	all := list.Map(points, func(p Point) float64 { return p.Rate })
	slices.Sort(all)
	return slices.Compact(all)
}

// modelError is the relative error of even the best form, as a standard deviation of ln latency; it
// bounds the weight of large samples.
const modelError = 0.03

// weigh sets the weights to the inverse variances of ln latency that the first fit and the numbers of
// requests imply: phi q(1-q)/(n f^2), with the density f of the exponential tail, plus modelError^2. If
// any number is unknown all weights stay equal.
func (s *sample) weigh(points []Point, m *Model) *sample {
	t := *s
	t.obs = slices.Clone(s.obs)
	sum := 0.0
	for i := range t.obs {
		o := &t.obs[i]
		n := points[o.point].Requests
		if n == 0 {
			return s
		}
		sd := relativeError(m, o.level, o.rate, n)
		o.weight = 1 / (sd*sd + modelError*modelError)
		sum += o.weight
	}
	for i := range t.obs {
		t.obs[i].weight *= float64(len(t.obs)) / sum
	}
	return &t
}

// relativeError returns the standard deviation of the logarithm of an empirical quantile (or mean) of n
// requests under the model.
func relativeError(m *Model, level int, rate float64, n int) float64 {
	q := m.Levels[level]
	y := m.at(level, rate)
	tailSize := max(y-m.Floors[level], 0) / tail(q)
	odds := q / (1 - q)
	if q == 0 {
		odds = 1
	}
	return tailSize / y * math.Sqrt(odds/effective(n, rate/m.Mu))
}

// effective returns the number of independent requests that n correlated ones are worth. Counts of
// exceedances have the dispersion of the M/M/1 queue, ((1+rho)/(1-rho))^2, whose busy periods make them
// come in clumps (Hooghiemstra and Meester 1996).
func effective(n int, rho float64) float64 {
	rho = min(max(rho, 0), 0.99)
	phi := math.Pow((1+rho)/(1-rho), 2)
	return max(float64(n)/phi, 4)
}
