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

// Effect is what the values of one knob do to the maximum rate, all else equal.
type Effect struct {
	Knob string `json:"knob"` // its name in configurations
	// Best and Worst are the values with the highest and the lowest mean rate.
	Best  string `json:"best"`
	Worst string `json:"worst"`
	// Cost is by how much lower, as a share, the rate is with the worst value, with its
	// interval.
	Cost       float64 `json:"cost"`
	Low        float64 `json:"low"`        // the lower end of the interval
	High       float64 `json:"high"`       // its upper end
	Confidence float64 `json:"confidence"` // the probability of the interval
	// Sets is how many sets of knobs were tried with either value.
	Sets int `json:"sets"`
}

// Shown reports whether the interval is away from no effect.
func (e *Effect) Shown() bool { return e.Low > 0 }

// confidence is that of the intervals.
const confidence = 0.90

// Of ranks the knobs in which settings differ by what they cost: main effects of a linear
// model of the logarithm of the rate, a level for each value, as far as settings tell these apart. Its intervals hold
// what the model does not explain, interactions of knobs included, and what sets are placed wrong by; where settings
// differ in one knob alone the latter is all. It is nil where there are too few settings for the values.
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
	columns := 1
	for _, f := range factors {
		columns += len(f.values) - 1
	}
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
		return nil // values that only come together cannot be told apart
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

// repeated leaves out the settings with more than so many values that no other has: what one of these does cannot be
// told from what another does.
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

// beside are the first setting and those that differ from it in one knob alone.
func beside(settings []Setting) []Setting {
	return list.Filter(settings, func(s Setting) bool { return s.Knobs.Differences(settings[0].Knobs) <= 1 })
}

// factor is a knob in which settings differ, with its values; those behind the first have
// columns of the model from column on.
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

// Values are those of a knob in some settings, in order.
func Values(settings []Setting, n measure.Knob) []string {
	all := slices.Clone(settings)
	slices.SortStableFunc(all, func(a, b Setting) int { return cmp.Compare(n.Number(a.Knobs), n.Number(b.Knobs)) })
	return list.Distinct(list.Map(all, func(s Setting) string { return n.Text(s.Knobs) }))
}

// misplaced is half the interval of what a set is placed wrong by, all of a value alike, as a share of its distance from
// the reference in ln(rate): max_num_seqs = 64 beside 256 was placed 3 and 13 % off a search of its own, at a distance of 36 %.
// least is that at no distance: gpu_memory_utilization = 0.9 was placed 1.4 % below 0.92, and no figure of both differed.
const misplaced, least = 0.4, 0.03

// rounding is the most by which effects on ln(rate) that are equal differ in sums of another order:
// the first of equal values is named.
const rounding = 1e-9

// effect contrasts the best value of the factor with the worst; spread is how many
// standard errors of a unit the interval is wide on either side.
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
	variance := 0.0
	for _, i := range []int{best, worst} {
		for _, j := range []int{best, worst} {
			if i == 0 || j == 0 {
				continue
			}
			sign := 1.0
			if i != j {
				sign = -1
			}
			variance += sign * inverse.At(f.column+i-1, f.column+j-1)
		}
	}
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
