package ingest

import "time"

var llmperfFormat = ResultFormat{
	Name: "llmperf", Reads: "*_summary.json, *_individual_responses.json",
	Notes: []string{
		serviceTime,
		"a closed loop; its inter-token latency includes TTFT and is left out",
	},
	layouts: []layout{
		{
			marks: []string{`"results_ttft_s_quantiles_p`}, text: true,
			latencies: latenciesIn(time.Second, "results_ttft_s_*", "", "", "results_end_to_end_latency_s_*"),
			stats:     []string{"mean", "quantiles_p50", "quantiles_p90", "quantiles_p95", "quantiles_p99", "quantiles_p999"},
			completed: "results_num_completed_requests", failed: "results_number_errors",
			outputTokens: "results_mean_output_throughput_token_per_s", limit: "num_concurrent_requests",
			prompt: "results_number_input_tokens_mean", output: "results_number_output_tokens_mean",
			rest: (*pointReader).llmperf,
		},
		{marks: []string{`"ttft_s"`, `"end_to_end_latency_s"`, `"number_output_tokens"`}, request: (*pointReader).llmperfRequest},
	},
}

func (p *pointReader) llmperf(completed int) {
	const perMinute = "results_num_completed_requests_per_min"
	if p.m.Achieved = p.rate(perMinute) / 60; p.m.Achieved > 0 {
		p.lasted(completed, p.m.Achieved, perMinute)
	}
}

func (p *pointReader) llmperfRequest() loggedRequest {
	r := unknownRequest()
	if r.failed = p.has("error_code"); r.failed {
		return r
	}
	r.ttft, r.e2e = p.seconds("ttft_s", time.Second), p.seconds("end_to_end_latency_s", time.Second)
	r.prompt, r.output = p.seconds("number_input_tokens", time.Second), p.seconds("number_output_tokens", time.Second)
	r.tpot = r.pace()
	return r
}
