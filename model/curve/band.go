package curve

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// BandPoint is the range of the model at one rate, in seconds.
type BandPoint struct {
	Rate, Quantile float64
	Low, High      float64
}

// The band spans the 5th to the 95th percentile of bandRefits refits to redrawn trials, at bandRates
// rates.
const (
	bandRefits = 200
	bandRates  = 24
	bandTail   = 0.05
)

// bootstrap fills in the band and returns the range of mu: every point is redrawn from the fitted model
// with its own number of requests, and the form is fitted again. If any number of requests is unknown
// there is no sampling error to state, and the range is zero.
func (c *Curve) bootstrap(steady []Point, best *fitted, seed uint64) (mu [2]float64) {
	if slices.ContainsFunc(steady, func(p Point) bool { return p.Requests == 0 }) {
		return mu
	}
	src := rand.NewPCG(seed, streamBand)
	s := newSample(steady, c.Model.Levels).weigh(steady, &best.model)
	models := make([]Model, 0, bandRefits)
	var mus []float64
	for range bandRefits {
		redraw(s, steady, &best.model, src)
		f := refit(s, best)
		models = append(models, f.model)
		mus = append(mus, f.model.Mu)
	}
	for i := range bandRates {
		rate := c.Low + (c.End()-c.Low)*float64(i)/(bandRates-1)
		for _, q := range c.Model.Levels {
			var ys []float64
			for j := range models {
				if y, ok := models[j].At(q, rate); ok {
					ys = append(ys, y)
				} else {
					ys = append(ys, math.Inf(1))
				}
			}
			low, high := percentiles(ys)
			if !math.IsInf(high, 1) {
				c.Band = append(c.Band, BandPoint{rate, q, low, high})
			}
		}
	}
	mu[0], mu[1] = percentiles(mus)
	return mu
}

// A refit takes at most refitSteps steps of Gauss and Newton, each halved until it lessens the squares, at most refitHalvings
// times, and ends with a gain of less than refitGain of them. Derivatives are taken over refitStep in the
// optimiser's coordinates; refitDamping, a share of the largest, keeps a coordinate that nothing tells from running away.
const (
	refitSteps, refitHalvings = 50, 8
	refitGain                 = 1e-5
	refitStep, refitDamping   = 1e-4, 1e-3
)

// refit fits a form anew from the optimum of a similar sample, or to the end from a rough one.
func refit(s *sample, best *fitted) fitted {
	n, p := len(s.obs), len(best.x)
	m, errs, moved := newModel(s, best.model), make([]float64, n+p), make([]float64, n)
	loss := func(x, errs []float64) float64 {
		m.decode(s, x)
		return squares(m, s, errs)
	}
	x, next := slices.Clone(best.x), make([]float64, p)
	slopes, right, step := mat.NewDense(n+p, p, nil), mat.NewVecDense(n+p, errs), mat.NewVecDense(p, nil)
	least, gain := loss(x, errs), math.Inf(1)
	for i := 0; i < refitSteps && gain > refitGain*least; i++ {
		for k := range p {
			copy(next, x)
			next[k] += refitStep
			loss(next, moved)
			for i := range moved {
				slopes.Set(i, k, (moved[i]-errs[i])/refitStep)
			}
		}
		damping := refitDamping * mat.Norm(slopes.Slice(0, n, 0, p), 2)
		for k := range p {
			slopes.Set(n+k, k, damping)
		}
		if step.SolveVec(slopes, right) != nil {
			break
		}
		gain = 0
		for h := 0; h < refitHalvings && gain == 0; h++ {
			floats.SubTo(next, x, step.RawVector().Data)
			gain = max(least-loss(next, moved), 0)
			step.ScaleVec(0.5, step)
		}
		if gain > 0 {
			least -= gain
			copy(x, next)
			copy(errs, moved)
		}
	}
	return fitted{rss: loss(x, errs), model: *m, x: x, n: n}
}

// percentiles returns the 5th and the 95th percentile of the values, which it sorts.
func percentiles(values []float64) (low, high float64) {
	slices.Sort(values)
	last := float64(len(values) - 1)
	return values[int(math.Round(bandTail*last))], values[int(math.Round((1-bandTail)*last))]
}

// redraw replaces every measured statistic by one that the model could have produced. The true level of
// an empirical quantile of n requests is a Beta variable; those of one point are drawn in ascending
// order, each given the one before, so that they stay sorted.
func redraw(s *sample, points []Point, m *Model, src rand.Source) {
	point, at, q := -1, 0.0, 0.0
	for i := range s.obs {
		o := &s.obs[i]
		n := effective(points[o.point].Requests, o.rate/m.Mu)
		level := m.Levels[o.level]
		if o.point != point {
			point, at, q = o.point, 0, 0
		}
		size := m.Scales[o.level] * m.growth(o.rate/m.Mu) / tail(level)
		if level == 0 {
			mean := distuv.Gamma{Alpha: n, Beta: n, Src: src}.Rand()
			o.lnY = math.Log(m.Floors[o.level] + size*mean)
			continue
		}
		at += (1 - at) * distuv.Beta{Alpha: n * (level - q), Beta: n * (1 - level), Src: src}.Rand()
		q = level
		o.lnY = math.Log(m.Floors[o.level] + size*tail(min(at, 1-1e-12)))
	}
}
