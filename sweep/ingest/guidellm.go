package ingest

import (
	"time"

	"planner/sweep/measure"
)

type guideReport struct {
	Benchmarks []guideBenchmark `json:"benchmarks"`
}

type guideBenchmark struct {
	Duration *float64    `json:"duration"`
	Config   guideConfig `json:"config"`
	// Args held the strategy up to version 0.3.
	Args    guideConfig  `json:"args"`
	Metrics guideMetrics `json:"metrics"`
	// RunStats held the times up to version 0.3.
	RunStats struct {
		Start *float64 `json:"start_time"`
		End   *float64 `json:"end_time"`
	} `json:"run_stats"`
	Requests struct {
		Successful []guideRequest `json:"successful"`
	} `json:"requests"`
}

type guideConfig struct {
	Strategy struct {
		Type           string   `json:"type_"`
		Rate           *float64 `json:"rate"`
		Streams        *float64 `json:"streams"`
		MaxConcurrency *float64 `json:"max_concurrency"`
	} `json:"strategy"`
}

type guideMetrics struct {
	Totals struct {
		Successful *float64 `json:"successful"`
		Errored    *float64 `json:"errored"`
		Incomplete *float64 `json:"incomplete"`
	} `json:"request_totals"`
	Rate         guideDistribution `json:"requests_per_second"`
	Latency      guideDistribution `json:"request_latency"`
	TTFT         guideDistribution `json:"time_to_first_token_ms"`
	OutputTokens guideDistribution `json:"output_tokens_per_second"`
}

type guideDistribution struct {
	Successful struct {
		Mean        statistic            `json:"mean"`
		Count       *float64             `json:"count"`
		Percentiles map[string]statistic `json:"percentiles"`
	} `json:"successful"`
}

type guideRequest struct {
	ITL *float64 `json:"inter_token_latency_ms"`
}

// guidePercentiles are its names: p999 is the 99.9th.
var guidePercentiles = []struct {
	name     string
	quantile float64
}{{"p50", 0.50}, {"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}}

// guidellm reads a report; each of its benchmarks is a load point.
func (p *pointReader) guidellm(document []byte) {
	var r guideReport
	if !p.decode(document, &r) {
		return
	}
	for i := range r.Benchmarks {
		p.guideBenchmark(&r.Benchmarks[i])
	}
}

func (p *pointReader) guideBenchmark(b *guideBenchmark) {
	m := newMeasurement()
	done := p.whole("request_totals.successful", b.Metrics.Totals.Successful)
	m.Failed = p.whole("request_totals.errored", b.Metrics.Totals.Errored)
	m.Requests = done + m.Failed
	if n := p.whole("request_totals.incomplete", b.Metrics.Totals.Incomplete); n > 0 {
		m.Warnings = append(m.Warnings, "requests in flight at the end are left out: overload looks better than it is")
	}
	p.guideStats(&m.TTFT, "time_to_first_token_ms", &b.Metrics.TTFT, time.Millisecond)
	p.guideStats(&m.E2E, "request_latency", &b.Metrics.Latency, time.Second)
	guideTPOT(&m.TPOT, b.Requests.Successful)
	m.Achieved = orZero(b.Metrics.Rate.Successful.Mean.value)
	m.OutputTokens = orZero(b.Metrics.OutputTokens.Successful.Mean.value)
	if d, ok := duration(b.seconds(), time.Second); ok {
		m.Duration, m.Trial.Window = d, d
	}
	s := b.Config.Strategy
	if s.Type == "" {
		s = b.Args.Strategy
	}
	switch s.Type {
	case "constant", "poisson", "async":
		m.Trial.Rate = orZero(s.Rate)
		if s.Type != "poisson" {
			m.Warnings = append(m.Warnings, "evenly spaced arrivals: tails are shorter than under Poisson ones")
		}
	case "synchronous":
		m.Trial.Concurrency = 1
	case "concurrent":
		m.Trial.Concurrency = p.whole("strategy.streams", s.Streams)
	case "throughput":
		m.Trial.Concurrency = p.whole("strategy.max_concurrency", s.MaxConcurrency)
		m.Warnings = append(m.Warnings, "as many requests as possible at once: latencies are those of a flood")
	}
	m.Trial.Requests = m.Requests
	p.add(m)
}

// seconds is the length of the measured window.
func (b *guideBenchmark) seconds() float64 {
	if b.Duration != nil {
		return *b.Duration
	}
	return orZero(b.RunStats.End) - orZero(b.RunStats.Start)
}

func (p *pointReader) guideStats(s *measure.Summary, field string, d *guideDistribution, unit time.Duration) {
	p.set(s, field+".mean", 0, d.Successful.Mean, unit)
	for _, q := range guidePercentiles {
		p.set(s, field+"."+q.name, q.quantile, d.Successful.Percentiles[q.name], unit)
	}
	s.N = p.whole(field, d.Successful.Count)
}

// guideTPOT takes the quantiles over requests: those of the report's own summary
// are over tokens.
func guideTPOT(s *measure.Summary, requests []guideRequest) {
	var all []time.Duration
	for _, r := range requests {
		if r.ITL == nil {
			continue
		}
		if d, ok := duration(*r.ITL, time.Millisecond); ok && d > 0 {
			all = append(all, d)
		}
	}
	summarize(s, all)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
