package measure

import (
	"cmp"
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

// tightest is the smallest limit on some of the latencies; 0 if there is none.
func (s SLO) tightest(of ...Metric) time.Duration {
	least := time.Duration(0)
	for _, b := range s.Latencies() {
		if slices.Contains(of, b.Metric) && b.Limit > 0 && (least == 0 || b.Limit < least) {
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
	lag := s.tightest(TTFT, E2E) / 100
	if lag == 0 {
		lag = s.tightest(TPOT, ITL) / 4
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

// fileSLO is an SLO in a file: limits by statistic.
type fileSLO struct {
	TTFT    map[string]time.Duration `json:"ttft_ms,omitempty"`
	TPOT    map[string]time.Duration `json:"tpot_ms,omitempty"`
	ITL     map[string]time.Duration `json:"itl_ms,omitempty"`
	E2E     map[string]time.Duration `json:"e2e_ms,omitempty"`
	Errors  float64                  `json:"errors"`
	Goodput *Bound                   `json:"goodput,omitempty"`
}

func (w *fileSLO) limits() [4]*map[string]time.Duration {
	return [4]*map[string]time.Duration{&w.TTFT, &w.TPOT, &w.ITL, &w.E2E}
}

// MarshalJSON writes {"ttft_ms":{"p99":500},"errors":0.001}; errors is null
// when they are not bounded. Goodput is {"share":0.95,"ttft_ms":500}. An objective
// that bounds nothing is null.
func (s SLO) MarshalJSON() ([]byte, error) {
	if s.Empty() {
		return []byte("null"), nil
	}
	w := fileSLO{Errors: s.Errors}
	if s.Errors < 0 {
		w.Errors = math.NaN()
	}
	for _, b := range s.Bounds {
		if b.Metric == Goodput {
			w.Goodput = &b
			continue
		}
		if b.Metric < TTFT || b.Metric > E2E {
			return nil, fmt.Errorf("write objective: invalid metric %d", int(b.Metric))
		}
		of := w.limits()[b.Metric-TTFT]
		if *of == nil {
			*of = map[string]time.Duration{}
		}
		(*of)[b.Stat()] = max(b.Limit, 0)
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. Bounds come in the order of
// SLO.Sort.
func (s *SLO) UnmarshalJSON(data []byte) error {
	if *s = (SLO{}); string(data) == "null" {
		return nil
	}
	w := fileSLO{Errors: math.NaN()}
	if err := wire.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read objective: %w", err)
	}
	if s.Errors = w.Errors; math.IsNaN(w.Errors) {
		s.Errors = -1
	}
	for i, of := range w.limits() {
		for stat, limit := range *of {
			q, err := ParseStat(stat)
			if err != nil {
				return fmt.Errorf("read objective: %w", err)
			}
			s.Bounds = append(s.Bounds, Bound{Metric: TTFT + Metric(i), Quantile: q, Limit: limit})
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
