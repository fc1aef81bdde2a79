package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Metric is what an objective can bound. The zero value is invalid.
type Metric int

// The latencies. TTFT and E2E count from the intended time, TPOT is one figure a
// request, ITL one a token. Goodput is none of them: it holds several limits
// against each request at once (the attainment of DistServe, Zhong and others
// 2024).
const (
	TTFT Metric = 1 + iota
	TPOT
	ITL
	E2E
	Goodput
)

var metricNames = []string{"", "ttft", "tpot", "itl", "e2e", "goodput"}

// String is the metric's name in configurations.
func (m Metric) String() string {
	if m < TTFT || m > Goodput {
		return fmt.Sprintf("Metric(%d)", int(m))
	}
	return metricNames[m]
}

// Bound is one limit of an objective: a quantile of a latency, or its mean, must
// not be above Limit. For Goodput, at least the share Quantile of the requests
// must be within Limits.
type Bound struct {
	Metric Metric
	// Quantile is in (0, 1); 0 stands for the mean, which Goodput does not have.
	Quantile float64
	// Limit is that of a latency, Limits are those of Goodput.
	Limit  time.Duration
	Limits Limits
}

// Stat names the bounded statistic: "p50", "p99.9" or "mean".
func (b Bound) Stat() string {
	if b.Quantile == 0 {
		return "mean"
	}
	return "p" + strconv.FormatFloat(b.Quantile*100, 'g', 6, 64)
}

// String names the bound as the JSON does: "ttft.p99", "goodput".
func (b Bound) String() string {
	if b.Metric == Goodput {
		return b.Metric.String()
	}
	return b.Metric.String() + "." + b.Stat()
}

// Allowed is the share of requests (for ITL: of tokens) that may exceed the
// limit, or break one of those of Goodput; 0 for a bound on the mean.
func (b Bound) Allowed() float64 {
	if b.Quantile == 0 {
		return 0
	}
	// 1 - 0.95 is 0.05 only after rounding, and a share of 5 % is allowed.
	return math.Round((1-b.Quantile)*1e9) / 1e9
}

// SLO is a service-level objective: every bound holds, and no larger share of
// the requests than Errors fails. An empty SLO is met by nothing and missed by
// nothing; it has no verdict.
type SLO struct {
	Bounds []Bound
	// Errors is the largest share of failed requests; negative means unbounded.
	Errors float64
}

// Empty reports whether there is nothing to judge.
func (s SLO) Empty() bool { return len(s.Bounds) == 0 }

// Horizon is how long after the intended time of a request every bound on its
// first token and its end is decided. TPOT bounds count for output tokens each.
func (s SLO) Horizon(output int) time.Duration {
	h := time.Duration(0)
	for _, b := range s.Bounds {
		switch b.Metric {
		case TTFT, E2E:
			h = max(h, b.Limit)
		case TPOT, ITL:
			h = max(h, b.Limit*time.Duration(output))
		case Goodput:
			h = max(h, b.Limits.horizon(output))
		}
	}
	return h
}

// Stats lists the statistics that a bound may name.
func Stats() []string { return []string{"p50", "p90", "p95", "p99", "p99.9", "mean"} }

// ParseStat reads the statistic of a bound: its quantile, 0 for the mean.
// "p999" means "p99.9", for files that cannot write the point.
func ParseStat(s string) (float64, error) {
	switch s {
	case "p50":
		return 0.50, nil
	case "p90":
		return 0.90, nil
	case "p95":
		return 0.95, nil
	case "p99":
		return 0.99, nil
	case "p99.9", "p999":
		return 0.999, nil
	case "mean":
		return 0, nil
	}
	return 0, fmt.Errorf("unknown statistic %q; allowed: %s", s, strings.Join(Stats(), ", "))
}

// ParseMetric reads the name of a latency.
func ParseMetric(s string) (Metric, error) {
	if i := slices.Index(metricNames, s); i > 0 && Metric(i) <= E2E {
		return Metric(i), nil
	}
	return 0, fmt.Errorf("unknown latency %q; allowed: ttft, tpot, itl, e2e", s)
}

// State is what is known of an objective. The zero value is Unsure, so that
// what was never judged is never met.
type State int

// The three states of a verdict.
const (
	Unsure State = iota
	Met
	Missed
)

var stateNames = []string{"unsure", "met", "missed"}

// String is the state's name in files.
func (s State) String() string {
	if s < Unsure || s > Missed {
		return "unsure"
	}
	return stateNames[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name; one that is unknown is an error, never a
// state.
func (s *State) UnmarshalText(b []byte) error {
	i := slices.Index(stateNames, string(b))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", b)
	}
	*s = State(i)
	return nil
}

// Verdict says whether a measurement meets its objective, and which bound
// decides.
type Verdict struct {
	State State `json:"state"`
	// Binding names the bound that is missed or nearest to it, or [ErrorsBound].
	Binding string `json:"binding"`
	// Slack is how far the binding statistic stays below its limit, as a share
	// of the limit; negative when it is above.
	Slack float64 `json:"slack"`
}
