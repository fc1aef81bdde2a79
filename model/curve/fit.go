package curve

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"planner/internal/list"

	"gonum.org/v1/gonum/optimize"
)

// Streams of random numbers, one per purpose.
const (
	streamStarts uint64 = 1 + iota
	streamBand
)

// starts is the number of random starting points per fit, finishers how many of them are followed to
// the end.
const (
	starts    = 16
	finishers = 4
)

// fitted is a model and how well it describes its sample.
type fitted struct {
	model Model
	// x is the optimum in the optimiser's coordinates.
	x []float64
	// rss is the weighted sum of squares in ln latency over n statistics.
	rss float64
	n   int
}

// rmse is the root mean square error in ln latency.
func (f *fitted) rmse() float64 { return math.Sqrt(f.rss / float64(f.n)) }

// aicc is Akaike's information criterion with the small-sample correction (Hurvich and Tsai 1989), the
// noise counted as a parameter; +Inf if the sample is too small for the form.
func (f *fitted) aicc() float64 {
	n, k := float64(f.n), float64(f.model.parameters()+1)
	if n-k-1 <= 0 {
		return math.Inf(1)
	}
	// A sum of squares of zero would win against everything: no measured latency is known to better
	// than a part in a thousand.
	ms := max(f.rss/n, 1e-6)
	return n*math.Log(ms) + 2*k + 2*k*(k+1)/(n-k-1)
}

// fit fits the parameters of a model's form: it minimises the weighted squares of ln latency by
// Nelder-Mead from seeded random starts. Parameters are fitted as logarithms or, if bounded, as
// log-odds within their range. Every start is run briefly, the best few to the end.
func fit(s *sample, form Model, seed uint64) fitted {
	rng := rand.New(rand.NewPCG(seed, streamStarts))
	rough := list.Times(starts, func(int) fitted { return descend(s, form, s.start(rng, form), roughEvaluations) })
	slices.SortStableFunc(rough, func(a, b fitted) int { return cmp.Compare(a.rss, b.rss) })
	best := refit(s, &rough[0])
	for _, r := range rough[1:finishers] {
		if f := refit(s, &r); f.rss < best.rss {
			best = f
		}
	}
	return best
}

// The evaluations of the loss that a rough descent may take per parameter, and the size of its first simplex in
// logarithms and log-odds.
const roughEvaluations, simplexSize = 25, 0.5

// descend minimises from one starting point.
func descend(s *sample, form Model, start []float64, evaluations int) fitted {
	m, errs := newModel(s, form), make([]float64, len(s.obs))
	loss := func(x []float64) float64 {
		m.decode(s, x)
		return squares(m, s, errs)
	}
	settings := &optimize.Settings{
		FuncEvaluations: evaluations * len(start),
		Converger:       &optimize.FunctionConverge{Absolute: 1e-12, Relative: 1e-8, Iterations: 8 * len(start)},
	}
	// Hitting the limit of evaluations is no failure: another start wins if it got lower.
	result, _ := optimize.Minimize(optimize.Problem{Func: loss}, start, settings, &optimize.NelderMead{SimplexSize: simplexSize})
	x := start
	if result != nil && len(result.X) == len(start) {
		x = result.X
	}
	return fitted{rss: loss(x), model: *m, x: x, n: len(s.obs)}
}

// hopeless is the loss of a form without finite latencies.
const hopeless = 1e9

// squares returns the sum of the squares of the weighted errors in ln latency, which it stores.
func squares(m *Model, s *sample, errs []float64) float64 {
	sum, rate, growth := 0.0, math.NaN(), 0.0
	for i := range s.obs {
		o := &s.obs[i]
		if o.rate != rate { // the levels of a point are adjacent
			rate, growth = o.rate, m.growth(o.rate/m.Mu)
		}
		errs[i] = math.Sqrt(o.weight) * (math.Log(m.grown(o.level, rate, growth)) - o.lnY)
		sum += errs[i] * errs[i]
	}
	if math.IsNaN(sum) || sum > hopeless {
		return hopeless
	}
	return sum
}

// newModel returns a model of a form with room for its parameters.
func newModel(s *sample, form Model) *Model {
	n := len(s.levels)
	m := &Model{Form: form.Form, Joint: form.Joint, Levels: s.levels, Floors: make([]float64, n), Scales: make([]float64, n)}
	if form.Form == StationaryFluid {
		m.Slopes = make([]float64, n)
	}
	return m
}

// The ranges of the exponent and of the logarithm of the curvature. Published exponents lie between 1
// and sqrt(2(c+1))-1 for c servers; the curvatures cover trials from a few requests to days.
const (
	minPower, maxPower         = 0.25, 6.0
	minLnCurvature, maxLnCurve = -16.0, 1.5
)

// decode sets the parameters from the optimiser's coordinates: floors, scales, mu, then the exponent or
// curvature, or the slopes.
func (m *Model) decode(s *sample, x []float64) {
	perLevel := len(m.Levels)
	if m.Joint {
		perLevel = 1
		floor, scale := between(0, s.common, x[0]), math.Exp(x[1])
		for i, q := range m.Levels {
			m.Floors[i], m.Scales[i] = floor, scale*tail(q)
		}
	} else {
		for i := range m.Levels {
			m.Floors[i], m.Scales[i] = between(0, s.floor[i], x[i]), math.Exp(x[perLevel+i])
		}
	}
	switch x = x[2*perLevel:]; m.Form {
	case Stationary:
		m.Mu = s.highest * (1 + math.Exp(x[0]))
	case StationaryPower:
		m.Mu, m.Power = s.highest*(1+math.Exp(x[0])), between(minPower, maxPower, x[1])
	case TimeDependent:
		m.Mu, m.Curvature = math.Exp(x[0]), math.Exp(between(minLnCurvature, maxLnCurve, x[1]))
	case StationaryFluid:
		m.Mu = between(s.highest, s.next, x[0])
		for i := range m.Slopes {
			m.Slopes[i] = math.Exp(x[1+i])
		}
	}
}

// start draws a starting point in the optimiser's coordinates.
func (s *sample) start(rng *rand.Rand, form Model) []float64 {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, o := range s.obs {
		lowest, highest = min(lowest, o.lnY), max(highest, o.lnY)
	}
	uniform := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	n := len(s.levels)
	if form.Joint {
		n = 1
	}
	var x []float64
	for range n {
		x = append(x, uniform(-1, 4))
	}
	for range n {
		if form.Form == TimeDependent {
			x = append(x, uniform(highest-4, highest+4))
		} else {
			x = append(x, uniform(lowest-5, lowest+1))
		}
	}
	switch form.Form {
	case Stationary:
		x = append(x, uniform(-4, 1))
	case StationaryPower:
		x = append(x, uniform(-4, 1), uniform(-3, -0.5))
	case StationaryFluid:
		x = append(x, uniform(-2, 2))
		for range s.levels {
			x = append(x, uniform(highest-6, highest+1))
		}
	case TimeDependent:
		x = append(x, math.Log(s.highest)+uniform(-0.7, 0.4), uniform(-2, 2))
	}
	return x
}

// between maps the real line onto (lo, hi).
func between(lo, hi, x float64) float64 { return lo + (hi-lo)/(1+math.Exp(-x)) }

// pointsForPower is the smallest number of rates to which the exponent is fitted.
const pointsForPower = 6

// stationaryForms returns the stationary forms that this many rates can support, simplest first, with
// common or separate floors and scales.
func stationaryForms(distinct int) []Model {
	forms := []Model{{Form: Stationary, Joint: true}, {Form: Stationary}}
	if distinct >= pointsForPower {
		forms = append(forms, Model{Form: StationaryPower, Joint: true}, Model{Form: StationaryPower})
	}
	return forms
}

// fitAll fits every form.
func fitAll(s *sample, forms []Model, seed uint64) []fitted {
	return list.Map(forms, func(m Model) fitted { return fit(s, m, seed) })
}

// choose goes through fits to one sample from the simplest to the richest and moves to a richer one
// only for a gain of decisiveGain in AICc.
func choose(all []fitted) int {
	order := list.Times(len(all), func(i int) int { return i })
	slices.SortStableFunc(order, func(a, b int) int {
		return all[a].model.parameters() - all[b].model.parameters()
	})
	best := order[0]
	for _, i := range order[1:] {
		if all[i].aicc() < all[best].aicc()-decisiveGain {
			best = i
		}
	}
	return best
}

// leaveOneOut returns the root mean square error in ln latency of each point under a fit to the others;
// infinite where there is no such fit.
func leaveOneOut(s *sample, f *fitted) float64 {
	sum, n := 0.0, 0
	for p := range s.points {
		rest := s.without(p)
		if len(rest.obs) == len(s.obs) {
			continue
		}
		if len(rest.obs) < f.model.parameters() {
			return math.Inf(1)
		}
		g := refit(rest, f)
		for _, o := range s.obs {
			if o.point == p {
				d := math.Log(g.model.at(o.level, o.rate)) - o.lnY
				sum += d * d
				n++
			}
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(sum / float64(n))
}
