package measure

import "time"

// Unresolved marks a statistic that the sample cannot give.
const Unresolved time.Duration = -1

// Summary describes a latency. A statistic that the sample cannot resolve is
// Unresolved.
type Summary struct {
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P95  time.Duration `json:"p95"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p99.9"`
	N    int           `json:"n"`
	// Within P50 is the interval around P50, and so on; zero where there is none.
	Within struct {
		P50  Interval `json:"p50_interval,omitzero"`
		P90  Interval `json:"p90_interval,omitzero"`
		P95  Interval `json:"p95_interval,omitzero"`
		P99  Interval `json:"p99_interval,omitzero"`
		P999 Interval `json:"p99.9_interval,omitzero"`
	} `json:",embed"`
}

// Interval holds the low and the high end of an interval, each at 95 % confidence
// (together 90 %). An end that the sample cannot give is Unresolved.
type Interval [2]time.Duration

// UnresolvedSummary is a summary of nothing.
func UnresolvedSummary() Summary {
	return Summary{Mean: Unresolved, P50: Unresolved, P90: Unresolved, P95: Unresolved, P99: Unresolved, P999: Unresolved}
}

// quantile is one of a Summary.
type quantile struct {
	q      float64
	name   string
	value  *time.Duration
	within *Interval
}

// quantiles lists those of the summary, from low to high.
func (s *Summary) quantiles() [5]quantile {
	return [5]quantile{
		{0.50, "p50", &s.P50, &s.Within.P50}, {0.90, "p90", &s.P90, &s.Within.P90}, {0.95, "p95", &s.P95, &s.Within.P95},
		{0.99, "p99", &s.P99, &s.Within.P99}, {0.999, "p99.9", &s.P999, &s.Within.P999},
	}
}

// Stat returns a statistic by its quantile, 0 for the mean; Unresolved for one
// that a Summary does not hold.
func (s *Summary) Stat(quantile float64) time.Duration {
	if quantile == 0 {
		return s.Mean
	}
	for _, d := range s.quantiles() {
		if d.q == quantile {
			return *d.value
		}
	}
	return Unresolved
}

// Set sets a statistic by its quantile, 0 for the mean.
func (s *Summary) Set(quantile float64, d time.Duration) {
	if quantile == 0 {
		s.Mean = d
	}
	for _, x := range s.quantiles() {
		if x.q == quantile {
			*x.value = d
		}
	}
}

// Around is the interval around a quantile; zero where there is none, or where one of
// its ends is not known.
func (s *Summary) Around(quantile float64) Interval {
	for _, d := range s.quantiles() {
		if in := *d.within; d.q == quantile && in[0] >= 0 && in[1] >= in[0] {
			return in
		}
	}
	return Interval{}
}
