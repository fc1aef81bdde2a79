package engine

// trtllm follows trtllm-serve of TensorRT-LLM 1.x with the PyTorch backend. It takes block reuse
// and the number formats from a YAML file only, and quantised weights only from checkpoints that
// hold them (NVIDIA's ModelOpt makes these).
var trtllm = adapter{
	kind:     "trtllm",
	releases: "TensorRT-LLM 1.x, PyTorch backend",
	program:  []string{"trtllm-serve"},
	env:      []string{"PYTHONUNBUFFERED=1"},
	tokens:   true,
	options: []string{
		"{model} --host {host} --port {port}",
		"--tp_size {tensor_parallel}", "--pp_size {pipeline_parallel}", "expert_parallel? --ep_size {tensor_parallel}",
		"--max_batch_size {max_num_seqs}", "--max_num_tokens {max_num_batched_tokens}",
		// The share for the KV cache of the memory that is free once weights and buffers are
		// allocated.
		"--kv_cache_free_gpu_memory_fraction {gpu_memory_utilization}",
		"--max_seq_len {max_model_len}", "--enable_chunked_prefill", "--extra_llm_api_options {file}",
	},
	content: []string{
		"enable_iter_perf_stats: true", "kv_cache_config:", "  enable_block_reuse: {prefix_caching}", "byte_kv?   dtype: fp8", "dtype: {dtype}",
	},
	metrics: metricNames{}, // it reports its iterations instead
	stageEnds: map[string]string{
		"Loading model":    "start",
		"Model init total": "weights",
		"Max KV cache":     "profile",
	},
	logFacts: map[string]string{
		"kv_blocks":    `Number of blocks in KV cache primary pool: (\d+)`,
		"block_tokens": `tokens per block: (\d+)`,
	},
	told: toldByMost,
}
