package engine

import (
	"net/http"
	"slices"
)

// sglang follows SGLang 0.5 (main of 2026-07). Its health endpoint would
// generate a token at each call unless told not to.
var sglang = adapter{
	kind:     "sglang",
	releases: "SGLang 0.5",
	program:  []string{"python3", "-m", "sglang.launch_server"},
	env:      []string{"PYTHONUNBUFFERED=1", "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=false"},
	tokens:   true,
	options: []string{
		"--model-path {model} --host {host} --port {port} --enable-metrics", "--served-model-name {served_name}",
		"--tp-size {tensor_parallel}", "--pp-size {pipeline_parallel}", "--dp-size {data_parallel}", "expert_parallel? --ep-size {tensor_parallel}",
		"--max-running-requests {max_num_seqs}", "--chunked-prefill-size {max_num_batched_tokens}",
		// A share of all GPU memory, for weights and KV cache; activations and graphs use the rest.
		"--mem-fraction-static {gpu_memory_utilization}",
		"!prefix_caching? --disable-radix-cache", "--context-length {max_model_len}",
		// Its pool is counted in tokens: a page is one token unless the attention backend needs
		// more.
		"--max-total-tokens {kv_blocks}",
	},
	node: `--nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" --dist-init-addr "$MASTER_ADDR:20000"`,
	// fp8_e4m3 is what vLLM means by fp8.
	formats: []string{"--quantization {quantization}", "--dtype {dtype}", "byte_kv? --kv-cache-dtype fp8_e4m3",
		"all2all_backend? --moe-a2a-backend {moe_a2a_backend}", "--deepep-mode {deepep_mode}", "dbo? --enable-two-batch-overlap", "eplb? --enable-eplb"},
	metrics: metricNames{
		runningRequests: {"sglang:num_running_reqs"},
		waitingRequests: {"sglang:num_queue_reqs"},
		kvUsage:         {"sglang:token_usage"},
		prefixQueries:   {"sglang:prompt_tokens_total"},
		prefixHits:      {"sglang:cached_tokens_total"},
		preemptions:     {"sglang:num_retracted_requests_total", "sglang:num_retracted_reqs"},
		promptTokens:    {"sglang:prompt_tokens_total"},
		outputTokens:    {"sglang:generation_tokens_total"},
		ttftSum:         {"sglang:time_to_first_token_seconds_sum"}, ttftCount: {"sglang:time_to_first_token_seconds_count"},
		queueSum: {"sglang:queue_time_seconds_sum"}, queueCount: {"sglang:queue_time_seconds_count"},
		e2eSum: {"sglang:e2e_request_latency_seconds_sum"},
	},
	stageEnds: map[string]string{
		"Load weight begin":      "start",
		"Load weight end":        "weights",
		"KV Cache is allocated":  "profile",
		"Capture cuda graph end": "graphs",
	},
	logFacts: map[string]string{
		"kv_tokens":              `max_total_num_tokens=(\d+)`,
		"max_num_batched_tokens": `max_total_num_tokens=.*chunked_prefill_size=(\d+)`,
		"max_num_seqs":           `max_total_num_tokens=.*max_running_requests=(\d+)`,
		"max_model_len":          `max_total_num_tokens=.*context_len=(\d+)`,
	},
	told: append(slices.Clone(toldByMost[1:]), []factPlace{
		{"/get_server_info", "version", "version"}, {"/get_server_info", "max_total_num_tokens", "kv_tokens"},
		{"/get_server_info", "page_size", "block_tokens"}, {"/get_server_info", "mem_fraction_static", "gpu_memory_utilization"},
		{"/get_server_info", "kv_cache_dtype", "kv_cache_dtype"}, {"/get_server_info", "quantization", "quantization"},
		{"/get_server_info", "dtype", "dtype"}, {"/get_server_info", "!disable_radix_cache", "prefix_caching"},
	}...),
	reset: func(q *query) error {
		_, err := q.call(http.MethodPost, "/flush_cache")
		return err
	},
}

// sglangExchange are SGLang's values for vLLM's --all2all-backend; without one it gathers all tokens.
var sglangExchange = map[string]map[string]string{
	"deepep_high_throughput": {"moe_a2a_backend": "deepep", "deepep_mode": "normal"},
	"deepep_low_latency":     {"moe_a2a_backend": "deepep", "deepep_mode": "low_latency"},
	"flashinfer_all2allv":    {"moe_a2a_backend": "flashinfer"},
}
