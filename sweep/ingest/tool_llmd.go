package ingest

import "planner/internal/note"

// llmdFormat is llm-d's benchmark report, into which the results of its tools are converted.
func llmdFormat() ResultFormat {
	const at = "results.request_performance.aggregate."
	l := layout{
		marks: []string{`"request_performance"`, `"aggregate"`, `"latency"`}, withFailed: true,
		latencies: latenciesIn(0, at+"latency.time_to_first_token.*", at+"latency.time_per_output_token.*", "", at+"latency.request_latency.*"),
		stats:     []string{"mean", "p50", "p90", "p95", "p99", "p99p9"}, completed: at + "requests.total", failed: at + "requests.failures",
		outputTokens: at + "throughput.output_token_rate.mean", promptTokens: at + "throughput.input_token_rate.mean",
		prompt: at + "requests.input_length.mean", output: at + "requests.output_length.mean",
		achieved: at + "throughput.request_rate.mean", rate: "scenario.load.standardized.rate_qps", limit: "scenario.load.standardized.concurrency",
		rest: (*pointReader).llmd,
	}
	document := l
	document.marks, document.parse = []string{"request_performance:", "aggregate:", "latency:"}, parseYAML
	return ResultFormat{
		Name: "llm-d-benchmark", Reads: "the benchmark report 0.2 in YAML or JSON, also the parts that inference-perf writes",
		Notes: []string{
			"the figures are those of the tool that measured, by its definitions; most latencies count from the real send",
		},
		layouts: []layout{l, document},
	}
}

func (p *pointReader) llmd(completed int) {
	m := &p.m
	rate := p.number(p.layout.rate)
	p.warnIf(m.Trial.Closed() && rate > 0, note.LoopClosedByLimit, rate, m.Trial.Concurrency)
	if m.Achieved > 0 {
		p.lasted(completed, m.Achieved, p.layout.achieved)
	}
	p.keptUp(completed)
}
