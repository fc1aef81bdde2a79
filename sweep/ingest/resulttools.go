package ingest

import (
	"math"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/note"
	"planner/sweep/measure"
)

// window sets the time that was measured.
func (p *pointReader) window(d time.Duration) { p.m.Duration, p.m.Trial.Window = d, d }

// keptUp is the completed rate of an open loop, cleared of the drain: a run
// lasts until its last request ends, which is one request behind the last
// arrival if the server kept up.
func (p *pointReader) keptUp(completed int, run, arrivals time.Duration) float64 {
	last := max(p.m.E2E.Mean, p.m.TTFT.Mean, 0)
	took := max(arrivals, run-last).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(completed) / took
}

// arrivals is how long the requests of an open loop take to arrive.
func (p *pointReader) arrivals() time.Duration {
	d, _ := duration(float64(p.m.Requests)/p.m.Trial.Rate, time.Second)
	return d
}

// servingBenchmark is the format of vllm bench serve and its relatives: one flat object.
// e2e is the tool's name for the time of the whole request.
func servingBenchmark(name, reads, e2e string, marks []string, notes ...string) ResultFormat {
	ms := time.Millisecond
	return ResultFormat{
		Name: name, Reads: reads, Notes: notes, marks: marks, text: true,
		latencies: []latencyKeys{{measure.TTFT, "*_ttft_ms", ms}, {measure.TPOT, "*_tpot_ms", ms}, {measure.ITL, "*_itl_ms", ms}, {measure.E2E, "*_" + e2e + "_ms", ms}},
		stats:     []string{"mean", "median|p50", "p90", "p95", "p99", "p99.9"},
		completed: "completed", failed: "failed", outputTokens: "output_throughput", rest: (*pointReader).servingBenchmark,
	}
}

func (p *pointReader) servingBenchmark(completed int) {
	if !p.has("request_throughput") || !p.has("completed") {
		p.fail("", "no request_throughput or no completed: not the result of a run")
		return
	}
	m := &p.m
	if _, known, _ := p.figure("failed"); !known {
		m.Failed = max(p.count("num_prompts")-completed, 0)
		m.Requests = completed + m.Failed
	}
	p.perRequest()
	p.benchmarkLoad(completed)
	// Sweeps add the settings of the server at the top level.
	k := &m.Trial.Knobs
	k.MaxNumSeqs, k.MaxNumBatchedTokens = p.count("max_num_seqs"), p.count("max_num_batched_tokens")
	k.TensorParallel = p.count("tensor_parallel_size")
	if u := p.number("gpu_memory_utilization"); u > 0 && u <= 1 {
		k.GPUMemoryUtilization = u
	}
}

// benchmarkLoad fills in the load: an open loop at a finite rate without a limit on
// concurrency, a closed loop otherwise.
func (p *pointReader) benchmarkLoad(completed int) {
	m := &p.m
	run := p.span("duration", time.Second)
	if run == 0 {
		p.fail("duration", "%g s is no duration of a run", p.number("duration"))
		return
	}
	rate, limit := p.number("request_rate"), p.count("max_concurrency")
	if rate > 0 && limit == 0 {
		m.Trial.Rate, m.Sent = rate, rate
		p.window(min(p.arrivals(), run))
		m.Achieved = p.keptUp(completed, run, p.arrivals())
		return
	}
	p.window(run)
	m.Achieved = float64(completed) / run.Seconds()
	m.Trial.Concurrency, m.Trial.Requests = limit, m.Requests
	switch {
	case rate > 0:
		p.warn(note.LoopClosedByLimit, rate, limit)
	case limit == 0:
		m.Trial.Concurrency = m.Requests
		p.warn(note.SentAtOnce, m.Requests)
	}
}

// perRequest takes the statistics over the requests themselves where the file
// holds them, in seconds. Failed ones are in the lists with zeros.
func (p *pointReader) perRequest() {
	first, gaps, outputs, whole := p.figures("ttfts"), p.figures("itls"), p.figures("output_lens"), p.figures("latencies")
	if len(first) == 0 || len(gaps) != len(first) || len(outputs) != len(first) {
		return
	}
	var ttft, tpot, e2e []time.Duration
	for i := range first {
		if len(first[i]) != 1 || len(outputs[i]) != 1 || outputs[i][0] != math.Trunc(outputs[i][0]) {
			p.fail("ttfts", "not a list of figures, one a request")
			return
		}
		if outputs[i][0] <= 0 || first[i][0] <= 0 {
			continue
		}
		end := first[i][0]
		for _, gap := range gaps[i] {
			end += gap
		}
		if len(whole) == len(first) && len(whole[i]) == 1 && whole[i][0] > 0 {
			end = whole[i][0]
		}
		begun, ok1 := duration(first[i][0], time.Second)
		ended, ok2 := duration(end, time.Second)
		if !ok1 || !ok2 || ended < begun {
			p.fail("ttfts", "request %d: first token at %g s, last at %g s", i+1, first[i][0], end)
			return
		}
		ttft, e2e = append(ttft, begun), append(e2e, ended)
		if n := outputs[i][0]; n > 1 && n < math.MaxInt64 {
			tpot = append(tpot, (ended-begun)/time.Duration(n-1))
		}
	}
	summarize(&p.m.TTFT, ttft)
	summarize(&p.m.TPOT, tpot)
	summarize(&p.m.E2E, e2e)
}

// llmperf reads a closed loop.
func (p *pointReader) llmperf(completed int) {
	m := &p.m
	if m.Achieved = p.number("results_num_completed_requests_per_min") / 60; m.Achieved > 0 {
		run, _ := duration(float64(completed)/m.Achieved, time.Second)
		p.window(run)
	}
	m.Trial.Concurrency, m.Trial.Requests = p.count("num_concurrent_requests"), m.Requests
}

func (p *pointReader) guidellm(int) {
	m := &p.m
	if p.count("metrics.request_totals.incomplete") > 0 {
		p.warn(note.OpenLeftOut)
	}
	// The quantiles of the report's own summary are over tokens, not requests.
	var tpot []time.Duration
	for _, r := range p.doc.GetArray("requests", "successful") {
		if d, ok := duration(r.GetFloat64("inter_token_latency_ms"), time.Millisecond); ok && d > 0 {
			tpot = append(tpot, d)
		}
	}
	summarize(&m.TPOT, tpot)
	m.Achieved = p.number("metrics.requests_per_second.successful.mean")
	if p.window(p.span("duration", time.Second)); !p.has("duration") {
		// So up to version 0.3, as the strategy below.
		run, _ := duration(p.number("run_stats.end_time")-p.number("run_stats.start_time"), time.Second)
		p.window(run)
	}
	strategy := "config.strategy."
	if !p.has(strategy + "type_") {
		strategy = "args.strategy."
	}
	kind := p.text(strategy + "type_")
	switch kind {
	case "constant", "poisson", "async":
		m.Trial.Rate = p.number(strategy + "rate")
		if kind != "poisson" {
			p.warn(note.EvenArrivals)
		}
	case "synchronous":
		m.Trial.Concurrency = 1
	case "concurrent":
		m.Trial.Concurrency = p.count(strategy + "streams")
	case "throughput":
		m.Trial.Concurrency = p.count(strategy + "max_concurrency")
		p.warn(note.Flood)
	}
	m.Trial.Requests = m.Requests
}

// aiperf is the format of AIPerf and of its predecessor.
func aiperf(name, reads string, marks []string, notes ...string) ResultFormat {
	return ResultFormat{
		Name: name, Reads: reads, Notes: notes, marks: marks,
		latencies: []latencyKeys{{measure.TTFT, "time_to_first_token.*", 0}, {measure.TPOT, "inter_token_latency.*", 0}, {measure.E2E, "request_latency.*", 0}},
		stats:     []string{"avg", "p50", "p90", "p95", "p99"},
		completed: "request_count.avg", failed: "error_request_count.avg", outputTokens: "output_token_throughput.avg", rest: (*pointReader).aiperf,
	}
}

func (p *pointReader) aiperf(completed int) {
	m := &p.m
	if p.doc.GetBool("was_cancelled") {
		m.Valid = false
		p.warn(note.RunCancelled)
	}
	if !p.has("error_request_count") {
		for _, group := range p.doc.GetArray("error_summary") {
			m.Failed += group.GetInt("count")
		}
		m.Requests = completed + m.Failed
	}
	if p.has("benchmark_duration") {
		p.window(p.span("benchmark_duration.avg", p.unitBeside("benchmark_duration")))
	}
	rate, limit := anywhere(p.doc.Get("input_config"), "request_rate"), anywhere(p.doc.Get("input_config"), "concurrency")
	switch {
	case limit > 0:
		m.Trial.Concurrency = p.whole("concurrency", limit)
		if rate > 0 {
			p.warn(note.LoopClosedBySlots)
		}
	case rate > 0:
		m.Trial.Rate = rate
	}
	m.Trial.Requests = m.Requests
	// The throughput of the predecessor counts failed requests too.
	if !p.has("aiperf_version") {
		return
	}
	if m.Achieved = p.number("request_throughput.avg"); m.Achieved > 0 && m.Trial.Rate > 0 && m.Duration > 0 {
		m.Achieved = p.keptUp(completed, m.Duration, p.arrivals())
	}
}

// anywhere finds the number of a key in a configuration whose layout changed from
// release to release, the shallowest first; 0 if there is none.
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

// lateSend is the send lag beyond which a client, not the server, is measured;
// inference-perf's own documentation asks for less.
const lateSend = 10 * time.Millisecond

func (p *pointReader) inferencePerf(completed int) {
	m := &p.m
	m.Trial.Rate, m.Sent = p.number("load_summary.requested_rate"), p.number("load_summary.achieved_rate")
	if m.Trial.Rate == 0 {
		m.Trial.Concurrency, m.Trial.Requests = p.count("load_summary.concurrency"), m.Requests
	}
	run := p.span("benchmark_time_seconds", time.Second)
	if rate := p.number("successes.throughput.requests_per_sec"); !p.has("benchmark_time_seconds") && rate > 0 {
		// Reports without the time of the run hold the rate over it.
		run, _ = duration(float64(completed)/rate, time.Second)
	}
	// The window is that of the arrivals in an open loop.
	switch sending := p.span("load_summary.send_duration", time.Second); {
	case sending > 0 && m.Trial.Rate > 0:
		p.window(sending)
		if run > 0 {
			m.Achieved = p.keptUp(completed, run, sending)
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
