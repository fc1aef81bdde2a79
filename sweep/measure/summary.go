package measure

import (
	"encoding/json"
	"fmt"
	"time"

	"planner/internal/units"
)

// Unresolved marks a statistic that the sample cannot give.
const Unresolved time.Duration = -1

// Summary describes a latency. A statistic that the sample cannot resolve is
// Unresolved.
type Summary struct {
	Mean, P50, P90, P95, P99, P999 time.Duration
	N                              int
	// Within holds an interval around each quantile, in the order of P50 to
	// P999; zero where there is none.
	Within [5]Interval
}

// Interval holds the ends of an interval, each at 95 % confidence (together
// 90 %). An end that the sample cannot give is Unresolved.
type Interval struct{ Low, High time.Duration }

// unresolved is a summary of nothing.
func unresolved() Summary {
	return Summary{Mean: Unresolved, P50: Unresolved, P90: Unresolved, P95: Unresolved, P99: Unresolved, P999: Unresolved}
}

// summaryQuantiles are those of a Summary, in the order of its fields, and
// their names.
var summaryQuantiles = [5]struct {
	q    float64
	name string
}{{0.50, "p50"}, {0.90, "p90"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p99.9"}}

// quantiles lists the addresses of the quantile fields.
func (s *Summary) quantiles() [5]*time.Duration {
	return [5]*time.Duration{&s.P50, &s.P90, &s.P95, &s.P99, &s.P999}
}

// Stat returns a statistic by its quantile, 0 for the mean; Unresolved for one
// that a Summary does not hold.
func (s *Summary) Stat(quantile float64) time.Duration {
	if quantile == 0 {
		return s.Mean
	}
	for i, d := range summaryQuantiles {
		if d.q == quantile {
			return *s.quantiles()[i]
		}
	}
	return Unresolved
}

// wireSummary is a Summary in a file: milliseconds, null for Unresolved.
type wireSummary struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p99.9"`
	N    int      `json:"n"`
	wireIntervals
}

type wireIntervals struct {
	P50I  *[2]*float64 `json:"p50_interval,omitempty"`
	P90I  *[2]*float64 `json:"p90_interval,omitempty"`
	P95I  *[2]*float64 `json:"p95_interval,omitempty"`
	P99I  *[2]*float64 `json:"p99_interval,omitempty"`
	P999I *[2]*float64 `json:"p99.9_interval,omitempty"`
}

func (w *wireSummary) quantiles() [5]**float64 {
	return [5]**float64{&w.P50, &w.P90, &w.P95, &w.P99, &w.P999}
}

func (w *wireIntervals) list() [5]**[2]*float64 {
	return [5]**[2]*float64{&w.P50I, &w.P90I, &w.P95I, &w.P99I, &w.P999I}
}

// MarshalJSON writes milliseconds: {"mean":..,"p50":..,...,"n":..}, null for
// what is Unresolved, and "p99_interval":[low, high] where there is one.
func (s Summary) MarshalJSON() ([]byte, error) {
	w := wireSummary{Mean: units.Millis(s.Mean), N: s.N}
	for i, q := range s.quantiles() {
		*w.quantiles()[i] = units.Millis(*q)
		if in := s.Within[i]; in != (Interval{}) {
			*w.list()[i] = &[2]*float64{units.Millis(in.Low), units.Millis(in.High)}
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Summary) UnmarshalJSON(b []byte) error {
	var w wireSummary
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read latency summary: %w", err)
	}
	*s = Summary{Mean: units.FromMillis(w.Mean), N: w.N}
	for i, q := range w.quantiles() {
		*s.quantiles()[i] = units.FromMillis(*q)
		if in := *w.list()[i]; in != nil {
			s.Within[i] = Interval{units.FromMillis(in[0]), units.FromMillis(in[1])}
		}
	}
	return nil
}

// toSeconds and fromSeconds convert a time at the edge.
func toSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

func fromSeconds(s float64) time.Duration { return units.Duration(s, time.Second) }
