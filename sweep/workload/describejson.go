package workload

import (
	"encoding/json"

	"planner/internal/units"
)

// wireDescription is a Description in a file: null for what is not known.
type wireDescription struct {
	Requests       int              `json:"requests"`
	Span           float64          `json:"span_s"`
	Rate           *float64         `json:"rate_per_s"`
	GapCV          *float64         `json:"gap_cv"`
	GapCorrelation *float64         `json:"gap_autocorrelation"`
	Dispersion     []wireDispersion `json:"index_of_dispersion"`
	Prompt         wireLengthTable  `json:"prompt_tokens"`
	Output         wireLengthTable  `json:"output_tokens"`
	Total          wireLengthTable  `json:"total_tokens"`
	Correlation    *float64         `json:"prompt_output_correlation"`
	Prefix         *wirePrefix      `json:"prefix"`
	Busiest        wireBusiest      `json:"busiest_minute"`
}

type wireDispersion struct {
	Window  float64  `json:"window_s"`
	Index   *float64 `json:"index"`
	Windows int      `json:"windows"`
}

type wireLengthTable struct {
	Mean   *float64 `json:"mean"`
	StdDev *float64 `json:"stddev"`
	Min    int      `json:"min"`
	P50    int      `json:"p50"`
	P90    int      `json:"p90"`
	P99    int      `json:"p99"`
	Max    int      `json:"max"`
	Sum    int      `json:"sum"`
}

type wirePrefix struct {
	Repeated float64 `json:"repeated_share"`
	Sharing  float64 `json:"sharing_requests_share"`
	Distinct int     `json:"distinct"`
	Shared   int     `json:"shared"`
}

type wireBusiest struct {
	From     float64 `json:"from_s"`
	Requests int     `json:"requests"`
	Rate     float64 `json:"rate_per_s"`
}

// MarshalJSON writes the description with units in its keys; "prefix" is null
// for a trace that does not tell prefixes.
func (d Description) MarshalJSON() ([]byte, error) {
	w := wireDescription{
		Requests: d.Requests, Span: d.Span.Seconds(), Rate: units.Finite(d.Rate), GapCV: units.Finite(d.GapCV), GapCorrelation: units.Finite(d.GapCorrelation),
		Prompt: lengthTable(d.Prompt), Output: lengthTable(d.Output), Total: lengthTable(d.Total), Correlation: units.Finite(d.Correlation),
		Busiest:    wireBusiest{d.Busiest.From.Seconds(), d.Busiest.Requests, d.Busiest.Rate},
		Dispersion: []wireDispersion{},
	}
	for _, x := range d.Dispersion {
		w.Dispersion = append(w.Dispersion, wireDispersion{x.Window.Seconds(), units.Finite(x.Index), x.Windows})
	}
	if p := d.Prefix; p.Known {
		w.Prefix = &wirePrefix{p.Repeated, p.Sharing, p.Distinct, p.Shared}
	}
	return json.Marshal(w)
}

func lengthTable(s LengthSummary) wireLengthTable {
	return wireLengthTable{units.Finite(s.Mean), units.Finite(s.StdDev), s.Least, s.P50, s.P90, s.P99, s.Most, s.Sum}
}
