package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/input"
	"planner/internal/note"
	"planner/sweep/measure"
)

// ResultFormat is a kind of result file, and where in it a load point has what. Keys of
// objects within objects have dots between.
type ResultFormat struct {
	Name string `json:"name"`
	// Reads says which files of the tool are read.
	Reads string `json:"reads"`
	// Notes say how the tool's figures differ from what is measured here; every
	// file read carries them as warnings.
	Notes []string `json:"notes"`
	// marks tell the format: a file holds all of them. Plain CSV has none.
	marks []string
	// points is the key of a list of load points; empty where each document is one.
	points string
	// text says that numbers may stand in strings, as metadata does.
	text bool
	// stats are the names of the statistics of latencies, with | between two of one.
	latencies []latencyKeys
	stats     []string
	// The keys of counts, and of the tokens generated per second.
	completed, failed, outputTokens string
	// rest reads what no key tells: the load, over which time it was measured, and
	// what a tool writes in a way of its own.
	rest func(p *pointReader, completed int)
}

// latencyKeys are the keys of the statistics of a latency: path with the name of the
// statistic for its *. A unit of 0 stands beside them.
type latencyKeys struct {
	metric measure.Metric
	path   string
	unit   time.Duration
}

// serviceTime is true of every tool here: none counts from the intended time.
const serviceTime = "latencies count from the real send: a client that sent late hides its own queue"

// ResultFormats lists the formats of result files that are read, in the order in
// which they are tried.
func ResultFormats() []ResultFormat {
	return []ResultFormat{
		{Name: "csv", Reads: "plain CSV of measured points (rate_per_s, ttft_p50_ms, ttft_p99_ms, ...)", Notes: []string{}},
		{Name: "inference-perf", Reads: "stage_N_lifecycle_metrics.json, summary_lifecycle_metrics.json", Notes: []string{
			serviceTime + " (its schedule_delay says how late)",
			"TTFT counts visible text only; arrivals called constant are exponential gaps, rescaled",
			"the inter-token figures hold zeros for tokens of one chunk and are left out",
		}, marks: []string{`"load_summary"`}, latencies: []latencyKeys{
			{measure.TTFT, "successes.latency.time_to_first_token.*", time.Second},
			{measure.TPOT, "successes.latency.time_per_output_token.*", time.Second},
			{measure.E2E, "successes.latency.request_latency.*", time.Second},
		}, stats: []string{"mean", "median", "p90", "p95", "p99", "p99.9"}, completed: "successes.count", failed: "failures.count",
			outputTokens: "successes.throughput.output_tokens_per_sec", rest: (*pointReader).inferencePerf},
		{Name: "guidellm", Reads: "the JSON report, all schema versions", Notes: []string{
			serviceTime,
			"time_per_output_token includes TTFT and is left out; TPOT is the per-request inter_token_latency, where the report holds the requests",
			"with several worker processes its Poisson gaps repeat: arrivals are burstier than Poisson",
		}, marks: []string{`"benchmarks"`, `"metrics"`}, points: "benchmarks", latencies: []latencyKeys{
			{measure.TTFT, "metrics.time_to_first_token_ms.successful.*", time.Millisecond},
			{measure.E2E, "metrics.request_latency.successful.*", time.Second},
		}, stats: []string{"mean", "percentiles.p50", "percentiles.p90", "percentiles.p95", "percentiles.p99", "percentiles.p999"},
			completed: "metrics.request_totals.successful", failed: "metrics.request_totals.errored",
			outputTokens: "metrics.output_tokens_per_second.successful.mean", rest: (*pointReader).guidellm},
		aiperf("aiperf", "profile_export_aiperf.json", []string{`"time_to_first_token"`, `"aiperf_version"`},
			serviceTime+"; a schedule that fell behind is moved, not made up for",
			"inter_token_latency is one figure a request, our TPOT; inter_chunk_latency, gaps between chunks, is left out"),
		aiperf("genai-perf", "profile_export_genai_perf.json", []string{`"time_to_first_token"`, `"request_throughput"`, `"unit"`},
			serviceTime,
			"TTFT is that of visible text: too long for models that reason first",
			"request_throughput counts failed and empty requests too and is left out"),
		{Name: "llmperf", Reads: "*_summary.json", Notes: []string{
			serviceTime,
			"a closed loop; its inter-token latency includes TTFT and is left out",
		}, marks: []string{`"results_ttft_s_quantiles_p`}, text: true, latencies: []latencyKeys{
			{measure.TTFT, "results_ttft_s_*", time.Second}, {measure.E2E, "results_end_to_end_latency_s_*", time.Second},
		}, stats: []string{"mean", "quantiles_p50", "quantiles_p90", "quantiles_p95", "quantiles_p99", "quantiles_p999"},
			completed: "results_num_completed_requests", failed: "results_number_errors",
			outputTokens: "results_mean_output_throughput_token_per_s", rest: (*pointReader).llmperf},
		servingBenchmark("sglang", "bench_serving lines of JSON", "e2e_latency", []string{`"request_throughput"`, `_e2e_latency_ms"`},
			serviceTime+", behind the concurrency limit",
			"TPOT runs to the end of the stream and reads slightly high; ITL is the gap between chunks",
			"sends drift: each gap is slept after the last send"),
		servingBenchmark("vllm", "vllm bench serve --save-result, also appended, in arrays, or of a sweep", "e2el", []string{`"request_throughput"`, `"duration"`, `"completed"`},
			serviceTime+", behind the concurrency limit",
			"ITL is the gap between chunks; arrivals are rescaled so that the last falls at n/rate",
			"the completed rate is corrected for the drain behind the last arrival"),
	}
}

// fits reports whether the beginning of a file is of the format.
func (f *ResultFormat) fits(head []byte) bool {
	if f.marks == nil {
		return isPlain(head)
	}
	return !slices.ContainsFunc(f.marks, func(mark string) bool { return !bytes.Contains(head, []byte(mark)) })
}

func isPlain(head []byte) bool {
	for line := range bytes.Lines(head) {
		text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")))
		if text != "" && !strings.HasPrefix(text, "#") {
			return !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") && strings.Contains(text, "rate_per_s")
		}
	}
	return false
}

// detect finds the format of a result file from its beginning: the more of it,
// the surer. The error lists what is read.
func detect(name string, head []byte) (*ResultFormat, error) {
	var known []string
	for _, f := range ResultFormats() {
		if f.fits(head) {
			return &f, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", f.Name, f.Reads))
	}
	return nil, &FileError{File: name, What: "no known results; read are: " + strings.Join(known, "; ")}
}

// ReadFile reads a result file as [Read] does.
func ReadFile(name string) (*Results, error) {
	data, err := input.ReadFile(name, input.Results)
	if err != nil {
		return nil, err
	}
	return Read(name, data)
}

// Read reads a result file in the format that its content shows. The first problem ends
// the reading, except in a plain CSV, where all are reported.
func Read(name string, data []byte) (*Results, error) {
	f, err := detect(name, data)
	if err != nil {
		return nil, err
	}
	p := &pointReader{name: name, format: f}
	if f.marks == nil {
		err = p.plainCSV(data)
	} else {
		err = p.documents(data)
	}
	if err != nil {
		return nil, err
	}
	if len(p.points) == 0 {
		return nil, &FileError{File: name, What: "holds no load point of " + f.Name}
	}
	r := &Results{Format: f.Name, Measurements: p.points, Warnings: slices.Concat(note.FromTexts(f.Notes), p.doubts)}
	if tooFast(r.Measurements) {
		r.Warnings = append(r.Warnings, note.New(note.TooFast))
	}
	return r, nil
}

// tooFast reports whether no request of all load points took as long as the
// fastest server does: a millisecond passes on the network alone.
func tooFast(all []measure.Measurement) bool {
	longest := time.Duration(0)
	for i := range all {
		for _, s := range []*measure.Summary{&all[i].TTFT, &all[i].E2E} {
			longest = max(longest, s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999)
		}
	}
	return longest > 0 && longest < time.Millisecond
}
