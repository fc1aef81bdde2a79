package ingest

import "planner/internal/note"

// llmdFormat is llm-d's benchmark report, into which the results of its tools are converted.
var llmdFormat = ResultFormat{
	Name: "llm-d-benchmark", Reads: "the benchmark report 0.2 in YAML or JSON, also the parts that inference-perf writes",
	Notes: []string{
		"the figures are those of the tool that measured, by its definitions; most latencies count from the real send",
	},
	layouts: []layout{
		llmdReport.as(nil, `"request_performance"`, `"aggregate"`, `"latency"`),
		llmdReport.as(parseYAML, "request_performance:", "aggregate:", "latency:"),
	},
}

// llmdFigures is where the report has its figures.
const llmdFigures = "results.request_performance.aggregate."

var llmdReport = layout{
	withFailed: true,
	latencies:  latenciesIn(0, llmdFigures+"latency.time_to_first_token.*", llmdFigures+"latency.time_per_output_token.*", "", llmdFigures+"latency.request_latency.*"),
	stats:      []string{"mean", "p50", "p90", "p95", "p99", "p99p9"},
	completed:  llmdFigures + "requests.total", failed: llmdFigures + "requests.failures",
	outputTokens: llmdFigures + "throughput.output_token_rate.mean", promptTokens: llmdFigures + "throughput.input_token_rate.mean",
	prompt: llmdFigures + "requests.input_length.mean", output: llmdFigures + "requests.output_length.mean",
	achieved: llmdFigures + "throughput.request_rate.mean", rate: "scenario.load.standardized.rate_qps", limit: "scenario.load.standardized.concurrency",
	rest: (*pointReader).llmd,
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
