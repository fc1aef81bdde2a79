package ingest

import (
	"math"
	"time"

	"planner/internal/note"
)

var inferencePerfFormat = ResultFormat{
	Name:  "inference-perf",
	Reads: "stage_N_lifecycle_metrics.json, summary_lifecycle_metrics.json, per_request_lifecycle_metrics.json, or the folder of reports",
	Notes: []string{
		serviceTime + " (its schedule_delay says how late)",
		"TTFT counts visible text only; arrivals called constant are exponential gaps, rescaled",
		"the inter-token figures hold zeros for tokens of one chunk and are left out",
	},
	layouts: []layout{
		{marks: []string{`"num_sessions"`}, refuse: "sessions, not requests: read stage_N_lifecycle_metrics.json"},
		{marks: []string{`"load_summary"`, `"num_requests_swapped"`}, refuse: "figures of the server: read stage_N_lifecycle_metrics.json"},
		{
			marks:     []string{`"load_summary"`},
			latencies: latenciesIn(time.Second, "successes.latency.time_to_first_token.*", "successes.latency.time_per_output_token.*", "", "successes.latency.request_latency.*"),
			stats:     []string{"mean", "median|p50", "p90", "p95", "p99", "p99.9"}, completed: "successes.count", failed: "failures.count",
			outputTokens: "successes.throughput.output_tokens_per_sec", promptTokens: "successes.throughput.input_tokens_per_sec",
			prompt: "successes.prompt_tokens.mean|successes.prompt_len.mean", output: "successes.output_tokens.mean|successes.output_len.mean",
			// A stage of fixed concurrency also names the rate at which it filled its queue.
			rate: "load_summary.requested_rate", limit: "load_summary.concurrency", rest: (*pointReader).inferencePerf,
		},
		{marks: []string{`"request_metrics"`, `"start_time"`, `"end_time"`, `"error"`}, request: (*pointReader).inferencePerfRequest},
	},
}

// lateSend is the mean or median send lag beyond which the client is measured rather than the
// server; inference-perf's own documentation asks for less.
const lateSend = 10 * time.Millisecond

func (p *pointReader) inferencePerf(completed int) {
	m := &p.m
	m.Sent = p.rate("load_summary.achieved_rate")
	run := p.span("benchmark_time_seconds", time.Second)
	if rate := p.number("successes.throughput.requests_per_sec"); !p.has("benchmark_time_seconds") && rate > 0 {
		// Reports without the time of the run have the rate over it.
		p.lasted(completed, rate, "successes.throughput.requests_per_sec")
		run = max(m.Duration, 0)
	}
	// The window of an open loop is that of its arrivals.
	switch sending := p.span("load_summary.send_duration", time.Second); {
	case sending > 0 && m.Trial.Rate > 0:
		p.window(sending)
		if run > 0 {
			m.Achieved = p.drained(completed, run, sending)
		}
	case run > 0:
		p.window(run)
		m.Achieved = float64(completed) / run.Seconds()
	}
	p.latency(&m.SendLag, "load_summary.schedule_delay.*", time.Second)
	if m.SendLag.P50 > lateSend || m.SendLag.Mean > lateSend {
		m.Valid = false
		p.warn(note.MeanLag, m.SendLag.Mean.Round(time.Millisecond))
	}
}

func (p *pointReader) inferencePerfRequest() loggedRequest {
	r := unknownRequest()
	r.begin, r.end = p.seconds("start_time", time.Second), p.seconds("end_time", time.Second)
	if r.failed = p.has("error"); r.failed {
		return r
	}
	r.e2e, r.prompt = r.end-r.begin, p.seconds("info.request_metrics.text.input_tokens", time.Second)
	for _, path := range []string{"info.response_metrics.server_usage.completion_tokens", "info.response_metrics.output_tokens"} {
		if math.IsNaN(r.output) {
			r.output = p.seconds(path, time.Second)
		}
	}
	if at := p.column("info.response_metrics.output_token_times"); len(at) > 1 && len(at[0]) == 1 && len(at[len(at)-1]) == 1 {
		first, last := at[0][0], at[len(at)-1][0]
		r.ttft = first - r.begin
		if r.output > 1 {
			r.tpot = (last - first) / (r.output - 1)
		}
	}
	return r
}
