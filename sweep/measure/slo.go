package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/wire"
)

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
		switch {
		case b.Metric == Goodput:
			h = max(h, b.Limits.horizon(output))
		case b.Metric.row().perToken:
			h = max(h, b.Limit*time.Duration(output))
		default:
			h = max(h, b.Limit)
		}
	}
	return h
}

// Latencies lists the bounds on latencies and the limits of Goodput, these as bounds
// at its share.
func (s SLO) Latencies() []Bound {
	var out []Bound
	for _, b := range s.Bounds {
		if b.Metric != Goodput {
			out = append(out, b)
		}
		out = append(out, b.Limits.Parts(b.Quantile)...)
	}
	return out
}

// Metrics lists the latencies that the objective limits, those of Goodput
// included, each once and in the order of TTFT, TPOT, ITL, E2E.
func (s SLO) Metrics() []Metric {
	var out []Metric
	for _, b := range s.Latencies() {
		out = append(out, b.Metric)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tightest is the smallest limit on the latencies that are per token, or on the others;
// 0 if there is none.
func (s SLO) tightest(perToken bool) time.Duration {
	least := time.Duration(0)
	for _, b := range s.Latencies() {
		if b.Metric.row().perToken == perToken && b.Limit > 0 && (least == 0 || b.Limit < least) {
			least = b.Limit
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
	lag := s.tightest(false) / 100
	if lag == 0 {
		lag = s.tightest(true) / 4
	}
	return max(lag, leastLag)
}

// Sort puts the bounds into their canonical order: TTFT, TPOT, ITL, E2E, Goodput, and
// within each the mean first and quantiles from low to high.
func (s *SLO) Sort() {
	slices.SortFunc(s.Bounds, func(a, b Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Quantile, b.Quantile))
	})
}

// MarshalJSON writes {"ttft_ms":{"p99":500},"errors":0.001}; errors is null
// when they are not bounded. Goodput is {"share":0.95,"ttft_ms":500}. An objective
// that bounds nothing is null.
func (s SLO) MarshalJSON() ([]byte, error) {
	if s.Empty() {
		return []byte("null"), nil
	}
	var parts [][]byte
	add := func(key string, value any) error {
		part, err := wire.Marshal(map[string]any{key: value})
		parts = append(parts, bytes.TrimSuffix(bytes.TrimPrefix(part, []byte("{")), []byte("}")))
		return err
	}
	var failed error
	limits := map[Metric]map[string]time.Duration{}
	for _, b := range s.Bounds {
		if !b.Metric.valid() {
			return nil, fmt.Errorf("write objective: invalid metric %d", int(b.Metric))
		}
		if limits[b.Metric] == nil {
			limits[b.Metric] = map[string]time.Duration{}
		}
		limits[b.Metric][b.Stat()] = max(b.Limit, 0)
	}
	for _, m := range AllLatencies() {
		if limits[m] != nil {
			failed = errors.Join(failed, add(m.key(), limits[m]))
		}
	}
	allowed := s.Errors
	if allowed < 0 {
		allowed = math.NaN()
	}
	failed = errors.Join(failed, add("errors", allowed))
	for _, b := range s.Bounds {
		if b.Metric == Goodput {
			failed = errors.Join(failed, add(b.Metric.String(), b))
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}")), failed
}

// UnmarshalJSON reads what MarshalJSON writes. Bounds come in the order of
// SLO.Sort.
func (s *SLO) UnmarshalJSON(data []byte) error {
	if *s = (SLO{}); string(data) == "null" {
		return nil
	}
	w := struct {
		Errors  float64 `json:"errors"`
		Goodput *Bound  `json:"goodput"`
	}{Errors: math.NaN()}
	var limits map[string]json.RawMessage
	if err := errors.Join(wire.Unmarshal(data, &w), json.Unmarshal(data, &limits)); err != nil {
		return fmt.Errorf("read objective: %w", err)
	}
	if s.Errors = w.Errors; math.IsNaN(w.Errors) {
		s.Errors = -1
	}
	for _, m := range AllLatencies() {
		var stats map[string]*float64
		if raw := limits[m.key()]; raw != nil {
			if err := json.Unmarshal(raw, &stats); err != nil {
				return fmt.Errorf("read objective: %s: %w", m.key(), err)
			}
		}
		for stat, limit := range stats {
			q, err := ParseStat(stat)
			if err != nil {
				return fmt.Errorf("read objective: %w", err)
			}
			b := Bound{Metric: m, Quantile: q, Limit: -1}
			if limit != nil {
				b.Limit = wire.Duration(*limit, time.Millisecond)
			}
			s.Bounds = append(s.Bounds, b)
		}
	}
	if g := w.Goodput; g != nil {
		g.Metric = Goodput
		s.Bounds = append(s.Bounds, *g)
	}
	for _, b := range s.Bounds {
		if err := b.check(); err != nil {
			return fmt.Errorf("read objective: %w", err)
		}
	}
	s.Sort()
	return nil
}
