package engine

// tgi follows Text Generation Inference 3.3. It rejects requests beyond --max-concurrent-requests
// (128) instead of queueing them, so that limit is raised. Outputs may be shorter than asked for:
// it cannot ignore the end-of-sequence token.
var tgi = adapter{
	kind:     "tgi",
	releases: "Text Generation Inference 3.3",
	program:  []string{"text-generation-launcher"},
	env:      []string{"prefix_caching? PREFIX_CACHING=1", "!prefix_caching? PREFIX_CACHING=0"},
	options: []string{
		"--model-id {model} --hostname {host} --port {port}", "--num-shard {tensor_parallel}",
		"--max-batch-size {max_num_seqs}", "--max-batch-prefill-tokens {max_num_batched_tokens}",
		// A cap on the memory of the whole process; how much the KV cache gets is found during
		// warm-up.
		"--cuda-memory-fraction {gpu_memory_utilization}",
		"--max-total-tokens {max_model_len}", "--max-batch-total-tokens {kv_blocks}", "--max-concurrent-requests 16384",
	},
	formats: []string{"--quantize {quantization}", "--dtype {dtype}", "byte_kv? --kv-cache-dtype fp8_e4m3fn"},
	metrics: metricNames{
		runningRequests: {"tgi_batch_current_size"},
		waitingRequests: {"tgi_queue_size"},
		promptTokens:    {"tgi_request_input_length_sum"},
		outputTokens:    {"tgi_request_generated_tokens_sum"},
		queueSum:        {"tgi_request_queue_duration_sum"}, queueCount: {"tgi_request_queue_duration_count"},
	},
	stageEnds: map[string]string{
		"Starting shard":                    "start",
		"Server started at":                 "weights",
		"Setting max batch total tokens to": "profile",
	},
	logFacts: map[string]string{
		"kv_tokens": `Setting max batch total tokens to (\d+)`,
	},
	told: []factPlace{
		{"/info", "version", "version"}, {"/info", "model_id", "model"}, {"/info", "model_dtype", "dtype"},
		{"/info", "max_total_tokens", "max_model_len"}, {"/info", "max_batch_total_tokens", "kv_tokens"},
	},
}
