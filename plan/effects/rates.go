// Package effects says which knob matters: how far each moves the maximum rate, by the
// trials that were run.
package effects

import (
	"math"
	"slices"
	"time"

	"planner/internal/stat"
	"planner/model/curve"
	"planner/sweep/measure"
)

// Setting is a set of knobs and about the rate that it carries.
type Setting struct {
	Knobs measure.Knobs `json:"knobs"`
	Rate  float64       `json:"rate_per_s"` // about the highest rate within the limits
}

// Baseline is the set that was searched in full: its maximum rate and its fitted curves.
type Baseline struct {
	Knobs  measure.Knobs
	Rate   float64
	Curves []*curve.Curve
}

// Rates places every set of the reference's kind of instance on the scale of the
// reference: one that shows at some rate what the reference shows at a rate x keeps the limit on that latency up to a
// rate that is by the ratio of the two higher than the reference's, and carries the least of these rates; one that a
// rate overloads carries what it completes. Sets are tried on the same requests, so that ratios are much
// surer than rates. A set without a trial that tells is left out; those whose rates are known
// otherwise have these.
func Rates(trials []measure.Measurement, ref Baseline, known []Setting) []Setting {
	out := append([]Setting{{ref.Knobs, ref.Rate}}, known...)
	if !(ref.Rate > 0) {
		return nil
	}
	nearest := map[measure.Knobs]*measure.Measurement{}
	var order []measure.Knobs
	for i := range trials {
		m := &trials[i]
		k := m.Trial.Knobs
		if !m.Ran() || !m.Valid || m.Trial.Rate <= 0 || slices.ContainsFunc(out, func(s Setting) bool { return s.Knobs == k }) || k.Kind() != ref.Knobs.Kind() {
			continue
		}
		if nearest[k] == nil {
			order = append(order, k)
		}
		if nearest[k] == nil || ref.off(m) < ref.off(nearest[k]) {
			nearest[k] = m
		}
	}
	for _, k := range order {
		if rate, ok := ref.carried(nearest[k]); ok {
			out = append(out, Setting{k, rate})
		}
	}
	return out
}

// off is how far a trial is from the reference's rate, in logarithms.
func (r *Baseline) off(m *measure.Measurement) float64 {
	return math.Abs(math.Log(m.Trial.Rate / r.Rate))
}

// alike is the largest ratio of rates by which a set is placed: one that shows what the reference
// shows at a rate farther from the trial's is limited by something else than the reference, as where
// its requests wait for a place and the reference's do not. With 128 places beside 1024 a set that
// carries the same was placed at a third.
const alike = 2.2

// carried is about the rate that the set of a trial carries; false where the trial does
// not tell.
func (r *Baseline) carried(m *measure.Measurement) (float64, bool) {
	rate, known := math.Inf(1), false
	for _, b := range m.Trial.Objective.Latencies() {
		if b.Metric == measure.ITL && m.Bounded(b) > b.Limit {
			return 0, false // its steps are longer, which no other rate of the reference shows
		}
	}
	for _, c := range r.Curves {
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

// within is the rate up to which the reference keeps the limits on the latency of a curve, as far as
// the curve goes: its own where that latency limits it, and more where another one does.
func (r *Baseline) within(c *curve.Curve, o measure.SLO) float64 {
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

// inverse is the rate at which a curve has a latency, its ends where it has none so low or
// so high; false where the curve says nothing.
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
