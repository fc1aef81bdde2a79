package ingest

import (
	"maps"
	"slices"
	"time"

	"planner/sweep/measure"
)

// aiperfResult holds what is read of a file of AIPerf or its predecessor.
type aiperfResult struct {
	Version     string       `json:"aiperf_version"`
	Config      any          `json:"input_config"`
	Throughput  *aiperfBlock `json:"request_throughput"`
	Latency     *aiperfBlock `json:"request_latency"`
	TTFT        *aiperfBlock `json:"time_to_first_token"`
	TPOT        *aiperfBlock `json:"inter_token_latency"`
	Count       *aiperfBlock `json:"request_count"`
	Errors      *aiperfBlock `json:"error_request_count"`
	Duration    *aiperfBlock `json:"benchmark_duration"`
	OutputRate  *aiperfBlock `json:"output_token_throughput"`
	Cancelled   bool         `json:"was_cancelled"`
	ErrorGroups []struct {
		Count int `json:"count"`
	} `json:"error_summary"`
}

// aiperfBlock is one metric with its unit.
type aiperfBlock struct {
	Unit string    `json:"unit"`
	Avg  statistic `json:"avg"`
	P50  statistic `json:"p50"`
	P90  statistic `json:"p90"`
	P95  statistic `json:"p95"`
	P99  statistic `json:"p99"`
}

var aiperfUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "sec": time.Second, "seconds": time.Second,
}

func (p *pointReader) aiperf(document []byte) {
	var r aiperfResult
	if !p.decode(document, &r) {
		return
	}
	m := newMeasurement()
	p.aiperfStats(&m.TTFT, "time_to_first_token", r.TTFT)
	p.aiperfStats(&m.E2E, "request_latency", r.Latency)
	p.aiperfStats(&m.TPOT, "inter_token_latency", r.TPOT)
	done := p.whole("request_count", r.Count.avg())
	m.Failed = p.whole("error_request_count", r.Errors.avg())
	if r.Errors == nil {
		for _, g := range r.ErrorGroups {
			m.Failed += g.Count
		}
	}
	m.Requests = done + m.Failed
	m.TTFT.N, m.E2E.N, m.TPOT.N = done, done, done
	m.OutputTokens = orZero(r.OutputRate.avg())
	if r.Duration != nil {
		if d, ok := duration(orZero(r.Duration.avg()), aiperfUnits[r.Duration.Unit]); ok {
			m.Duration, m.Trial.Window = d, d
		}
	}
	// The throughput of the predecessor counts failed requests too.
	if r.Version != "" {
		m.Achieved = orZero(r.Throughput.avg())
	}
	p.aiperfLoad(&m, r.Config)
	if r.Cancelled {
		m.Valid = false
		m.Warnings = append(m.Warnings, "the run was cancelled")
	}
	p.add(m)
}

// aiperfLoad finds the load in the configuration, whose layout changed from
// release to release.
func (p *pointReader) aiperfLoad(m *measure.Measurement, config any) {
	rate, limit := search(config, "request_rate"), search(config, "concurrency")
	switch {
	case rate > 0 && limit > 0:
		m.Trial.Concurrency = p.whole("concurrency", &limit)
		m.Warnings = append(m.Warnings, "a rate behind a limit of concurrency is a closed loop: arrivals that find no slot are skipped")
	case rate > 0:
		m.Trial.Rate = rate
	case limit > 0:
		m.Trial.Concurrency = p.whole("concurrency", &limit)
	}
	m.Trial.Requests = m.Requests
	if m.Achieved > 0 && m.Trial.Rate > 0 && m.Duration > 0 {
		arrivals, _ := duration(float64(m.Requests)/m.Trial.Rate, time.Second)
		m.Achieved = keptUp(m.Requests-m.Failed, m.Duration, arrivals, lastRequest(m))
	}
}

// search finds the number of a key in a JSON value, the shallowest first; 0 if
// there is none.
func search(v any, key string) float64 {
	level := []any{v}
	for len(level) > 0 {
		var below []any
		for _, v := range level {
			m, ok := v.(map[string]any)
			if !ok {
				continue
			}
			if n, ok := m[key].(float64); ok {
				return n
			}
			for _, k := range slices.Sorted(maps.Keys(m)) {
				below = append(below, m[k])
			}
		}
		level = below
	}
	return 0
}

func (b *aiperfBlock) avg() *float64 {
	if b == nil {
		return nil
	}
	return b.Avg.value
}

func (p *pointReader) aiperfStats(s *measure.Summary, field string, b *aiperfBlock) {
	if b == nil {
		return
	}
	unit, ok := aiperfUnits[b.Unit]
	if !ok {
		p.fail(field, "unit %q is unknown", b.Unit)
		return
	}
	p.set(s, field+".avg", 0, b.Avg, unit)
	p.set(s, field+".p50", 0.50, b.P50, unit)
	p.set(s, field+".p90", 0.90, b.P90, unit)
	p.set(s, field+".p95", 0.95, b.P95, unit)
	p.set(s, field+".p99", 0.99, b.P99, unit)
}
