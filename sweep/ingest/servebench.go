package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"planner/sweep/measure"
)

// flatResult is a result file of one flat object, as vllm bench serve and its
// relatives write.
type flatResult map[string]json.RawMessage

// number is a figure of the file; nil for one that is missing, null or no
// number. Numbers in strings count: metadata is written that way.
func (f flatResult) number(key string) *float64 {
	raw, ok := f[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	var v float64
	if json.Unmarshal(raw, &v) == nil {
		return &v
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if v, err := strconv.ParseFloat(s, 64); err == nil && v-v == 0 {
			return &v
		}
	}
	return nil
}

// statistic is a latency of the file; one that is there but is no number has no value.
func (f flatResult) statistic(key string) statistic {
	v := f.number(key)
	return statistic{v, f[key] != nil && v == nil}
}

func (f flatResult) orZero(key string) float64 {
	if v := f.number(key); v != nil {
		return *v
	}
	return 0
}

// flatStats are the statistics of flat results: their quantile and the prefix
// of their keys.
var flatStats = []struct {
	quantile float64
	prefix   string
}{{0, "mean"}, {0.50, "median"}, {0.50, "p50"}, {0.90, "p90"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p99.9"}}

func (p *pointReader) vllm(document []byte)   { p.flat(document, "e2el") }
func (p *pointReader) sglang(document []byte) { p.flat(document, "e2e_latency") }

// flat reads one flat result. e2e is the tool's name for the time of the whole
// request.
func (p *pointReader) flat(document []byte, e2e string) {
	var f flatResult
	if !p.decode(document, &f) {
		return
	}
	if f["request_throughput"] == nil || f["completed"] == nil {
		p.fail("", "no request_throughput or no completed: not the result of a run")
		return
	}
	m := newMeasurement()
	for i, name := range []string{"ttft", "tpot", "itl", e2e} {
		for _, s := range flatStats {
			key := s.prefix + "_" + name + "_ms"
			p.set(m.Latency(measure.TTFT+measure.Metric(i)), key, s.quantile, f.statistic(key), time.Millisecond)
		}
	}
	completed := p.whole("completed", f.number("completed"))
	m.Failed = p.whole("failed", f.number("failed"))
	if asked := p.whole("num_prompts", f.number("num_prompts")); f.number("failed") == nil && asked > completed {
		m.Failed = asked - completed
	}
	m.Requests = completed + m.Failed
	m.TTFT.N, m.TPOT.N, m.E2E.N = completed, completed, completed
	m.OutputTokens = f.orZero("output_throughput")
	p.flatRequests(&m, f)
	p.flatLoad(&m, f, completed)
	f.knobs(p, &m.Trial.Knobs)
	p.add(m)
}

// flatLoad fills in the load: an open loop at a finite rate without a limit on
// concurrency, a closed loop otherwise.
func (p *pointReader) flatLoad(m *measure.Measurement, f flatResult, completed int) {
	run, ok := duration(f.orZero("duration"), time.Second)
	if !ok || run == 0 {
		p.fail("duration", "%s s is no duration of a run", f["duration"])
		return
	}
	rate := f.orZero("request_rate")
	limit := p.whole("max_concurrency", f.number("max_concurrency"))
	if rate > 0 && limit == 0 {
		m.Trial.Rate = rate
		arrivals, _ := duration(float64(m.Requests)/rate, time.Second)
		m.Duration, m.Trial.Window = min(arrivals, run), min(arrivals, run)
		m.Achieved = keptUp(completed, run, arrivals, lastRequest(m))
		m.Sent = rate
		return
	}
	m.Duration, m.Trial.Window, m.Achieved = run, run, float64(completed)/run.Seconds()
	m.Trial.Concurrency, m.Trial.Requests = limit, m.Requests
	switch {
	case rate > 0:
		m.Warnings = append(m.Warnings, fmt.Sprintf("a rate of %g/s behind a limit of %d in flight is a closed loop: requests waited in the client", rate, limit))
	case limit == 0:
		m.Trial.Concurrency = m.Requests
		m.Warnings = append(m.Warnings, fmt.Sprintf("all %d requests were sent at once: latencies are those of a burst", m.Requests))
	}
}

// keptUp is the completed rate of an open loop, cleared of the drain: a run
// lasts until its last request ends, which is one request behind the last
// arrival if the server kept up.
func keptUp(completed int, run, arrivals, last time.Duration) float64 {
	took := max(arrivals, run-last).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(completed) / took
}

// lastRequest is how long one request takes, by its mean; 0 if unknown.
func lastRequest(m *measure.Measurement) time.Duration {
	return max(m.E2E.Mean, m.TTFT.Mean, 0)
}

// knobs fills in the settings that sweeps add at the top level.
func (f flatResult) knobs(p *pointReader, k *measure.Knobs) {
	k.MaxNumSeqs = p.whole("max_num_seqs", f.number("max_num_seqs"))
	k.MaxNumBatchedTokens = p.whole("max_num_batched_tokens", f.number("max_num_batched_tokens"))
	k.TensorParallel = p.whole("tensor_parallel_size", f.number("tensor_parallel_size"))
	if u := f.orZero("gpu_memory_utilization"); u > 0 && u <= 1 {
		k.GPUMemoryUtilization = u
	}
}

// flatRequests takes the statistics over the requests themselves where the file
// holds them, in seconds. Failed ones are in the lists with zeros.
func (p *pointReader) flatRequests(m *measure.Measurement, f flatResult) {
	var ttfts, latencies []float64
	var gaps [][]float64
	var outputs []int
	for _, list := range []struct {
		key  string
		into any
	}{{"ttfts", &ttfts}, {"itls", &gaps}, {"output_lens", &outputs}, {"latencies", &latencies}} {
		raw, ok := f[list.key]
		if bytes.Contains(raw, []byte("null")) && string(raw) != "null" {
			p.leaveOut("entries of " + list.key)
		}
		if ok && json.Unmarshal(raw, list.into) != nil {
			p.fail(list.key, "not a list of figures, one a request")
			return
		}
	}
	if len(ttfts) == 0 || len(gaps) != len(ttfts) || len(outputs) != len(ttfts) {
		return
	}
	var ttft, tpot, e2e []time.Duration
	for i := range ttfts {
		if outputs[i] <= 0 || ttfts[i] <= 0 {
			continue
		}
		whole := ttfts[i]
		for _, g := range gaps[i] {
			whole += g
		}
		if len(latencies) == len(ttfts) && latencies[i] > 0 {
			whole = latencies[i]
		}
		first, ok1 := duration(ttfts[i], time.Second)
		last, ok2 := duration(whole, time.Second)
		if !ok1 || !ok2 || last < first {
			p.fail("ttfts", "request %d: first token at %g s, last at %g s", i+1, ttfts[i], whole)
			return
		}
		ttft, e2e = append(ttft, first), append(e2e, last)
		if outputs[i] > 1 {
			tpot = append(tpot, (last-first)/time.Duration(outputs[i]-1))
		}
	}
	summarize(&m.TTFT, ttft)
	summarize(&m.TPOT, tpot)
	summarize(&m.E2E, e2e)
}
