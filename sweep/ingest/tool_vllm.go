package ingest

import (
	"math"
	"time"

	"planner/internal/note"
)

var vllmFormat = ResultFormat{
	Name: "vllm", Reads: "vllm bench serve --save-result, also detailed, appended, in arrays, or a folder or summary.csv of vllm bench sweep",
	Notes: []string{
		serviceTime + ", behind the concurrency limit",
		"ITL is the gap between chunks; arrivals are rescaled so that the last falls at n/rate",
		"the completed rate is corrected for the drain behind the last arrival",
	},
	layouts: []layout{
		servingBenchmark("e2el", "").as(nil, `"request_throughput"`, `"duration"`, `"completed"`),
		servingBenchmark("e2el", "").as(parseRows, "request_throughput", "duration", "completed", "max_concurrency", ","),
	},
}

var sglangFormat = ResultFormat{
	Name: "sglang", Reads: "bench_serving lines of JSON, also with --output-details",
	Notes: []string{
		serviceTime + ", behind the concurrency limit",
		"TPOT runs to the end of the stream and reads slightly high; ITL is the gap between chunks",
		"sends drift: each gap is slept after the last send",
	},
	layouts: []layout{servingBenchmark("e2e_latency", "input_throughput").as(nil, `"request_throughput"`, `_e2e_latency_ms"`)},
}

// servingBenchmark is the layout of vllm bench serve and its relatives: one flat object. e2e is the
// tool's name for the time of the whole request, promptTokens that for the rate of prompt tokens.
func servingBenchmark(e2e, promptTokens string) layout {
	return layout{
		text: true, latencies: latenciesIn(time.Millisecond, "*_ttft_ms", "*_tpot_ms", "*_itl_ms", "*_"+e2e+"_ms"),
		stats:     []string{"mean", "median|p50", "p90", "p95", "p99", "p99.9"},
		completed: "completed", failed: "failed", outputTokens: "output_throughput", promptTokens: promptTokens, achieved: "request_throughput",
		rest: (*pointReader).servingBenchmark,
	}
}

func (p *pointReader) servingBenchmark(completed int) {
	if !p.has("request_throughput") {
		p.fail("request_throughput", "is missing: not the result of a run")
		return
	}
	if sent := p.count("num_prompts"); !p.counted && sent > 0 {
		p.failed(max(sent-completed, 0))
	}
	p.lists(completed)
	p.benchmarkLoad(completed)
	// Sweeps add the settings of the server at the top level.
	k := &p.m.Trial.Knobs
	k.MaxNumSeqs, k.MaxNumBatchedTokens = p.count("max_num_seqs"), p.count("max_num_batched_tokens")
	k.TensorParallel = p.count("tensor_parallel_size")
	if u := p.number("gpu_memory_utilization"); u > 0 && u <= 1 {
		k.GPUMemoryUtilization = u
	}
}

// agreement is the relative difference that a file's rate may have from its count over its time:
// tools round.
const agreement = 0.02

// benchmarkLoad fills in the load: an open loop at a finite rate without a limit on concurrency,
// none for a ramped rate or a trace, a closed loop otherwise.
func (p *pointReader) benchmarkLoad(completed int) {
	m := &p.m
	run := p.span("duration", time.Second)
	if run == 0 {
		p.fail("duration", "%g s is no duration of a run", p.number("duration"))
		return
	}
	all := float64(completed) / run.Seconds()
	said := p.number("request_throughput")
	p.failIf(math.Abs(said-all) > agreement*all, "request_throughput", "%g/s are not the %d completed requests in %g s: the file was changed", said, completed, run.Seconds())
	if tokens := p.count("total_input_tokens"); tokens > 0 && math.IsNaN(m.PromptTokens) {
		m.PromptTokens, m.MeanPrompt = float64(tokens)/run.Seconds(), float64(tokens)/float64(completed)
	}
	rate, limit := p.number("request_rate"), p.count("max_concurrency")
	if ramped := p.has("ramp_up_strategy"); ramped || p.text("request_rate") == "trace" {
		p.window(run)
		m.Achieved = all
		p.warnIf(ramped, note.RateRamped, p.number("ramp_up_start_rps"), p.number("ramp_up_end_rps"))
		return
	}
	if rate > 0 && limit == 0 {
		m.Trial.Rate, m.Sent = rate, rate
		p.warnIf(p.number("burstiness") > 1, note.EvenArrivals)
		p.window(min(p.arrivals(), run))
		m.Achieved = p.drained(completed, run, p.arrivals())
		return
	}
	p.window(run)
	m.Achieved = all
	switch {
	case rate > 0:
		p.warn(note.LoopClosedByLimit, rate, limit)
	case limit == 0:
		limit = m.Requests
		p.warn(note.SentAtOnce, m.Requests)
	}
	p.closed(limit)
}

// lists computes what the summary leaves out from the lists of requests, with times in seconds, if
// the file has them. Failed requests are in the lists with zeros, or with an error.
func (p *pointReader) lists(completed int) {
	columns := map[string][][]float64{}
	longest, length := "", 0
	names := []string{"ttfts", "itls", "output_lens", "latencies"}
	for _, name := range names {
		columns[name] = p.column(name)
		if n := len(columns[name]); n > length {
			longest, length = name, n
		}
	}
	if length == 0 {
		return
	}
	if !p.counted && length >= completed {
		p.failed(length - completed)
	}
	for _, name := range names {
		n := len(columns[name])
		p.failIf(p.has(name) && n != length, name, "%d entries, and %d in %s: the lists are not of one run", n, length, longest)
		p.failIf(p.has(name) && n != p.m.Requests, name, "%d entries for %d requests: the list is cut, or of another run", n, p.m.Requests)
	}
	if len(p.problems) > 0 {
		return
	}
	errors := p.doc.GetArray("errors")
	for i := range length {
		if i < len(errors) && len(errors[i].GetStringBytes()) > 0 {
			continue
		}
		r := requestOf(columns, i)
		if r.e2e < r.ttft {
			p.fail(longest, "request %d: %g s to its first token, %g s to its last", i+1, r.ttft, r.e2e)
			return
		}
		p.take(r)
	}
	p.all.summarize(&p.m)
}

func requestOf(columns map[string][][]float64, i int) loggedRequest {
	r := unknownRequest()
	cell := func(name string) float64 {
		if all := columns[name]; i < len(all) && len(all[i]) == 1 && all[i][0] > 0 {
			return all[i][0]
		}
		return math.NaN()
	}
	r.ttft, r.e2e, r.output = cell("ttfts"), cell("latencies"), cell("output_lens")
	if gaps := columns["itls"]; math.IsNaN(r.e2e) && i < len(gaps) && r.output > 0 {
		r.e2e = r.ttft
		for _, gap := range gaps[i] {
			r.e2e += gap
		}
	}
	r.tpot = r.pace()
	return r
}
