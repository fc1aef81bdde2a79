package engine

// lmdeploy follows LMDeploy of 2026-08 with its default back end, TurboMind, which quantises a KV
// cache to integers only. Its prefix cache is off by default.
var lmdeploy = adapter{
	kind:     "lmdeploy",
	releases: "LMDeploy of 2026, TurboMind",
	program:  []string{"lmdeploy", "serve", "api_server"},
	env:      []string{"PYTHONUNBUFFERED=1"},
	options: []string{
		"{model} --server-name {host} --server-port {port}", "--model-name {served_name}",
		"--tp {tensor_parallel}", "--dp {data_parallel}", "expert_parallel? --ep {tensor_parallel}",
		"--max-batch-size {max_num_seqs}", "--max-prefill-token-num {max_num_batched_tokens}",
		// The share for the KV cache of the memory that is free once the weights are loaded.
		"--cache-max-entry-count {gpu_memory_utilization}",
		"prefix_caching? --enable-prefix-caching", "--session-len {max_model_len}",
	},
	formats: []string{"--dtype {dtype}", "byte_kv? --quant-policy 8"},
	kvCache: "integers of 8 bits",
	metrics: metricNames{
		runningRequests: {"lmdeploy:num_requests_running"},
		waitingRequests: {"lmdeploy:num_requests_waiting"},
		kvUsage:         {"lmdeploy:gpu_cache_usage_perc"},
		promptTokens:    {"lmdeploy:prompt_tokens_total"},
		outputTokens:    {"lmdeploy:generation_tokens_total"},
		ttftSum:         {"lmdeploy:time_to_first_token_seconds_sum"}, ttftCount: {"lmdeploy:time_to_first_token_seconds_count"},
		queueSum: {"lmdeploy:request_queue_time_seconds_sum"}, queueCount: {"lmdeploy:request_queue_time_seconds_count"},
		e2eSum: {"lmdeploy:e2e_request_latency_seconds_sum"},
	},
	stageEnds: map[string]string{
		"Application startup complete": "weights",
	},
	told: toldByMost,
}
