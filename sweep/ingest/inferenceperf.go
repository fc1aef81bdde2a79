package ingest

import (
	"fmt"
	"time"

	"planner/sweep/measure"
)

type inferencePerfResult struct {
	Seconds *float64 `json:"benchmark_time_seconds"`
	Load    struct {
		Delay       *perfStats `json:"schedule_delay"`
		Sending     *float64   `json:"send_duration"`
		Requested   *float64   `json:"requested_rate"`
		Achieved    *float64   `json:"achieved_rate"`
		Concurrency *float64   `json:"concurrency"`
	} `json:"load_summary"`
	Successes struct {
		Count   *float64 `json:"count"`
		Latency struct {
			E2E  *perfStats `json:"request_latency"`
			TTFT *perfStats `json:"time_to_first_token"`
			TPOT *perfStats `json:"time_per_output_token"`
		} `json:"latency"`
		Throughput struct {
			Output   *float64 `json:"output_tokens_per_sec"`
			Requests *float64 `json:"requests_per_sec"`
		} `json:"throughput"`
	} `json:"successes"`
	Failures struct {
		Count *float64 `json:"count"`
	} `json:"failures"`
}

type perfStats struct {
	Mean   statistic `json:"mean"`
	Median statistic `json:"median"`
	P90    statistic `json:"p90"`
	P95    statistic `json:"p95"`
	P99    statistic `json:"p99"`
	P999   statistic `json:"p99.9"`
	Max    statistic `json:"max"`
}

// lateSend is the send lag beyond which a client, not the server, is measured;
// the tool's own documentation asks for less.
const lateSend = 10 * time.Millisecond

func (p *pointReader) inferencePerf(document []byte) {
	var r inferencePerfResult
	if !p.decode(document, &r) {
		return
	}
	m := newMeasurement()
	p.perfStats(&m.TTFT, "time_to_first_token", r.Successes.Latency.TTFT)
	p.perfStats(&m.TPOT, "time_per_output_token", r.Successes.Latency.TPOT)
	p.perfStats(&m.E2E, "request_latency", r.Successes.Latency.E2E)
	done := p.whole("successes.count", r.Successes.Count)
	m.Failed = p.whole("failures.count", r.Failures.Count)
	m.Requests = done + m.Failed
	m.TTFT.N, m.TPOT.N, m.E2E.N = done, done, done
	m.OutputTokens = orZero(r.Successes.Throughput.Output)
	m.Trial.Rate = orZero(r.Load.Requested)
	m.Sent = orZero(r.Load.Achieved)
	if m.Trial.Rate == 0 {
		m.Trial.Concurrency = p.whole("load_summary.concurrency", r.Load.Concurrency)
		m.Trial.Requests = m.Requests
	}
	p.perfWindow(&m, &r, done)
	p.perfDelay(&m, r.Load.Delay)
	p.add(m)
}

// perfWindow fills in the window, that of the arrivals in an open loop, and the
// completed rate.
func (p *pointReader) perfWindow(m *measure.Measurement, r *inferencePerfResult, done int) {
	run, okRun := duration(orZero(r.Seconds), time.Second)
	if perSecond := orZero(r.Successes.Throughput.Requests); r.Seconds == nil && perSecond > 0 {
		// Reports without the time of the run hold the rate over it.
		run, okRun = duration(float64(done)/perSecond, time.Second)
	}
	sending, okSending := duration(orZero(r.Load.Sending), time.Second)
	switch {
	case okSending && sending > 0 && m.Trial.Rate > 0:
		m.Duration = sending
		if okRun && run > 0 {
			m.Achieved = keptUp(done, run, sending, lastRequest(m))
		}
	case okRun && run > 0:
		m.Duration = run
		m.Achieved = float64(done) / run.Seconds()
	}
	m.Trial.Window = m.Duration
}

// perfDelay fills in how late requests left. A client that was late measured
// itself.
func (p *pointReader) perfDelay(m *measure.Measurement, s *perfStats) {
	if s == nil {
		return
	}
	// The delay of a request that left early is negative: no lag.
	lag := func(v statistic) statistic {
		if v.value != nil && *v.value < 0 {
			return statistic{}
		}
		return v
	}
	p.perfStats(&m.SendLag, "schedule_delay", &perfStats{lag(s.Mean), lag(s.Median), lag(s.P90), lag(s.P95), lag(s.P99), lag(s.P999), statistic{}})
	if m.SendLag.P50 > lateSend || m.SendLag.Mean > lateSend {
		m.Valid = false
		m.Warnings = append(m.Warnings, fmt.Sprintf("requests left %v late in the mean: the client was the limit, and its latencies leave that out", m.SendLag.Mean.Round(time.Millisecond)))
	}
}

func (p *pointReader) perfStats(s *measure.Summary, field string, v *perfStats) {
	if v == nil {
		return
	}
	p.set(s, field+".mean", 0, v.Mean, time.Second)
	p.set(s, field+".median", 0.50, v.Median, time.Second)
	p.set(s, field+".p90", 0.90, v.P90, time.Second)
	p.set(s, field+".p95", 0.95, v.P95, time.Second)
	p.set(s, field+".p99", 0.99, v.P99, time.Second)
	p.set(s, field+".p99.9", 0.999, v.P999, time.Second)
}
