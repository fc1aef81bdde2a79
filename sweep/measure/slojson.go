package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/units"
)

// wireSLO is an SLO in a file: limits in milliseconds by statistic.
type wireSLO struct {
	TTFT   map[string]float64 `json:"ttft_ms,omitempty"`
	TPOT   map[string]float64 `json:"tpot_ms,omitempty"`
	ITL    map[string]float64 `json:"itl_ms,omitempty"`
	E2E    map[string]float64 `json:"e2e_ms,omitempty"`
	Errors *float64           `json:"errors"`

	Goodput *wireGoodput `json:"goodput,omitempty"`
}

// wireGoodput is the bound on Goodput in a file.
type wireGoodput struct {
	Share float64  `json:"share"`
	TTFT  *float64 `json:"ttft_ms,omitempty"`
	TPOT  *float64 `json:"tpot_ms,omitempty"`
	E2E   *float64 `json:"e2e_ms,omitempty"`
}

func (w *wireSLO) limits() [4]*map[string]float64 {
	return [4]*map[string]float64{&w.TTFT, &w.TPOT, &w.ITL, &w.E2E}
}

func goodputToWire(b Bound) *wireGoodput {
	ms := func(limit time.Duration) *float64 {
		if limit <= 0 {
			return nil
		}
		return units.Millis(limit)
	}
	return &wireGoodput{b.Quantile, ms(b.Limits.TTFT), ms(b.Limits.TPOT), ms(b.Limits.E2E)}
}

func (w *wireGoodput) bound() (Bound, error) {
	b := Bound{Metric: Goodput, Quantile: w.Share}
	if !(w.Share > 0 && w.Share < 1) {
		return b, fmt.Errorf("read objective: a goodput share of %g is not between 0 and 1", w.Share)
	}
	for _, l := range []struct {
		to *time.Duration
		ms *float64
	}{{&b.Limits.TTFT, w.TTFT}, {&b.Limits.TPOT, w.TPOT}, {&b.Limits.E2E, w.E2E}} {
		if l.ms == nil {
			continue
		}
		if *l.to = units.FromMillis(l.ms); *l.to <= 0 || math.IsInf(*l.ms, 0) {
			return b, fmt.Errorf("read objective: a goodput limit of %g ms is not above 0", *l.ms)
		}
	}
	if b.Limits == (Limits{}) {
		return b, errors.New("read objective: goodput without a limit")
	}
	return b, nil
}

// MarshalJSON writes {"ttft_ms":{"p99":500},"errors":0.001}; errors is null
// when they are not bounded. Goodput is {"share":0.95,"ttft_ms":500}.
func (s SLO) MarshalJSON() ([]byte, error) {
	var w wireSLO
	for _, b := range s.Bounds {
		if b.Metric == Goodput {
			w.Goodput = goodputToWire(b)
			continue
		}
		if b.Metric < TTFT || b.Metric > E2E {
			return nil, fmt.Errorf("write objective: invalid metric %d", int(b.Metric))
		}
		of := w.limits()[b.Metric-TTFT]
		if *of == nil {
			*of = map[string]float64{}
		}
		(*of)[b.Stat()] = *units.Millis(max(b.Limit, 0))
	}
	if s.Errors >= 0 {
		w.Errors = &s.Errors
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. Bounds come in the order of
// SLO.Sort.
func (s *SLO) UnmarshalJSON(b []byte) error {
	var w wireSLO
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read objective: %w", err)
	}
	*s = SLO{Errors: -1}
	if w.Errors != nil {
		s.Errors = *w.Errors
	}
	for i, of := range w.limits() {
		for stat, limit := range *of {
			q, err := ParseStat(stat)
			if err != nil {
				return fmt.Errorf("read objective: %w", err)
			}
			if limit < 0 || math.IsInf(limit, 0) {
				return fmt.Errorf("read objective: limit %g ms of %s.%s is below 0", limit, TTFT+Metric(i), stat)
			}
			s.Bounds = append(s.Bounds, Bound{Metric: TTFT + Metric(i), Quantile: q, Limit: units.FromMillis(&limit)})
		}
	}
	if w.Goodput != nil {
		b, err := w.Goodput.bound()
		if err != nil {
			return err
		}
		s.Bounds = append(s.Bounds, b)
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
