// Package curve fits throughput-latency curves to measurements.
//
// A curve is the latency of one metric against the offered rate: its points with what is known of their
// stability, a fitted form with the range in which it holds, the saturation rate, the knee and a band.
// Everything is pure: the same points and seed give the same curve.
package curve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

// Value is one measured statistic of a latency: a quantile in (0, 1), or the
// mean where Quantile is 0.
type Value struct {
	Quantile named         `json:"stat"` // mean, p50, p90, p95, p99 or p99.9
	Latency  time.Duration `json:"ms"`   // in milliseconds
}

// Point is one measured load point of an open loop.
type Point struct {
	// Rate is the offered load in requests per second, like all rates of a curve. For a trace it is the
	// mean or that of the busiest hour or minute, as the workload says.
	Rate float64 `json:"rate_per_s"`
	// Sent and Achieved are what left the client and what was completed, per second of the window; 0,
	// or NaN, means unknown.
	Sent     float64 `json:"sent_per_s,omitempty"`
	Achieved float64 `json:"achieved_per_s"`
	// Window is how long was measured, Requests the number of requests; 0 means unknown.
	Window   time.Duration `json:"window_s,omitempty"`
	Requests int           `json:"requests,omitempty"`
	// Overloaded says that whoever measured the point saw the backlog grow.
	Overloaded bool `json:"overloaded,omitempty"`
	// Regime says whether the server kept up, and Why gives the evidence. [Fit] sets both.
	Regime Regime `json:"regime"`
	Why    string `json:"why,omitempty"`
	// Values holds the statistics that the sample resolves, by Quantile.
	Values []Value `json:"latency"`
}

// Latency returns the statistic of the point, false if it is not known.
func (p *Point) Latency(quantile float64) (time.Duration, bool) {
	v, ok := list.Find(p.Values, func(v Value) bool { return float64(v.Quantile) == quantile && v.Latency > 0 })
	return v.Latency, ok
}

// FromMeasurements returns points of the valid open-loop measurements, in ascending order of rate.
// Closed loops have no offered rate, and rejected configurations no latency; both are left out, as are
// measurements without any resolved statistic of the metric.
func FromMeasurements(ms []measure.Measurement, metric measure.Metric) []Point {
	var points []Point
	for i := range ms {
		m := &ms[i]
		if !m.Valid || !m.Ran() || m.Trial.Closed() || m.Trial.Rate <= 0 {
			continue
		}
		values := valuesOf(m.Latency(metric))
		if len(values) == 0 {
			continue
		}
		peak := 1.0 // a trace is measured at its mean rate
		if w := m.Trial.Workload; w != nil {
			peak = w.Rates.Peak()
		}
		points = append(points, Point{
			Rate: m.Offered(), Sent: known(m.Sent) * peak, Achieved: m.Achieved * peak,
			Window: max(m.Duration, 0), Requests: m.Requests, Overloaded: m.Overloaded, Values: values,
		})
	}
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	return points
}

// known returns a rate, 0 for an unknown one (NaN).
func known(rate float64) float64 {
	if math.IsNaN(rate) {
		return 0
	}
	return rate
}

// valuesOf returns the resolved statistics of a summary. A statistic of zero was never filled in: no
// request takes no time.
func valuesOf(s *measure.Summary) []Value {
	return list.FilterMap(measure.Statistics, func(q float64) (Value, bool) {
		latency := s.Stat(q)
		return Value{named(q), latency}, latency > 0
	})
}

// validate refuses points that no curve can be fitted to.
func validate(points []Point) error {
	if len(points) < 2 {
		return errors.New("fit a curve: at least two measured rates are needed")
	}
	for i := range points {
		p := &points[i]
		if !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
			return fmt.Errorf("fit a curve: point %d: rate %g per second is not above 0 and finite", i+1, p.Rate)
		}
		if len(p.Values) == 0 {
			return fmt.Errorf("fit a curve: point %d (%g requests/s): no latency", i+1, p.Rate)
		}
		for _, v := range p.Values {
			if v.Latency <= 0 || v.Quantile < 0 || v.Quantile >= 1 {
				return fmt.Errorf("fit a curve: point %d (%g requests/s): latency %v at quantile %g", i+1, p.Rate, v.Latency, v.Quantile)
			}
		}
	}
	return nil
}

// tail is ln(1/(1-q)), the quantile of a unit exponential; 1 for its mean. In the joint form the
// latency of every statistic is a + tail * g(rate), which is exact if the time above the floor is
// exponential.
func tail(quantile float64) float64 {
	if quantile == 0 {
		return 1
	}
	return -math.Log1p(-quantile)
}
