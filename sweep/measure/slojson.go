package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/wire"
)

// fileSLO is an SLO in a file: limits by statistic.
type fileSLO struct {
	TTFT    map[string]time.Duration `json:"ttft_ms,omitempty"`
	TPOT    map[string]time.Duration `json:"tpot_ms,omitempty"`
	ITL     map[string]time.Duration `json:"itl_ms,omitempty"`
	E2E     map[string]time.Duration `json:"e2e_ms,omitempty"`
	Errors  float64                  `json:"errors"`
	Goodput *fileGoodput             `json:"goodput,omitempty"`
}

// fileGoodput is the bound on Goodput in a file.
type fileGoodput struct {
	Share float64 `json:"share"`
	Limits
}

func (w *fileSLO) limits() [4]*map[string]time.Duration {
	return [4]*map[string]time.Duration{&w.TTFT, &w.TPOT, &w.ITL, &w.E2E}
}

// check tells what is wrong with a bound that was read.
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
			w.Goodput = &fileGoodput{b.Quantile, b.Limits}
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
		s.Bounds = append(s.Bounds, Bound{Metric: Goodput, Quantile: g.Share, Limits: g.Limits})
	}
	for _, b := range s.Bounds {
		if err := b.check(); err != nil {
			return fmt.Errorf("read objective: %w", err)
		}
	}
	s.Sort()
	return nil
}

// Sort puts the bounds into their canonical order: TTFT, TPOT, ITL, E2E, Goodput, and
// within each the mean first and quantiles from low to high.
func (s *SLO) Sort() {
	slices.SortFunc(s.Bounds, func(a, b Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Quantile, b.Quantile))
	})
}
