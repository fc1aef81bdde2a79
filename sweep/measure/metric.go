package measure

import (
	"fmt"
	"slices"
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

// MetricRow is what there is to know of a metric.
type MetricRow struct {
	// Name is the metric's in configurations and, with its unit, in files. Help says in
	// a configuration what it is.
	Name, Help string

	// summary is its place in a measurement; nil for what is no latency.
	summary func(*Latencies) *Summary
	// value is that of a request that has one; nil for what is none of a request.
	value func(*Record) (time.Duration, bool)
	// open is what it is at least for a request that is in flight at a time.
	open func(r *Record, now time.Duration) (time.Duration, bool)
	// perToken says that its limit holds for each output token, and does not contain
	// a delay of the client.
	perToken bool
}

// MetricTable lists the metrics in the order of their values, from 1. A new latency
// needs a row here and a field in [Latencies].
var MetricTable = []MetricRow{
	{Name: "ttft", Help: `time to first token: any of { p50 | p90 | p95 | p99 | "p99.9" | mean = limit }`,
		summary: func(l *Latencies) *Summary { return &l.TTFT }, value: (*Record).TTFT, open: (*Record).age},
	{Name: "tpot", Help: "time per output token after the first, one figure a request",
		summary: func(l *Latencies) *Summary { return &l.TPOT }, value: (*Record).TPOT, open: (*Record).openTPOT, perToken: true},
	{Name: "itl", Help: "time between two tokens, one figure a token",
		summary: func(l *Latencies) *Summary { return &l.ITL }, perToken: true},
	{Name: "e2e", Help: "time of a whole request",
		summary: func(l *Latencies) *Summary { return &l.E2E }, value: (*Record).E2E, open: (*Record).age},
	{Name: "goodput", Help: "least share of requests within all of its limits at once: { share = 0.95, any of ttft, tpot, e2e = limit }"},
}

func (m Metric) row() *MetricRow { return &MetricTable[m-1] }

func (m Metric) valid() bool { return m >= 1 && int(m) <= len(MetricTable) }

// IsLatency reports whether the metric is one of the [Latencies].
func (m Metric) IsLatency() bool { return m.valid() && m.row().summary != nil }

// AllLatencies lists the latencies in their order.
func AllLatencies() []Metric {
	var all []Metric
	for i := range MetricTable {
		if m := Metric(i + 1); m.IsLatency() {
			all = append(all, m)
		}
	}
	return all
}

// String is the metric's name in configurations.
func (m Metric) String() string {
	if !m.valid() {
		return fmt.Sprintf("Metric(%d)", int(m))
	}
	return m.row().Name
}

// ParseMetric reads the name of a latency.
func ParseMetric(s string) (Metric, error) {
	var names []string
	for _, m := range AllLatencies() {
		names = append(names, m.String())
	}
	if i := slices.Index(names, s); i >= 0 {
		return AllLatencies()[i], nil
	}
	return 0, fmt.Errorf("unknown latency %q; allowed: %s", s, strings.Join(names, ", "))
}

// Latency is what was measured of a latency.
func (l *Latencies) Latency(m Metric) *Summary {
	if !m.IsLatency() {
		panic("measure: latency of an invalid metric")
	}
	return m.row().summary(l)
}

// unresolvedLatencies are latencies of which nothing is known.
func unresolvedLatencies() (l Latencies) {
	for _, m := range AllLatencies() {
		*l.Latency(m) = UnresolvedSummary()
	}
	return l
}
