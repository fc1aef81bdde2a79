package measure

import (
	"slices"
	"time"

	"planner/internal/wire"
)

// Limits are those of a bound on Goodput: a request is good if it ends well
// within all of them at once. A limit of 0 does not hold. A request of one token
// has no time per token and breaks no limit on it.
type Limits struct {
	TTFT time.Duration `json:"ttft_ms,omitempty"`
	TPOT time.Duration `json:"tpot_ms,omitempty"`
	E2E  time.Duration `json:"e2e_ms,omitempty"`
}

// Parts lists the limits that hold, in the order of their metrics, each as a
// bound at the given quantile.
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

// Worst is the largest of a request's latencies over their limits, above 1 where
// it breaks one; false for a request that did not end well.
func (l Limits) Worst(r *Record) (ratio float64, ok bool) {
	if r.Outcome != OK {
		return 0, false
	}
	for _, p := range l.all() {
		if v, ok := r.value(p.Metric); ok && p.Limit > 0 {
			ratio = max(ratio, float64(v)/float64(p.Limit))
		}
	}
	return ratio, true
}

// least is what Worst will at least be for a request in flight.
func (l Limits) least(r *Record, end time.Duration) (ratio float64, ok bool) {
	if r.Outcome != InFlight {
		return 0, false
	}
	for _, p := range l.all() {
		v, known := r.value(p.Metric)
		if !known {
			v, known = r.least(p.Metric, end)
		}
		if known && p.Limit > 0 {
			ratio, ok = max(ratio, float64(v)/float64(p.Limit)), true
		}
	}
	return ratio, ok
}

// decide is [Bound.Decide] for all limits together: beyond as soon as one of them
// is, known to be within only when all are.
func (l Limits) decide(r *Record, end time.Duration) (known, beyond bool) {
	known = true
	for _, p := range l.all() {
		if p.Limit <= 0 {
			continue
		}
		k, b := p.Decide(r, end)
		if b {
			return true, true
		}
		known = known && (k || r.Outcome == OK)
	}
	return known, false
}

// horizon is how long after its intended time a request of so many output tokens
// is decided: its first token in time, and behind it each at its limit.
func (l Limits) horizon(output int) time.Duration {
	return max(l.E2E, l.TTFT+l.TPOT*time.Duration(output))
}

// wholeRatio stands for a ratio of 1 where ratios are kept as times, so that
// they can be handled as a latency is.
const wholeRatio = time.Second

// value is what the bound compares with its limit, of a request that ended well
// or, for TTFT, has its first token: a latency, or the worst ratio of Goodput.
func (b Bound) value(r *Record) (time.Duration, bool) {
	if b.Metric != Goodput {
		return r.value(b.Metric)
	}
	ratio, ok := b.Limits.Worst(r)
	return wire.Duration(ratio, wholeRatio), ok
}

// least is a lower bound of value for a request in flight.
func (b Bound) least(r *Record, end time.Duration) (time.Duration, bool) {
	if b.Metric != Goodput {
		return r.least(b.Metric, end)
	}
	ratio, ok := b.Limits.least(r, end)
	return wire.Duration(ratio, wholeRatio), ok
}

// limit is what value is compared with.
func (b Bound) limit() time.Duration {
	if b.Metric == Goodput {
		return wholeRatio
	}
	return b.Limit
}

// Bounded is the statistic that a bound limits; Unresolved where the sample does
// not give it, and for Goodput, which is a share and has none.
func (l *Latencies) Bounded(b Bound) time.Duration {
	if b.Metric == Goodput {
		return Unresolved
	}
	return l.Latency(b.Metric).Stat(b.Quantile)
}

// Metrics lists the latencies that the objective limits, those of Goodput
// included, each once and in the order of TTFT, TPOT, ITL, E2E.
func (s SLO) Metrics() []Metric {
	var out []Metric
	for _, b := range s.Bounds {
		if b.Metric != Goodput {
			out = append(out, b.Metric)
		}
		for _, p := range b.Limits.Parts(b.Quantile) {
			out = append(out, p.Metric)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Tightest is the smallest limit on a latency that contains what a client is
// late, TTFT or E2E; 0 if there is none.
func (s SLO) Tightest() time.Duration {
	return s.least(func(m Metric) bool { return m == TTFT || m == E2E })
}

// least is the smallest limit on the latencies of a kind; 0 if there is none.
func (s SLO) least(kind func(Metric) bool) time.Duration {
	least := time.Duration(0)
	tighten := func(b Bound) {
		if kind(b.Metric) && b.Limit > 0 && (least == 0 || b.Limit < least) {
			least = b.Limit
		}
	}
	for _, b := range s.Bounds {
		if b.Metric != Goodput {
			tighten(b)
		}
		for _, part := range b.Limits.Parts(b.Quantile) {
			tighten(part)
		}
	}
	return least
}

// ClientLag is how late a client may send, at the 99th percentile of its requests,
// for its trial to be believed: a hundredth of the tightest limit on a latency that
// contains the delay. Limits on the time between tokens do not contain it, but a
// client that is late with sending reads late, too: of these it is a quarter, which
// over an answer of ten tokens and more is some per cent. It is at least a
// millisecond, which no client can avoid.
func (s SLO) ClientLag() time.Duration {
	lag := s.Tightest() / 100
	if lag == 0 {
		lag = s.least(func(m Metric) bool { return m == TPOT || m == ITL }) / 4
	}
	return max(lag, leastLag)
}
