package ingest

import (
	"time"

	"planner/sweep/measure"
)

// llmperf reads a summary file: a closed loop of num_concurrent_requests.
func (p *pointReader) llmperf(document []byte) {
	var f flatResult
	if !p.decode(document, &f) {
		return
	}
	m := newMeasurement()
	for _, latency := range []struct {
		metric measure.Metric
		name   string
	}{{measure.TTFT, "ttft_s"}, {measure.E2E, "end_to_end_latency_s"}} {
		s, name := m.Latency(latency.metric), latency.name
		p.set(s, "results_"+name+"_mean", 0, f.statistic("results_"+name+"_mean"), time.Second)
		for _, q := range guidePercentiles {
			key := "results_" + name + "_quantiles_" + q.name
			p.set(s, key, q.quantile, f.statistic(key), time.Second)
		}
	}
	done := p.whole("results_num_completed_requests", f.number("results_num_completed_requests"))
	m.Failed = p.whole("results_number_errors", f.number("results_number_errors"))
	m.Requests = done + m.Failed
	m.TTFT.N, m.E2E.N = done, done
	m.OutputTokens = f.orZero("results_mean_output_throughput_token_per_s")
	m.Achieved = f.orZero("results_num_completed_requests_per_min") / 60
	if m.Achieved > 0 {
		m.Duration, _ = duration(float64(done)/m.Achieved, time.Second)
		m.Trial.Window = m.Duration
	}
	m.Trial.Concurrency = p.whole("num_concurrent_requests", f.number("num_concurrent_requests"))
	m.Trial.Requests = m.Requests
	p.add(m)
}
