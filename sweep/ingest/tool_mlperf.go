package ingest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/input"
	"planner/internal/note"
)

var mlperfFormat = ResultFormat{
	Name: "mlperf", Reads: "mlperf_log_summary.txt, mlperf_log_detail.txt of LoadGen",
	Notes: []string{"in the Server scenario latencies count from the scheduled time, as here; quantiles are values that occurred",
		"the summary does not count the requests, the detail does"},
	layouts: []layout{
		{
			marks: []string{"MLPerf Results Summary", "Scenario", "latency (ns)"}, parse: parsePairs, text: true, stats: mlperfStats,
			latencies: slices.Concat(
				latenciesIn(time.Nanosecond, "* percentile first token latency (ns)", "* percentile time to output token (ns)", "", "* percentile latency (ns)"),
				latenciesIn(time.Nanosecond, "Mean First Token latency (ns)", "Mean Time per Output Token (ns)", "", "Mean latency (ns)")),
			outputTokens: "Completed tokens per second", rest: (*pointReader).mlperf,
		},
		{
			marks: []string{":::MLLOG", `"result_validity"`}, parse: parseMLLog, stats: mlperfStats,
			latencies: slices.Concat(
				latenciesIn(time.Nanosecond, "result_first_token_*_percentile_latency_ns", "result_time_per_output_token_*_percentile_ns", "", "result_*_percentile_latency_ns"),
				latenciesIn(time.Nanosecond, "result_first_token_mean_latency_ns", "result_time_to_output_token_mean", "", "result_mean_latency_ns")),
			completed: "result_query_count", failed: "num_errors", outputTokens: "result_completed_tokens_per_second", rest: (*pointReader).mlperf,
		},
	},
}

// mlperfStats are the percentiles; means are under keys of another form.
var mlperfStats = []string{"", "50.00", "90.00", "95.00", "99.00", "99.90"}

// mlperf reads what both logs have, each under its own keys.
func (p *pointReader) mlperf(queries int) {
	m := &p.m
	if n := p.count("effective_samples_per_query"); n > 1 {
		m.Requests = queries*n + m.Failed
		m.E2E.N, m.TTFT.N, m.TPOT.N = min(m.E2E.N*n, m.Requests), min(m.TTFT.N*n, m.Requests), min(m.TPOT.N*n, m.Requests)
	}
	p.warnIf(p.text("Result is|result_validity") != "VALID", note.ToolInvalid)
	for _, path := range []string{"Completed samples per second", "Samples per second", "result_completed_samples_per_sec", "result_samples_per_second"} {
		if p.has(path) {
			m.Achieved = p.rate(path)
		}
	}
	for _, path := range []string{"Scheduled samples per second", "result_scheduled_samples_per_sec"} {
		if p.at(path) != nil {
			m.Sent = p.rate(path)
		}
	}
	switch p.text("Scenario|effective_scenario") {
	case "Server":
		m.Trial.Rate = p.number("effective_target_qps|target_qps")
	case "SingleStream":
		p.closed(1)
	case "Offline":
		if m.Requests > 0 {
			p.closed(m.Requests)
			p.warn(note.SentAtOnce, m.Requests)
		}
	}
}

// parseMLLog reads lines of a key and its value, each after a mark, into one document.
func parseMLLog(p *pointReader, data []byte) {
	if err := input.CheckJSON(data, input.AnyValue, mostValues); err != nil {
		p.damaged(err)
		return
	}
	var a fastjson.Arena
	o := a.NewObject()
	for text := range bytes.Lines(data) {
		p.line++
		text, marked := bytes.CutPrefix(bytes.TrimSpace(text), []byte(":::MLLOG"))
		if !marked || p.done() {
			continue
		}
		for v := range p.objects(text) {
			key, value := v.Get("key"), v.Get("value")
			if key == nil || value == nil {
				p.damaged(errors.New("no key or no value"))
				continue
			}
			name := string(key.GetStringBytes())
			o.Del(name) // the last one counts
			p.put(o, name, value)
		}
	}
	p.line = 1
	p.document(o)
}
