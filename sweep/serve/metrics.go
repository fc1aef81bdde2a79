package serve

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/expfmt"

	"planner/model/sim"
)

// vllmMetrics counts what the server does, as vLLM's metrics.
type vllmMetrics struct {
	registry *prometheus.Registry
	// metrics makes the page's metrics, all with the same labels.
	metrics promauto.Factory

	prompts, outputs           prometheus.Counter // tokens
	finished, stopped, aborted prometheus.Counter // requests that ended by length, by themselves, or abnormally

	ttft, itl, e2e, queue, prefill, decode prometheus.Histogram

	mu        sync.Mutex
	occupancy sim.Occupancy
}

func newMetrics(model string) *vllmMetrics {
	m := &vllmMetrics{registry: prometheus.NewRegistry()}
	m.metrics = promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"engine": "0", "model_name": model}, m.registry))
	m.gauge("num_requests_running", func(o *sim.Occupancy) float64 { return float64(o.Running) })
	m.gauge("num_requests_waiting", func(o *sim.Occupancy) float64 { return float64(o.Waiting) })
	m.gauge("kv_cache_usage_perc", func(o *sim.Occupancy) float64 { return o.KV })
	m.count("prefix_cache_queries_total", func(o *sim.Occupancy) float64 { return float64(o.Queries) })
	m.count("prefix_cache_hits_total", func(o *sim.Occupancy) float64 { return float64(o.Hits) })
	m.count("num_preemptions_total", func(o *sim.Occupancy) float64 { return float64(o.Preemptions) })
	m.prompts = m.metrics.NewCounter(prometheus.CounterOpts{Name: "vllm:prompt_tokens_total"})
	m.outputs = m.metrics.NewCounter(prometheus.CounterOpts{Name: "vllm:generation_tokens_total"})
	ended := m.metrics.NewCounterVec(prometheus.CounterOpts{Name: "vllm:request_success_total"}, []string{"finished_reason"})
	m.stopped, m.finished, m.aborted = ended.WithLabelValues("stop"), ended.WithLabelValues("length"), ended.WithLabelValues("abort")
	m.ttft, m.itl = m.histogram("time_to_first_token", ttftBounds), m.histogram("inter_token_latency", itlBounds)
	m.e2e, m.queue = m.histogram("e2e_request_latency", requestBounds), m.histogram("request_queue_time", requestBounds)
	m.prefill, m.decode = m.histogram("request_prefill_time", requestBounds), m.histogram("request_decode_time", requestBounds)
	return m
}

// now returns a function for a figure of what the backend holds and has done.
func (m *vllmMetrics) now(of func(*sim.Occupancy) float64) func() float64 {
	return func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return of(&m.occupancy)
	}
}

func (m *vllmMetrics) gauge(name string, of func(*sim.Occupancy) float64) {
	m.metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "vllm:" + name}, m.now(of))
}

func (m *vllmMetrics) count(name string, of func(*sim.Occupancy) float64) {
	m.metrics.NewCounterFunc(prometheus.CounterOpts{Name: "vllm:" + name}, m.now(of))
}

func (m *vllmMetrics) histogram(name string, bounds []float64) prometheus.Histogram {
	return m.metrics.NewHistogram(prometheus.HistogramOpts{Name: "vllm:" + name + "_seconds", Buckets: bounds})
}

func (m *vllmMetrics) describeCache(c *sim.Config) {
	caching := map[bool]string{false: "False", true: "True"}[c.PrefixCaching] // as Python writes it
	m.metrics.NewGauge(prometheus.GaugeOpts{Name: "vllm:cache_config_info", ConstLabels: prometheus.Labels{
		"block_size": strconv.Itoa(c.Layout.BlockTokens), "enable_prefix_caching": caching, "num_gpu_blocks": strconv.Itoa(c.Blocks)}}).Set(1)
}

func (m *vllmMetrics) sample(o sim.Occupancy) {
	m.mu.Lock()
	m.occupancy = o
	m.mu.Unlock()
}

// idle reports whether no request was being served at the last sample.
func (m *vllmMetrics) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.occupancy.Running == 0
}

func (m *vllmMetrics) first(r *reply, t sim.Token) {
	m.prompts.Add(float64(len(r.prompt)))
	m.queue.Observe(t.Wait.Seconds())
	m.prefill.Observe((t.At - r.Arrived - t.Wait).Seconds())
}

// token counts a token that is due, before it is added to the reply's.
func (m *vllmMetrics) token(r *reply, due time.Duration) {
	m.outputs.Inc()
	if n := len(r.Due); n > 0 {
		m.itl.Observe((due - r.Due[n-1]).Seconds())
	} else {
		m.ttft.Observe((due - r.Arrived).Seconds())
	}
}

func (m *vllmMetrics) ended(r *reply) {
	switch {
	case r.Outcome != outcomeOK:
		m.aborted.Inc()
		return
	case r.ends:
		m.stopped.Inc()
	default:
		m.finished.Inc()
	}
	last := r.Due[len(r.Due)-1]
	m.e2e.Observe((last - r.Arrived).Seconds())
	m.decode.Observe((last - r.Due[0]).Seconds())
}

func (m *vllmMetrics) expose() []byte {
	var page bytes.Buffer
	families, err := m.registry.Gather()
	for _, f := range families {
		if err == nil {
			_, err = expfmt.MetricFamilyToText(&page, f)
		}
	}
	if err != nil {
		panic("serve: " + err.Error()) // unreachable: the names are fixed, and a buffer accepts everything
	}
	return page.Bytes()
}

// The buckets of vLLM, in seconds (vllm/v1/metrics, 0.20 to 0.32).
var (
	ttftBounds    = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBounds     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)
