// Package effects estimates from the trials that were run how far each knob moves the maximum rate.
package effects

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/stat"
	"planner/model/curve"
	"planner/sweep/measure"
)

// Setting is a set of knobs and about the rate that it carries.
type Setting struct {
	Knobs measure.Knobs `json:"knobs"`
	Rate  float64       `json:"rate_per_s"` // about the highest rate within the limits
}

// Rates estimates the rate of every set with the reference's kind of instance, from its trial nearest to the
// reference's rate. If it shows at its rate the latency that the reference shows at rate x, by its fitted curves,
// it keeps the limit on that latency up to the reference's rate times the ratio of its rate to x; it carries the
// least of these rates, and if overloaded no more than it completes. As sets get the same requests, ratios are
// much more certain than rates. Sets without a telling trial are left out; known rates are taken as they are.
func Rates(trials []measure.Measurement, ref Setting, curves []*curve.Curve, known []Setting) []Setting {
	out := append([]Setting{ref}, known...)
	if !(ref.Rate > 0) {
		return nil
	}
	telling := list.Filter(trials, func(m measure.Measurement) bool {
		k := m.Trial.Knobs
		return m.Ran() && m.Valid && m.Trial.Rate > 0 && k.Kind() == ref.Knobs.Kind() && !slices.ContainsFunc(out, func(s Setting) bool { return s.Knobs == k })
	})
	off := func(m measure.Measurement) float64 { return math.Abs(math.Log(m.Trial.Rate / ref.Rate)) }
	for _, of := range list.Groups(telling, func(m measure.Measurement) measure.Knobs { return m.Trial.Knobs }) {
		nearest := slices.MinFunc(of, func(a, b measure.Measurement) int { return cmp.Compare(off(a), off(b)) })
		if rate, ok := ref.carried(curves, &nearest); ok {
			out = append(out, Setting{nearest.Trial.Knobs, rate})
		}
	}
	return out
}

// alike is the largest ratio of rates at which a set is placed: a set that shows what the reference shows at a
// rate farther from the trial's has another bottleneck, such as requests that wait for a place when the
// reference's do not. With 128 places beside 1024, a set that carries the same was placed at a third.
const alike = 2.2

// carried estimates the rate that the set of a trial carries, by the curves of the reference; false if the trial
// does not tell.
func (r *Setting) carried(curves []*curve.Curve, m *measure.Measurement) (float64, bool) {
	rate, known := math.Inf(1), false
	for _, b := range m.Trial.Objective.Latencies() {
		if b.Metric == measure.ITL && m.Bounded(b) > b.Limit {
			return 0, false // its steps are longer, which the reference shows at no rate
		}
	}
	for _, c := range curves {
		s := m.Of(c.Class).Latency(c.Metric)
		for _, q := range slices.Backward(c.Model.Levels) {
			if y := s.Stat(q); y > 0 {
				if x, ok := inverse(c, q, y); ok && max(m.Trial.Rate/x, x/m.Trial.Rate) > alike {
					return 0, false
				} else if ok {
					rate, known = min(rate, r.within(c, m.Trial.Objective)*m.Trial.Rate/x), true
				}
				break
			}
		}
	}
	if m.Overloaded && m.Achieved > 0 {
		rate, known = min(rate, m.Achieved), true
	}
	return rate, known
}

// within returns the rate up to which the reference keeps the limits on a curve's latency, as far as the curve
// goes: its own rate if this latency is the bottleneck, and more if another is.
func (r *Setting) within(c *curve.Curve, o measure.SLO) float64 {
	rate := math.Inf(1)
	for _, b := range o.Latencies() {
		if x, ok := inverse(c, b.Quantile, b.Limit); ok && b.Metric == c.Metric && b.Class == c.Class {
			rate = min(rate, x)
		}
	}
	if math.IsInf(rate, 1) {
		return r.Rate
	}
	return max(rate, r.Rate)
}

// inverse returns the rate at which a curve reaches a latency, clipped to the curve's ends; false if the curve
// says nothing.
func inverse(c *curve.Curve, q float64, y time.Duration) (float64, bool) {
	low, high := c.Low, c.End()
	bottom, ok := c.At(q, low)
	top, ok2 := c.At(q, high)
	switch {
	case !ok || !ok2 || high <= low:
		return 0, false
	case y <= bottom:
		return low, true
	case y >= top:
		return high, true
	}
	rate, _ := stat.Bisect(low, high, 40, func(rate float64) bool {
		at, _ := c.At(q, rate)
		return at >= y
	})
	return rate, true
}
