package engine

import "strconv"

// sglang follows SGLang 0.5 (main of 2026-07). Its health endpoint would
// generate a token at each call unless told not to.
var sglang = adapter{
	kind:    "sglang",
	program: []string{"python3", "-m", "sglang.launch_server"},
	env:     []string{"PYTHONUNBUFFERED=1", "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=false"},
	health:  "/health",
	tokens:  true,
	arguments: func(d *draft) {
		k := d.knobs
		d.add("--model-path", d.settings.Model, "--host", loopback, "--port", strconv.Itoa(d.port), "--enable-metrics")
		d.text("--served-model-name", d.settings.ServedName)
		d.degree("--tp-size", k.TensorParallel)
		d.degree("--pp-size", k.PipelineParallel)
		d.degree("--dp-size", k.DataParallel)
		if k.ExpertParallel {
			d.number("--ep-size", k.TensorParallel)
		}
		d.number("--max-running-requests", k.MaxNumSeqs)
		d.number("--chunked-prefill-size", k.MaxNumBatchedTokens)
		// A share of all GPU memory, for weights and KV cache; activations and graphs
		// live in the rest.
		d.share("--mem-fraction-static", k.GPUMemoryUtilization)
		d.flag(k.PrefixCaching, "", "--disable-radix-cache")
		d.number("--context-length", k.MaxModelLen)
		// Its pool counts tokens: a page is one token unless the attention
		// backend wants more.
		d.number("--max-total-tokens", k.KVBlocks)
	},
	stored: func(d *draft) {
		f := d.settings.Format
		d.when(f.quantised("fp8"), "--quantization", "fp8")
		d.text("--dtype", f.dtype())
		// The fp8 that vLLM means by the name alone.
		d.when(f.oneByteKV(), "--kv-cache-dtype", "fp8_e4m3")
		d.checkpointOnly(true, "fp8")
	},
	scrape: scrape{path: "/metrics", series: series{
		running:     []string{"sglang:num_running_reqs"},
		waiting:     []string{"sglang:num_queue_reqs"},
		kv:          []string{"sglang:token_usage"},
		queries:     []string{"sglang:prompt_tokens_total"},
		hits:        []string{"sglang:cached_tokens_total"},
		preemptions: []string{"sglang:num_retracted_requests_total", "sglang:num_retracted_reqs"},
		prompt:      []string{"sglang:prompt_tokens_total"},
		generated:   []string{"sglang:generation_tokens_total"},
		ttft:        "sglang:time_to_first_token_seconds",
		queue:       "sglang:queue_time_seconds",
	}},
	marks: []mark{
		{"Load weight begin", "start"},
		{"Load weight end", "weights"},
		{"KV Cache is allocated", "profile"},
		{"Capture cuda graph end", "graphs"},
	},
	notes: []note{
		noteOf("kv_tokens", `max_total_num_tokens=(\d+)`),
		noteOf("max_num_batched_tokens", `max_total_num_tokens=.*chunked_prefill_size=(\d+)`),
		noteOf("max_num_seqs", `max_total_num_tokens=.*max_running_requests=(\d+)`),
		noteOf("max_model_len", `max_total_num_tokens=.*context_len=(\d+)`),
	},
	describe: func(q *question) {
		q.models()
		info := q.object("/get_server_info")
		q.copy(info, "version", "version")
		q.copy(info, "max_total_num_tokens", "kv_tokens")
		q.copy(info, "page_size", "block_tokens")
		q.copy(info, "mem_fraction_static", "gpu_memory_utilization")
		q.copy(info, "kv_cache_dtype", "kv_cache_dtype")
		q.copy(info, "quantization", "quantization")
		q.copy(info, "dtype", "dtype")
		q.unquantised(info)
		if off, ok := info["disable_radix_cache"].(bool); ok {
			q.fact("prefix_caching", strconv.FormatBool(!off))
		}
	},
	reset: func(q *question) error {
		_, err := q.post("/flush_cache", nil)
		return err
	},
}
