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

func mlperfFormat() ResultFormat {
	percentiles := []string{"50.00", "90.00", "95.00", "99.00", "99.90"}
	ns := time.Nanosecond
	summary := layout{
		marks: []string{"MLPerf Results Summary", "Scenario", "latency (ns)"}, parse: parsePairs, text: true,
		latencies: slices.Concat(
			latenciesIn(ns, "* percentile first token latency (ns)", "* percentile time to output token (ns)", "", "* percentile latency (ns)"),
			latenciesIn(ns, "Mean First Token latency (ns)", "Mean Time per Output Token (ns)", "", "Mean latency (ns)")),
		outputTokens: "Completed tokens per second", rest: (*pointReader).mlperfSummary,
	}
	detail := layout{
		marks: []string{":::MLLOG", `"result_validity"`}, parse: parseMLLog,
		latencies: slices.Concat(
			latenciesIn(ns, "result_first_token_*_percentile_latency_ns", "result_time_per_output_token_*_percentile_ns", "",
				"result_*_percentile_latency_ns"),
			latenciesIn(ns, "result_first_token_mean_latency_ns", "result_time_to_output_token_mean", "", "result_mean_latency_ns")),
		completed: "result_query_count", failed: "num_errors", outputTokens: "result_completed_tokens_per_second",
		rest: (*pointReader).mlperfDetail,
	}
	summary.stats = append([]string{""}, percentiles...)
	detail.stats = summary.stats
	return ResultFormat{
		Name: "mlperf", Reads: "mlperf_log_summary.txt, mlperf_log_detail.txt of LoadGen",
		Notes: []string{"in the Server scenario latencies count from the scheduled time, as here; quantiles are values that occurred",
			"the summary does not count the requests, the detail does"},
		layouts: []layout{summary, detail},
	}
}

func (p *pointReader) mlperfSummary(int) {
	p.mlperf(p.text("Scenario"), p.text("Result is"), "target_qps", "Scheduled samples per second", "Completed samples per second", "Samples per second")
}

func (p *pointReader) mlperfDetail(queries int) {
	if n := p.count("effective_samples_per_query"); n > 1 {
		p.m.Requests = queries*n + p.m.Failed
		p.m.E2E.N, p.m.TTFT.N, p.m.TPOT.N = min(p.m.E2E.N*n, p.m.Requests), min(p.m.TTFT.N*n, p.m.Requests), min(p.m.TPOT.N*n, p.m.Requests)
	}
	p.mlperf(p.text("effective_scenario"), p.text("result_validity"), "effective_target_qps", "result_scheduled_samples_per_sec",
		"result_completed_samples_per_sec", "result_samples_per_second")
}

// mlperf reads what both logs have, each under its own keys.
func (p *pointReader) mlperf(scenario, result, target, sent string, achieved ...string) {
	p.warnIf(result != "VALID", note.ToolInvalid)
	for _, path := range achieved {
		if p.has(path) {
			p.m.Achieved = p.rate(path)
		}
	}
	p.m.Sent = p.rate(sent)
	switch scenario {
	case "Server":
		p.m.Trial.Rate = p.number(target)
	case "SingleStream":
		p.closed(1)
	case "Offline":
		if p.m.Requests > 0 {
			p.closed(p.m.Requests)
			p.warn(note.SentAtOnce, p.m.Requests)
		}
	}
}

// parseMLLog reads lines of a key and its value, each after a mark, into one document.
func parseMLLog(data []byte, line *int, each func(*fastjson.Value) error) error {
	if err := input.CheckJSON(data, input.AnyValue, mostValues); err != nil {
		return err
	}
	var a fastjson.Arena
	o, within := a.NewObject(), 0
	set := func(v *fastjson.Value) error {
		key, value := v.Get("key"), v.Get("value")
		if key == nil || value == nil {
			return errors.New("no key or no value")
		}
		text := string(key.GetStringBytes())
		o.Del(text) // the last one counts
		return put(o, text, value)
	}
	for text := range bytes.Lines(data) {
		*line++
		if text, marked := bytes.CutPrefix(bytes.TrimSpace(text), []byte(":::MLLOG")); marked {
			if err := parseJSON(text, &within, set); err != nil {
				return err
			}
		}
	}
	*line = 1
	return each(o)
}
