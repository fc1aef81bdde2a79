package workload

import "time"

// RateOf says which rate of a trace is meant where one figure stands for it. The zero value is
// invalid.
type RateOf string

// The rates of a trace that can be meant.
const (
	RateOfMean          RateOf = "mean"
	RateOfBusiestHour   RateOf = "busiest-hour"
	RateOfBusiestMinute RateOf = "busiest-minute"
)

// Rates are those of a trace on its own clock, in requests per second; Of says which of them the
// rate of a trial, of an estimate and of a demand means. With [RateOfBusiestHour], a trace replayed
// at 10 requests/s has so many in its busiest hour, however long that takes on the stretched clock.
// Nil stands for requests that are not a trace's; their rate is the mean.
type Rates struct {
	Of   RateOf  `json:"rate_of"`    // the one that a rate means
	Mean float64 `json:"mean_per_s"` // over the whole trace
	// BusiestHour and BusiestMinute are those of the hour and the minute with the most arrivals,
	// the mean if the trace is no longer.
	BusiestHour   float64 `json:"busiest_hour_per_s"`
	BusiestMinute float64 `json:"busiest_minute_per_s"`
}

// RatesOf returns the rates of rows in order of arrival; nil if there are none.
func RatesOf(rows []TraceRow, of RateOf) *Rates {
	if len(rows) == 0 {
		return nil
	}
	mean := meanRate(rows)
	return &Rates{of, mean, max(mean, busiest(rows, time.Hour).Rate), max(mean, busiest(rows, time.Minute).Rate)}
}

// Peak returns the rate that is meant over the mean rate, at least 1.
func (r *Rates) Peak() float64 {
	if r == nil || !(r.Mean > 0) {
		return 1
	}
	switch r.Of {
	case RateOfBusiestHour:
		return r.BusiestHour / r.Mean
	case RateOfBusiestMinute:
		return r.BusiestMinute / r.Mean
	}
	return 1
}

// MeanAt returns the mean rate of a load whose rate, as Of means it, is rate.
func (r *Rates) MeanAt(rate float64) float64 { return rate / r.Peak() }

// As returns the same rates with another one meant.
func (r *Rates) As(of RateOf) *Rates {
	if r == nil {
		return nil
	}
	other := *r
	other.Of = of
	return &other
}

// Meant says which rate is meant, as "in the busiest hour"; "" without a trace. In a trace no
// longer than an hour the busiest hour is the whole, and its rate the mean.
func (r *Rates) Meant() string {
	switch {
	case r == nil:
		return ""
	case r.Of == RateOfBusiestMinute:
		return "in the busiest minute"
	case r.Of == RateOfBusiestHour && r.BusiestHour > r.Mean:
		return "in the busiest hour"
	}
	return "in the mean"
}

// MeanRate returns the mean rate of a schedule at a rate, in requests per second: the rate itself,
// unless it means another rate of a trace.
func (w *Workload) MeanRate(rate float64) float64 {
	if w == nil {
		return rate
	}
	return w.Rates.MeanAt(rate)
}

// Lap returns how long one lap of the trace takes at a rate; 0 without a trace.
func (w *Workload) Lap(rate float64) time.Duration {
	if !w.Replayed() {
		return 0
	}
	return Span(float64(len(w.Replay)), w.MeanRate(rate))
}

// WholeLaps lengthens a window at a rate to whole laps of the trace, in which all rows are seen
// equally often; without a trace it stays as it is.
func (w *Workload) WholeLaps(window time.Duration, rate float64) time.Duration {
	lap := w.Lap(rate)
	if lap <= 0 {
		return window
	}
	return max((window+lap-1)/lap, 1) * lap
}

// Anywhere returns the workload for trials that each see only a part of it: trials of a trace then
// start at rows that their seeds draw. If all began with the first row, they would see the same
// part of the trace again and again, and take its bursts, or its night, for the whole.
func (w *Workload) Anywhere() *Workload {
	if w == nil || !w.Replayed() || w.AnyRow {
		return w
	}
	copied := *w
	copied.AnyRow = true
	return &copied
}
