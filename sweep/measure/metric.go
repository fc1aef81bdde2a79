package measure

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// Metric is what an objective can bound. The zero value is invalid.
type Metric int

// The metrics. TTFT and E2E count from the intended time, TPOT is one figure per request, ITL one
// per token. Goodput is not a latency: it holds several limits against each request at once (the
// attainment of DistServe, Zhong and others 2024).
const (
	TTFT Metric = 1 + iota
	TPOT
	ITL
	E2E
	Goodput
)

// MetricRow describes a metric.
type MetricRow struct {
	// Name is the metric's name in configurations and, with its unit, in files. Help explains it in
	// a configuration.
	Name, Help string

	// summary returns its place in a measurement; nil for what is not a latency.
	summary func(*Latencies) *Summary
	// value returns it for a request, if that has one; nil for what single requests do not have.
	value func(*Record) (time.Duration, bool)
	// open returns its lower bound for a request that is in flight at the time now.
	open func(r *Record, now time.Duration) (time.Duration, bool)
	// perToken says that the limit holds for each output token, and so does not include a delay in
	// sending.
	perToken bool
}

// MetricTable lists the metrics in the order of their values, from 1. A new latency
// needs a row here, a field in [Latencies] and a place in [AllLatencies].
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
func AllLatencies() []Metric { return []Metric{TTFT, TPOT, ITL, E2E} }

// String is the metric's name in configurations.
func (m Metric) String() string {
	if !m.valid() {
		return fmt.Sprintf("Metric(%d)", int(m))
	}
	return m.row().Name
}

// ParseMetric reads the name of a latency.
func ParseMetric(s string) (Metric, error) {
	names := list.Map(AllLatencies(), Metric.String)
	if i := slices.Index(names, s); i >= 0 {
		return AllLatencies()[i], nil
	}
	return 0, fmt.Errorf("unknown latency %q; allowed: %s", s, strings.Join(names, ", "))
}

// Latency returns the summary of a latency.
func (l *Latencies) Latency(m Metric) *Summary {
	if !m.IsLatency() {
		panic("measure: latency of an invalid metric")
	}
	return m.row().summary(l)
}

func unresolvedLatencies() (l Latencies) {
	for _, m := range AllLatencies() {
		*l.Latency(m) = UnresolvedSummary()
	}
	return l
}

// Bound is one limit of an objective: a quantile of a latency, or its mean, must not be above
// Limit. For Goodput, at least the share Quantile of the requests must be within Limits. A file
// lists bounds on latencies by metric and statistic, and holds the one on Goodput in this form.
type Bound struct {
	Metric Metric `json:"-"`
	// Class names the component of a mix whose requests alone are bounded; "" stands for
	// all requests.
	Class string `json:"-"`
	// Quantile is in (0, 1); 0 stands for the mean, which Goodput does not have.
	Quantile float64 `json:"share"`
	// Limit applies to a latency, Limits to Goodput.
	Limit  time.Duration `json:"-"`
	Limits Limits        `json:",embed"`
}

// Stat names the bounded statistic.
func (b Bound) Stat() string { return StatName(b.Quantile) }

// StatName names the statistic at a quantile: "p50", "p99.9" or "mean".
func StatName(quantile float64) string {
	if quantile == 0 {
		return "mean"
	}
	return "p" + strconv.FormatFloat(quantile*100, 'g', 6, 64)
}

// String names the bound as the JSON does: "ttft.p99", "goodput", "ttft.p99 of chat".
func (b Bound) String() string {
	name := b.Metric.String()
	if b.Metric != Goodput {
		name += "." + b.Stat()
	}
	if b.Class != "" {
		name += " of " + b.Class
	}
	return name
}

// Allowed is the share of requests (for ITL: of tokens) that may exceed the limit, or for Goodput
// any of its limits; 0 for a bound on the mean.
func (b Bound) Allowed() float64 {
	if b.Quantile == 0 {
		return 0
	}
	// 1 - 0.95 is 0.05 only after rounding, and a share of exactly 5 % is allowed.
	return math.Round((1-b.Quantile)*1e9) / 1e9
}

// Waits reports whether what is bounded includes the time that a request waits in a queue.
func (b Bound) Waits() bool {
	if b.Metric == Goodput {
		return b.Limits.TTFT > 0 || b.Limits.E2E > 0
	}
	return !b.Metric.row().perToken
}

// Stats lists the statistics that a bound may name.
func Stats() []string {
	return list.Map(append(Statistics[1:], 0), StatName)
}

// ParseStat reads the statistic of a bound: its quantile, 0 for the mean.
// "p999" means "p99.9", for files that cannot write the point.
func ParseStat(s string) (float64, error) {
	for _, q := range Statistics {
		if name := StatName(q); s == name || s == strings.ReplaceAll(name, ".", "") {
			return q, nil
		}
	}
	return 0, fmt.Errorf("unknown statistic %q; allowed: %s", s, strings.Join(Stats(), ", "))
}

// Limits are those of a bound on Goodput: a request is good if it succeeds within all of them at
// once. A limit of 0 is none. A request of one token has no time per token and breaks no limit on
// it.
type Limits struct {
	TTFT time.Duration `json:"ttft_ms,omitempty"` // the limit on the time to first token
	TPOT time.Duration `json:"tpot_ms,omitempty"` // on the time per output token
	E2E  time.Duration `json:"e2e_ms,omitempty"`  // on the whole request
}

// Parts lists the limits that are set, in the order of their metrics, each as a bound at the given
// quantile.
func (l Limits) Parts(quantile float64) []Bound {
	var parts []Bound
	for _, p := range l.all() {
		if p.Limit > 0 {
			p.Quantile = quantile
			parts = append(parts, p)
		}
	}
	return parts
}

func (l Limits) all() [3]Bound {
	return [3]Bound{{Metric: TTFT, Limit: l.TTFT}, {Metric: TPOT, Limit: l.TPOT}, {Metric: E2E, Limit: l.E2E}}
}

// Worst returns the largest ratio of a request's latencies to their limits, above 1 if it breaks
// one; false for a request that did not end well.
func (l Limits) Worst(r *Record) (ratio float64, ok bool) {
	ratio, open, ok := l.worst(r, 0)
	return ratio, ok && !open
}

// worst is Worst at a time end, open as in [Record.Latency] for a request in flight.
func (l Limits) worst(r *Record, end time.Duration) (ratio float64, open, ok bool) {
	open, ok = r.Outcome == InFlight, r.Outcome == OK
	for _, p := range l.all() {
		if v, _, known := r.Latency(p.Metric, end); known && p.Limit > 0 {
			ratio, ok = max(ratio, float64(v)/float64(p.Limit)), true
		}
	}
	return ratio, open, ok
}

// wholeRatio stands for a ratio of 1 where ratios are kept as times, to be handled like latencies.
const wholeRatio = time.Second

// figure returns what the bound compares with its limit, a latency or the worst ratio of Goodput,
// open as in [Record.Latency].
func (b Bound) figure(r *Record, end time.Duration) (v time.Duration, open, ok bool) {
	if b.Metric != Goodput {
		return r.Latency(b.Metric, end)
	}
	ratio, open, ok := b.Limits.worst(r, end)
	return wire.Duration(ratio, wholeRatio), open, ok
}

func (b Bound) limit() time.Duration {
	if b.Metric == Goodput {
		return wholeRatio
	}
	return b.Limit
}

// Decide says whether a bound on single requests is decided for a request by the time end, and
// whether it is beyond the limit. A failed request is beyond every limit. One in flight is beyond
// as soon as its latency so far exceeds the limit, and undecided before. One broken limit of
// Goodput decides; otherwise all must be decided.
func (b Bound) Decide(r *Record, end time.Duration) (known, beyond bool) {
	if r.failed() {
		return true, true
	}
	if b.Metric != Goodput {
		v, open, ok := r.Latency(b.Metric, end)
		beyond = ok && v > b.Limit
		return beyond || ok && !open, beyond
	}
	known = true
	for _, p := range b.Limits.all() {
		if p.Limit <= 0 {
			continue
		}
		decided, beyond := p.Decide(r, end)
		if beyond {
			return true, true
		}
		known = known && (decided || r.Outcome == OK)
	}
	return known, false
}

func (b Bound) check() error {
	if b.Metric != Goodput {
		if b.Limit < 0 {
			return fmt.Errorf("limit %g ms of %s is below 0", float64(b.Limit)/1e6, b)
		}
		return nil
	}
	if !(b.Quantile > 0 && b.Quantile < 1) {
		return fmt.Errorf("a goodput share of %g is not between 0 and 1", b.Quantile)
	}
	for _, p := range b.Limits.all() {
		if p.Limit < 0 {
			return fmt.Errorf("a goodput limit on %s is below 0", p.Metric)
		}
	}
	if b.Limits == (Limits{}) {
		return errors.New("goodput without a limit")
	}
	return nil
}

// Beyond returns the name and the value of the highest statistic, up to the one that a bound
// limits, that is beyond the bound's limit; "" if none is.
func (m *Measurement) Beyond(b Bound) (stat string, v time.Duration) {
	for _, q := range slices.Backward(Statistics) {
		if v := m.Of(b.Class).Latency(b.Metric).Stat(q); q <= b.Quantile && v > b.Limit {
			return StatName(q), v
		}
	}
	return "", 0
}
