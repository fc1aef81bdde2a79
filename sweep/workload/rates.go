package workload

import "time"

// RateOf names the rate of a trace that is meant where one figure stands for it. The
// zero value is invalid.
type RateOf string

// The rates of a trace that can be meant.
const (
	RateOfMean          RateOf = "mean"
	RateOfBusiestHour   RateOf = "busiest-hour"
	RateOfBusiestMinute RateOf = "busiest-minute"
)

// Rates are those of a trace on its own clock, in requests per second, and which of
// them stands for it. The rate of a trial, of an estimate and of a demand is that one:
// a trace replayed at 10 requests/s has so many in its busiest hour, however long that
// takes on the stretched clock, where Of is [RateOfBusiestHour]. Nil stands for
// requests that are no trace's, and for the mean.
type Rates struct {
	Of   RateOf  `json:"rate_of"`    // which of them a rate means
	Mean float64 `json:"mean_per_s"` // over the whole trace
	// BusiestHour and BusiestMinute are of the hour and the minute with the most
	// arrivals. Of a trace that is no longer they are its mean.
	BusiestHour   float64 `json:"busiest_hour_per_s"`
	BusiestMinute float64 `json:"busiest_minute_per_s"`
}

// RatesOf finds the rates of rows in order of arrival; nil where there are none.
func RatesOf(rows []TraceRow, of RateOf) *Rates {
	if len(rows) == 0 {
		return nil
	}
	mean := meanRate(rows)
	return &Rates{of, mean, max(mean, busiest(rows, time.Hour).Rate), max(mean, busiest(rows, time.Minute).Rate)}
}

// Peak is the rate that is meant over the mean, at least 1.
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

// MeanAt is the mean rate of a load whose meant rate is rate.
func (r *Rates) MeanAt(rate float64) float64 { return rate / r.Peak() }

// As are the same rates with another one meant.
func (r *Rates) As(of RateOf) *Rates {
	if r == nil {
		return nil
	}
	other := *r
	other.Of = of
	return &other
}

// Meant says which rate is meant, as "in the busiest hour"; "" where nothing is a
// trace's. Of a trace of less than an hour the busiest hour is the whole.
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

// MeanRate is how many requests per second a schedule at a rate holds in the mean: the
// rate itself, but for a trace of which another rate is meant.
func (w *Workload) MeanRate(rate float64) float64 {
	if w == nil {
		return rate
	}
	return w.Rates.MeanAt(rate)
}

// Lap is how long one lap of the trace takes at a rate; 0 without a trace.
func (w *Workload) Lap(rate float64) time.Duration {
	if !w.Replayed() {
		return 0
	}
	return Span(float64(len(w.Replay)), w.MeanRate(rate))
}

// WholeLaps lengthens a window at a rate to whole laps of the trace, in which all its
// rows are seen as often; without a trace it stays.
func (w *Workload) WholeLaps(window time.Duration, rate float64) time.Duration {
	lap := w.Lap(rate)
	if lap <= 0 {
		return window
	}
	return max((window+lap-1)/lap, 1) * lap
}

// Anywhere is the workload for trials that each see a part of it: of a trace, one whose
// trials start at rows that their seeds draw. Trials that all began with the first row
// would see the same part of the trace again and again, and take its bursts, or its
// night, for the whole.
func (w *Workload) Anywhere() *Workload {
	if w == nil || !w.Replayed() || w.AnyRow {
		return w
	}
	copied := *w
	copied.AnyRow = true
	return &copied
}
