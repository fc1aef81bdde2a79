package serve

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"planner/model/sim"
)

// vllmMetrics counts what the server does, in the terms of vLLM's metrics.
type vllmMetrics struct {
	// labels are those of every sample, cache those that tell of the KV cache;
	// "" without one.
	labels, cache string

	mu                sync.Mutex
	occupancy         sim.Occupancy
	prompts, outputs  int // tokens
	finished, stopped int // requests that ended by length, and by themselves
	aborted           int

	ttft, itl, e2e, queue, prefill, decode *histogram
}

func newMetrics(model string) *vllmMetrics {
	return &vllmMetrics{
		labels: fmt.Sprintf(`engine="0",model_name=%s`, marshal(model)),
		ttft:   newHistogram(ttftBounds), itl: newHistogram(itlBounds), e2e: newHistogram(requestBounds),
		queue: newHistogram(requestBounds), prefill: newHistogram(requestBounds), decode: newHistogram(requestBounds),
	}
}

// describeCache tells of the KV cache of a simulated engine.
func (m *vllmMetrics) describeCache(c *sim.Config) {
	caching := "False"
	if c.PrefixCaching {
		caching = "True"
	}
	m.cache = fmt.Sprintf(`,block_size="%d",enable_prefix_caching="%s",num_gpu_blocks="%d"`, c.Layout.BlockTokens, caching, c.Blocks)
}

func (m *vllmMetrics) sample(o sim.Occupancy) {
	m.mu.Lock()
	m.occupancy = o
	m.mu.Unlock()
}

// idle reports whether no request was being served lately.
func (m *vllmMetrics) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.occupancy.Running == 0
}

func (m *vllmMetrics) first(r *reply, t sim.Token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompts += len(r.prompt)
	m.queue.observe(t.Wait)
	m.prefill.observe(t.At - r.Arrived - t.Wait)
}

// token notes a token that is due, before it is added to the reply's.
func (m *vllmMetrics) token(r *reply, due time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outputs++
	if n := len(r.Due); n > 0 {
		m.itl.observe(due - r.Due[n-1])
	} else {
		m.ttft.observe(due - r.Arrived)
	}
}

func (m *vllmMetrics) ended(r *reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Outcome != outcomeOK:
		m.aborted++
		return
	case r.ends:
		m.stopped++
	default:
		m.finished++
	}
	last := r.Due[len(r.Due)-1]
	m.e2e.observe(last - r.Arrived)
	m.decode.observe(last - r.Due[0])
}

// expose writes all metrics in Prometheus' text format 0.0.4.
func (m *vllmMetrics) expose() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &exposition{labels: m.labels}
	o := &m.occupancy
	p.value("num_requests_running", "gauge", float64(o.Running))
	p.value("num_requests_waiting", "gauge", float64(o.Waiting))
	p.value("kv_cache_usage_perc", "gauge", o.KV)
	p.value("prefix_cache_queries_total", "counter", float64(o.Queries))
	p.value("prefix_cache_hits_total", "counter", float64(o.Hits))
	p.value("num_preemptions_total", "counter", float64(o.Preemptions))
	p.value("prompt_tokens_total", "counter", float64(m.prompts))
	p.value("generation_tokens_total", "counter", float64(m.outputs))
	p.family("request_success_total", "counter")
	p.sample("request_success_total", `,finished_reason="stop"`, float64(m.stopped))
	p.sample("request_success_total", `,finished_reason="length"`, float64(m.finished))
	p.sample("request_success_total", `,finished_reason="abort"`, float64(m.aborted))
	if m.cache != "" {
		p.family("cache_config_info", "gauge")
		p.sample("cache_config_info", m.cache, 1)
	}
	p.histogram("time_to_first_token_seconds", m.ttft)
	p.histogram("inter_token_latency_seconds", m.itl)
	p.histogram("e2e_request_latency_seconds", m.e2e)
	p.histogram("request_queue_time_seconds", m.queue)
	p.histogram("request_prefill_time_seconds", m.prefill)
	p.histogram("request_decode_time_seconds", m.decode)
	return p.Bytes()
}

// exposition is the page of the metrics, every sample with the same labels.
type exposition struct {
	bytes.Buffer
	labels string
}

func (p *exposition) family(name, kind string) {
	fmt.Fprintf(p, "# TYPE vllm:%s %s\n", name, kind)
}

// sample writes integers as Python does, from which scrapers of vLLM know them.
func (p *exposition) sample(name, label string, v float64) {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if v == float64(int64(v)) && v < 1e15 {
		text = strconv.FormatFloat(v, 'f', 1, 64)
	}
	fmt.Fprintf(p, "vllm:%s{%s%s} %s\n", name, p.labels, label, text)
}

func (p *exposition) value(name, kind string, v float64) {
	p.family(name, kind)
	p.sample(name, "", v)
}

func (p *exposition) histogram(name string, h *histogram) {
	p.family(name, "histogram")
	total := 0
	for i, n := range h.counts {
		total += n
		le := "+Inf"
		if i < len(h.bounds) {
			le = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		p.sample(name+"_bucket", `,le="`+le+`"`, float64(total))
	}
	p.sample(name+"_count", "", float64(total))
	p.sample(name+"_sum", "", h.sum)
}

// The buckets of vLLM, in seconds (vllm/v1/metrics, 0.20 to 0.32).
var (
	ttftBounds    = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBounds     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// histogram counts seconds in buckets.
type histogram struct {
	bounds []float64 // upper ends, ascending
	counts []int     // one more than bounds
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(h.bounds, d.Seconds()) // a bound belongs to its bucket
	h.counts[i]++
	h.sum += d.Seconds()
}
