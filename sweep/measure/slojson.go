package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// wireSLO is an SLO in a file: limits in milliseconds by statistic.
type wireSLO struct {
	TTFT   map[string]float64 `json:"ttft_ms,omitempty"`
	TPOT   map[string]float64 `json:"tpot_ms,omitempty"`
	ITL    map[string]float64 `json:"itl_ms,omitempty"`
	E2E    map[string]float64 `json:"e2e_ms,omitempty"`
	Errors *float64           `json:"errors"`
}

func (w *wireSLO) limits() [4]*map[string]float64 {
	return [4]*map[string]float64{&w.TTFT, &w.TPOT, &w.ITL, &w.E2E}
}

// MarshalJSON writes {"ttft_ms":{"p99":500},"errors":0.001}; errors is null
// when they are not bounded.
func (s SLO) MarshalJSON() ([]byte, error) {
	var w wireSLO
	for _, b := range s.Bounds {
		if b.Metric < TTFT || b.Metric > E2E {
			return nil, fmt.Errorf("write objective: invalid metric %d", int(b.Metric))
		}
		of := w.limits()[b.Metric-TTFT]
		if *of == nil {
			*of = map[string]float64{}
		}
		(*of)[b.Stat()] = *toMs(max(b.Limit, 0))
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
			s.Bounds = append(s.Bounds, Bound{TTFT + Metric(i), q, fromMs(&limit)})
		}
	}
	s.Sort()
	return nil
}

// Sort puts the bounds into their canonical order: TTFT, TPOT, ITL, E2E, and
// within each the mean first and quantiles from low to high.
func (s *SLO) Sort() {
	slices.SortFunc(s.Bounds, func(a, b Bound) int {
		if a.Metric != b.Metric {
			return int(a.Metric - b.Metric)
		}
		switch {
		case a.Quantile < b.Quantile:
			return -1
		case a.Quantile > b.Quantile:
			return 1
		}
		return 0
	})
}
