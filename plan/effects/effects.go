package effects

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"planner/internal/list"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// Effect is how the values of one knob affect the maximum rate, all else equal.
type Effect struct {
	Knob string `json:"knob"` // its name in configurations
	// Best and Worst are the values with the highest and the lowest mean rate.
	Best  string `json:"best"`
	Worst string `json:"worst"`
	// Cost is the share by which the rate is lower with the worst value than with the best.
	Cost       float64 `json:"cost"`
	Low        float64 `json:"low"`        // the lower end of Cost's interval
	High       float64 `json:"high"`       // its upper end
	Confidence float64 `json:"confidence"` // the level of the interval
	// Sets is the number of sets of knobs that were tried with either value.
	Sets int `json:"sets"`
}

// Shown reports whether the interval excludes no effect.
func (e *Effect) Shown() bool { return e.Low > 0 }

// confidence is the level of the intervals.
const confidence = 0.90

// Of ranks the knobs in which settings differ by their cost: main effects of a linear model of the logarithm of
// the rate, with a level per value, as far as the settings identify them. The intervals include what the model
// does not explain, such as interactions, and the error of placing sets; if settings differ in only one knob,
// only the latter. It is nil if there are too few settings for the values.
func Of(settings []Setting) []Effect {
	if len(settings) == 0 {
		return nil
	}
	for _, some := range [][]Setting{repeated(settings, 1), repeated(settings, 0), beside(settings)} {
		if all := mainEffects(some); all != nil {
			return all
		}
	}
	return nil
}

func mainEffects(settings []Setting) []Effect {
	factors := factorsOf(settings)
	columns := 1 + list.Sum(factors, func(f factor) int { return len(f.values) - 1 })
	free := len(settings) - columns
	if len(factors) == 0 || free < 1 && len(factors) > 1 {
		return nil
	}
	x, y := mat.NewDense(len(settings), columns, nil), mat.NewVecDense(len(settings), nil)
	for i, s := range settings {
		x.Set(i, 0, 1)
		for _, f := range factors {
			if level := slices.Index(f.values, f.knob.Text(s.Knobs)); level > 0 {
				x.Set(i, f.column+level-1, 1)
			}
		}
		y.SetVec(i, math.Log(s.Rate))
	}
	var gram, inverse mat.Dense
	gram.Mul(x.T(), x)
	if err := inverse.Inverse(&gram); err != nil {
		return nil // values that only occur together cannot be told apart
	}
	var moment, beta, residual mat.VecDense
	moment.MulVec(x.T(), y)
	beta.MulVec(&inverse, &moment)
	residual.MulVec(x, &beta)
	residual.SubVec(y, &residual)
	spread := 0.0
	if free > 0 {
		spread = stat.StudentT((1+confidence)/2, float64(free)) * math.Sqrt(mat.Dot(&residual, &residual)/float64(free))
	}
	out := list.Map(factors, func(f factor) Effect { return f.effect(settings, &beta, &inverse, spread) })
	slices.SortStableFunc(out, func(a, b Effect) int { return cmp.Compare(b.Cost, a.Cost) })
	return out
}

// repeated drops the settings in which more than alone values occur in no other setting: the effects of such
// values cannot be told apart.
func repeated(settings []Setting, alone int) []Setting {
	for {
		kept := list.Filter(settings, func(s Setting) bool {
			return list.Count(measure.KnobTable, func(n measure.Knob) bool {
				return !slices.ContainsFunc(settings, func(o Setting) bool { return o.Knobs != s.Knobs && n.Get(o.Knobs) == n.Get(s.Knobs) })
			}) <= alone
		})
		if len(kept) == len(settings) {
			return kept
		}
		settings = kept
	}
}

// beside returns the first setting and those that differ from it in at most one knob.
func beside(settings []Setting) []Setting {
	return list.Filter(settings, func(s Setting) bool { return s.Knobs.Differences(settings[0].Knobs) <= 1 })
}

// factor is a knob in which settings differ, and its values; those after the first have columns of the model,
// starting at column.
type factor struct {
	knob   measure.Knob
	values []string
	column int
}

func factorsOf(settings []Setting) []factor {
	var out []factor
	column := 1
	for _, n := range measure.KnobTable {
		f := factor{knob: n, values: Values(settings, n), column: column}
		if len(f.values) > 1 && !n.Placement {
			out = append(out, f)
			column += len(f.values) - 1
		}
	}
	return out
}

// Values returns the values of a knob in some settings, in order.
func Values(settings []Setting, n measure.Knob) []string {
	all := slices.Clone(settings)
	slices.SortStableFunc(all, func(a, b Setting) int { return cmp.Compare(n.Number(a.Knobs), n.Number(b.Knobs)) })
	return list.Distinct(list.Map(all, func(s Setting) string { return n.Text(s.Knobs) }))
}

// misplaced is half the interval of the error of placing a set, common to all sets with a value, as a share of
// its distance from the reference in ln(rate): max_num_seqs = 64 beside 256 was placed 3 and 13 % off a search
// of its own, at a distance of 36 %. least is the same at no distance: gpu_memory_utilization = 0.9 was placed
// 1.4 % below 0.92, though no figure of the two differed.
const misplaced, least = 0.4, 0.03

// rounding is the most by which equal effects on ln(rate) differ due to the order of summation: of equal values
// the first is named.
const rounding = 1e-9

// effect contrasts the best value of the factor with the worst. spread is the half-width of the interval of an
// effect with unit variance factor: the quantile of Student's t times the residual standard deviation.
func (f *factor) effect(settings []Setting, beta *mat.VecDense, inverse *mat.Dense, spread float64) Effect {
	at := func(level int) float64 {
		if level == 0 {
			return 0
		}
		return beta.AtVec(f.column + level - 1)
	}
	best, worst := 0, 0
	for level := range f.values {
		if at(level) > at(best)+rounding {
			best = level
		}
		if at(level) < at(worst)-rounding {
			worst = level
		}
	}
	covariance := func(i, j int) float64 {
		if i == 0 || j == 0 {
			return 0
		}
		return inverse.At(f.column+i-1, f.column+j-1)
	}
	variance := covariance(best, best) - covariance(best, worst) - covariance(worst, best) + covariance(worst, worst)
	gap := at(best) - at(worst)
	wide := math.Hypot(spread*math.Sqrt(max(variance, 0)), math.Hypot(misplaced*gap, least))
	e := Effect{Knob: f.knob.Name, Best: f.values[best], Worst: f.values[worst], Confidence: confidence,
		Cost: -math.Expm1(-gap), Low: -math.Expm1(-(gap - wide)), High: -math.Expm1(-(gap + wide))}
	for _, s := range settings {
		if v := f.knob.Text(s.Knobs); v == e.Best || v == e.Worst {
			e.Sets++
		}
	}
	return e
}
