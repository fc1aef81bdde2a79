package serve

import (
	"strconv"
	"sync"
	"time"

	"planner/model/sim"
)

// meter counts what the server does, in the terms of vLLM's metrics.
type meter struct {
	model               string
	blocks, blockTokens int
	prefixCaching       bool

	mu                sync.Mutex
	load              sim.Occupancy
	prompts, outputs  int // tokens
	finished, stopped int // requests that ended by length, and by themselves
	aborted           int

	histograms meterHistograms
}

type meterHistograms struct {
	first, gap, whole, queue, prefill, decode *histogram
	prompt, output                            *histogram
}

func (m *meter) init(modelLen int) {
	h := &m.histograms
	h.first = newHistogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", firstTokenBounds)
	h.gap = newHistogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", tokenGapBounds)
	h.whole = newHistogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", requestBounds)
	h.queue = newHistogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", requestBounds)
	h.prefill = newHistogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", requestBounds)
	h.decode = newHistogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", requestBounds)
	h.prompt = newHistogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", lengthBounds(modelLen))
	h.output = newHistogram("vllm:request_generation_tokens", "Number of generation tokens processed.", lengthBounds(modelLen))
}

// sample notes the state of the engine.
func (m *meter) sample(l sim.Occupancy) {
	m.mu.Lock()
	m.load = l
	m.mu.Unlock()
}

// first notes that the engine told of a request's first token.
func (m *meter) first(r *reply, t sim.Token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompts += len(r.ask.prompt)
	m.histograms.queue.observe(t.Wait.Seconds())
	m.histograms.prefill.observe((t.At - r.arrived - t.Wait).Seconds())
}

// token notes a token that is due, before it is added to the reply's.
func (m *meter) token(r *reply, due time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outputs++
	if n := len(r.due); n > 0 {
		m.histograms.gap.observe((due - r.due[n-1]).Seconds())
	} else {
		m.histograms.first.observe((due - r.arrived).Seconds())
	}
}

// ended notes the end of a reply.
func (m *meter) ended(r *reply, outcome Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(r.due)
	switch {
	case outcome != outcomeOK:
		m.aborted++
		return
	case r.ask.ends:
		m.stopped++
	default:
		m.finished++
	}
	h := &m.histograms
	h.whole.observe((r.due[n-1] - r.arrived).Seconds())
	h.decode.observe((r.due[n-1] - r.due[0]).Seconds())
	h.prompt.observe(float64(len(r.ask.prompt)))
	h.output.observe(float64(n))
}

// expose writes all metrics.
func (m *meter) expose() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := appendJSON(nil, m.model)
	x := &exposition{labels: `engine="0",model_name=` + string(name)}
	x.value("vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", float64(m.load.Running))
	x.value("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", float64(m.load.Waiting))
	x.value("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", m.load.KV)
	x.value("vllm:prefix_cache_queries_total", "counter", "Prefix cache queries, in terms of number of queried tokens.", float64(m.load.Cache.Queries))
	x.value("vllm:prefix_cache_hits_total", "counter", "Prefix cache hits, in terms of number of cached tokens.", float64(m.load.Cache.Hits))
	x.value("vllm:num_preemptions_total", "counter", "Cumulative number of preemption from the engine.", float64(m.load.Preemptions))
	x.value("vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", float64(m.prompts))
	x.value("vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", float64(m.outputs))
	x.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	x.sample("vllm:request_success_total", `finished_reason="stop"`, float64(m.stopped))
	x.sample("vllm:request_success_total", `finished_reason="length"`, float64(m.finished))
	x.sample("vllm:request_success_total", `finished_reason="abort"`, float64(m.aborted))
	if m.blocks > 0 {
		x.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
		caching := "False"
		if m.prefixCaching {
			caching = "True"
		}
		x.sample("vllm:cache_config_info", `block_size="`+strconv.Itoa(m.blockTokens)+`",enable_prefix_caching="`+caching+
			`",num_gpu_blocks="`+strconv.Itoa(m.blocks)+`"`, 1)
	}
	h := &m.histograms
	for _, h := range []*histogram{h.first, h.gap, h.whole, h.queue, h.prefill, h.decode, h.prompt, h.output} {
		x.histogram(h)
	}
	return x.b
}
