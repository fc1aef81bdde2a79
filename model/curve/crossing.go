package curve

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"gonum.org/v1/gonum/interp"

	"planner/internal/list"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// CrossingOutcome says what the measured points tell about a limit. The zero value stands for
// [Undetermined].
type CrossingOutcome string

// The outcomes of a crossing.
const (
	// Undetermined: the points do not hold the statistic.
	Undetermined CrossingOutcome = "undetermined"
	// Found: the limit is crossed between two measured rates.
	Found CrossingOutcome = "found"
	// Below: the limit is exceeded at the lowest measured rate already. Value is the fitted form's
	// crossing, at most that rate; 0 if it has none.
	Below CrossingOutcome = "below_measured"
	// NotReached: the limit is kept at the highest rate measured in a steady state, which is Value.
	NotReached CrossingOutcome = "not_reached"
	// AtSaturation: the limit is crossed, if at all, only because the backlog grows. Value is the
	// saturation rate or, if unknown, the highest steady rate.
	AtSaturation CrossingOutcome = "at_saturation"
)

// Crossing is the rate at which a statistic passes its limit.
type Crossing struct {
	Bound   measure.Bound
	Outcome CrossingOutcome
	// Value is the crossing by monotone interpolation of ln latency, in requests per second. Low and
	// High span the crossings of all forms between the measured rates that enclose it: the uncertainty
	// of the model, not of the sample.
	Value, Low, High float64
	// Idle is the latency at the lowest measured rate, Note the evidence for [Below].
	Idle time.Duration
	Note string
}

// Crossing finds the highest rate at which the bound holds. Where measured points enclose the limit,
// the value never comes from the fitted form.
func (c *Curve) Crossing(b measure.Bound) (Crossing, error) {
	x := Crossing{Bound: b, Outcome: Undetermined}
	if b.Metric != c.Metric {
		return x, fmt.Errorf("crossing of %v: the curve is of %v", b, c.Metric)
	}
	s, err := interpolate(c.Points, b.Quantile)
	if err != nil {
		return x, fmt.Errorf("crossing of %v: %w", b, err)
	}
	x.Idle = time.Duration(math.Exp(s.measured[0]) * float64(time.Second))
	limit := math.Log(b.Limit.Seconds())
	switch i := s.bracket(limit); {
	case i < 0:
		x.Outcome = Below
		x.Value, _ = c.Model.Crossing(b.Quantile, b.Limit.Seconds())
		x.Value = min(x.Value, s.rates[0])
		x.Low, x.High = 0, s.rates[0]
		x.Note = fmt.Sprintf("exceeded at %.4g requests/s, the lowest rate measured: %s is %v there", s.rates[0], b, x.Idle.Round(time.Microsecond))
		for i := len(s.rates) - 1; i > 0; i-- {
			if s.measured[i] <= limit {
				x.Note += fmt.Sprintf("; it is kept at %.4g requests/s, which contradicts that, as where the server was cold at first", s.rates[i])
				break
			}
		}
	case i == len(s.rates)-1:
		x.unreached(c, s.rates[i])
	default:
		x.found(c, s, i, limit)
	}
	return x, nil
}

// found fills in a crossing between rates i and i+1.
func (x *Crossing) found(c *Curve, s *interpolant, i int, limit float64) {
	x.Outcome = Found
	x.Value = s.crossing(i, limit)
	line := s.rates[i] + (limit-s.lnY[i])/(s.lnY[i+1]-s.lnY[i])*(s.rates[i+1]-s.rates[i]) // straight in ln latency
	x.Low, x.High = min(x.Value, line), max(x.Value, line)
	for _, m := range []*Model{&c.Model, c.Whole} {
		if m == nil {
			continue
		}
		if r, ok := m.Crossing(x.Bound.Quantile, x.Bound.Limit.Seconds()); ok {
			r = min(max(r, s.rates[i]), s.rates[i+1])
			x.Low, x.High = min(x.Low, r), max(x.High, r)
		}
	}
	if top := c.saturationOr(math.Inf(1)); x.Value > top {
		x.Outcome, x.Value, x.High = AtSaturation, top, min(x.High, top)
		x.Low = min(x.Low, top)
	}
}

// unreached fills in a limit that no steady point exceeds.
func (x *Crossing) unreached(c *Curve, top float64) {
	if slices.ContainsFunc(c.Points, func(p Point) bool { return p.Rate >= top && p.Regime == Overload }) {
		x.Outcome = AtSaturation
		x.Value = c.saturationOr(c.highestSteady())
		x.Low, x.High = x.Value, x.Value
		if c.Saturation != nil {
			x.Low, x.High = c.Saturation.Low, c.Saturation.High
		}
		if !slices.ContainsFunc(c.Points, func(p Point) bool { return p.Regime == Overload && !p.inferred() }) {
			x.High = max(x.High, top) // all that is known is that the limit was kept there
		}
		return
	}
	x.Outcome, x.Value, x.Low, x.High = NotReached, top, top, top
}

// highestSteady returns the highest rate not known to be overload; 0 if there is none.
func (c *Curve) highestSteady() float64 {
	steady := list.Filter(c.Points, func(p Point) bool { return p.Regime != Overload })
	return list.Largest(steady, func(p Point) float64 { return p.Rate })
}

func (c *Curve) saturationOr(otherwise float64) float64 {
	if c.Saturation == nil {
		return otherwise
	}
	return c.Saturation.Value
}

// Lowest returns the crossing at the smallest rate, that of the binding bound, with the range in which
// the first of them may lie. An undetermined crossing sorts before all others.
func Lowest(all []Crossing) (Crossing, bool) {
	if len(all) == 0 {
		return Crossing{}, false
	}
	least := slices.MinFunc(all, func(a, b Crossing) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
	for _, x := range all {
		least.Low, least.High = min(least.Low, x.Low), min(least.High, x.High)
	}
	return least, true
}

func (x *Crossing) sortKey() float64 {
	if x.Outcome == Undetermined || x.Outcome == "" {
		return -1
	}
	return x.Value
}

// interpolant is one statistic as a rising function of the rate, in ln seconds.
type interpolant struct {
	rates, lnY []float64
	// measured holds the latencies before they were made monotone.
	measured []float64
	spline   interp.FritschButland
}

// interpolate merges the points of one rate, makes the latencies rise with the rate (isotonic
// regression weighted by requests: latency that falls with load is noise) and fits a monotone spline to
// their logarithms (Fritsch and Butland 1984). It needs two rates.
func interpolate(points []Point, quantile float64) (*interpolant, error) {
	s := &interpolant{}
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
		return nil, fmt.Errorf("interpolate %s: known at %d of the measured rates; at least two are needed", measure.StatName(quantile), len(s.rates))
	}
	s.measured, s.lnY = s.lnY, stat.Monotone(s.lnY, weights)
	if err := s.spline.Fit(s.rates, s.lnY); err != nil {
		return nil, fmt.Errorf("interpolate %s: %w", measure.StatName(quantile), err)
	}
	return s, nil
}

// at returns the interpolated latency in seconds, false outside the measured rates.
func (s *interpolant) at(rate float64) (float64, bool) {
	if rate < s.rates[0] || rate > s.rates[len(s.rates)-1] {
		return 0, false
	}
	return math.Exp(s.spline.Predict(rate)), true
}

// bracket returns the index of the last rate before the limit (in ln seconds) is exceeded: -1 if the
// first exceeds it, the last index if none does.
func (s *interpolant) bracket(limit float64) int {
	return sort.Search(len(s.lnY), func(i int) bool { return s.lnY[i] > limit }) - 1
}

// crossing returns where the spline passes the limit between rates i and i+1.
func (s *interpolant) crossing(i int, limit float64) float64 {
	rate, _ := stat.Bisect(s.rates[i], s.rates[i+1], 200, func(rate float64) bool { return s.spline.Predict(rate) > limit })
	return rate
}
