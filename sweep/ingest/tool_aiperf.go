package ingest

import (
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/list"
	"planner/internal/note"
)

var aiperfFormat = ResultFormat{
	Name: "aiperf", Reads: "profile_export_aiperf.json, profile_export_aiperf.csv, profile_export.jsonl, or the folder of artifacts",
	Notes: []string{
		serviceTime + "; a schedule that fell behind is moved, not made up for",
		"inter_token_latency is one figure a request, our TPOT; inter_chunk_latency, gaps between chunks, is left out",
	},
	layouts: []layout{
		{
			marks:  []string{`"aiperf_version"`, `"num_profile_runs"`},
			refuse: "averages over several runs: read profile_export_aiperf.json of each",
		},
		{marks: []string{`"timeslices"`, `"input_config"`}, refuse: "slices of a run: read its profile_export_aiperf.json"},
		// The predecessor's throughput includes failed requests.
		aiperfObject("input_token_throughput.avg", "request_throughput.avg").as(nil, `"time_to_first_token"`, `"aiperf_version"`),
		{
			marks:   []string{`"metrics"`, `"session_num"`, `"request_latency"`, `"request_start_ns"`},
			request: (*pointReader).aiperfRequest,
		},
		aiperfTable("Time to First Token (ms)", "Request Count", "Benchmark Duration (sec)"),
	},
}

var genaiPerfFormat = ResultFormat{
	Name: "genai-perf", Reads: "profile_export_genai_perf.json, profile_export_genai_perf.csv",
	Notes: []string{
		serviceTime,
		"TTFT is that of visible text: too long for models that reason first",
		"request_throughput counts failed and empty requests too and is left out",
	},
	layouts: []layout{
		aiperfObject("", "").as(nil, `"time_to_first_token"`, `"request_throughput"`, `"unit"`),
		aiperfTable("Time To First Token (ms)", "Request Count (count)", "Request Throughput (per sec)"),
	},
}

// aiperfObject is the layout of the summary of AIPerf and of its predecessor.
func aiperfObject(promptTokens, achieved string) layout {
	return layout{
		latencies: latenciesIn(0, "time_to_first_token.*", "inter_token_latency.*", "", "request_latency.*"),
		stats:     []string{"avg", "p50", "p90", "p95", "p99"},
		completed: "request_count.avg", failed: "error_request_count.avg", outputTokens: "output_token_throughput.avg",
		promptTokens: promptTokens, achieved: achieved,
		prompt: "input_sequence_length.avg", output: "output_sequence_length.avg",
		rest: (*pointReader).aiperf,
	}
}

// aiperfTable is the layout of the same summary as a table, which does not have the load. The two
// tools name their rows differently.
func aiperfTable(ttft, count, mark string) layout {
	return layout{
		marks: []string{"Metric,avg,min,max", mark, ttft}, parse: parseMetrics, text: true,
		latencies: latenciesIn(time.Millisecond, ttft+".*", "Inter Token Latency (ms).*", "", "Request Latency (ms).*"),
		stats:     []string{"avg", "p50", "p90", "p95", "p99"},
		completed: count + ".Value", failed: "Error Request Count.Value",
		outputTokens: "Output Token Throughput (tokens/sec).Value", promptTokens: "Input Token Throughput (tokens/sec).Value",
		prompt: "Input Sequence Length (tokens).avg", output: "Output Sequence Length (tokens).avg",
		achieved: "Request Throughput (requests/sec).Value", run: "Benchmark Duration (sec).Value",
		rest: func(p *pointReader, _ int) {
			// The table of a run without failures leaves these out, but still has their share.
			if p.has("Request Error Rate (%)") && !p.counted {
				p.failed(0)
			}
		},
	}
}

func (p *pointReader) aiperf(completed int) {
	m := &p.m
	if p.doc.GetBool("was_cancelled") || p.has("is_complete") && !p.doc.GetBool("is_complete") {
		m.Valid = false
		p.warn(note.RunCancelled)
	}
	if !p.counted && p.has("error_summary") {
		n := list.Sum(p.doc.GetArray("error_summary"), func(group *fastjson.Value) float64 { return group.GetFloat64("count") })
		p.failed(p.whole("error_summary", n))
	}
	if p.has("benchmark_duration") {
		p.window(p.span("benchmark_duration.avg", p.unitBeside("benchmark_duration")))
	}
	p.aiperfLoad()
	p.keptUp(completed)
}

// aiperfLoad reads the load from the configuration: since schema 1.4 from its only measured phase,
// or else from wherever a release kept it before.
func (p *pointReader) aiperfLoad() {
	input := p.doc.Get("input_config")
	rate, limit := anywhere(input, "request_rate"), anywhere(input, "concurrency")
	// perf_analyzer, which the predecessor ran, sends at even intervals unless told otherwise.
	even := p.has("input_config.perf_analyzer") || p.text("input_config.loadgen.arrival_pattern|input_config.loadgen.request_rate_mode") == "constant"
	if all := input.GetArray("phases"); len(all) > 0 {
		measured := list.Filter(all, func(v *fastjson.Value) bool {
			return !v.GetBool("exclude_from_results") && string(v.GetStringBytes("kind")) != "warmup"
		})
		if rate, limit = 0, 0; len(measured) == 1 {
			rate, limit = measured[0].GetFloat64("rate"), measured[0].GetFloat64("concurrency")
		}
		even = len(measured) == 1 && string(measured[0].GetStringBytes("type")) == "constant"
	}
	switch {
	case limit > 0:
		p.closed(p.whole("concurrency", limit))
		p.warnIf(rate > 0, note.LoopClosedBySlots)
	case rate != 0:
		p.m.Trial.Rate = rate
		p.warnIf(even, note.EvenArrivals)
	}
	p.m.Trial.Requests = p.m.Requests
}

// anywhere returns the number under a key in a configuration whose layout changed from release to
// release, the shallowest first; 0 if there is none.
func anywhere(v *fastjson.Value, key string) float64 {
	for level := []*fastjson.Value{v}; len(level) > 0; {
		var below []*fastjson.Value
		for _, v := range level {
			if x := v.GetFloat64(key); x != 0 {
				return x
			}
			v.GetObject().Visit(func(_ []byte, v *fastjson.Value) { below = append(below, v) })
		}
		level = below
	}
	return 0
}

func (p *pointReader) aiperfRequest() loggedRequest {
	r := unknownRequest()
	kind := p.text("metadata.phase_kind")
	r.left = kind == "warmup" || kind == "" && p.text("metadata.benchmark_phase") == "warmup"
	r.failed = p.has("error") || p.doc.GetBool("metadata", "was_cancelled")
	r.begin, r.end = p.seconds("metadata.request_start_ns", time.Nanosecond), p.seconds("metadata.request_end_ns", time.Nanosecond)
	if r.left || r.failed {
		return r
	}
	for name, to := range map[string]*float64{"time_to_first_token": &r.ttft, "inter_token_latency": &r.tpot, "request_latency": &r.e2e} {
		if p.has("metrics." + name) {
			*to = p.seconds("metrics."+name+".value", p.unitBeside("metrics."+name))
		}
	}
	r.prompt = p.seconds("metrics.input_sequence_length.value", time.Second)
	r.output = p.seconds("metrics.output_sequence_length.value", time.Second)
	return r
}
