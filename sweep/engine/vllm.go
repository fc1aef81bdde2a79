package engine

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// vllm follows vLLM 0.10 to 0.33: options, metrics with prefix "vllm:", and log lines of the V1
// engine. Development mode opens the endpoint that resets the prefix cache.
var vllm = adapter{
	kind:     "vllm",
	releases: "vLLM 0.10 to 0.33",
	program:  []string{"vllm", "serve"},
	env:      []string{"PYTHONUNBUFFERED=1", "VLLM_NO_USAGE_STATS=1", "VLLM_SERVER_DEV_MODE=1"},
	tokens:   true,
	options: []string{
		"{model} --host {host} --port {port}", "--served-model-name {served_name}",
		"--tensor-parallel-size {tensor_parallel}", "--pipeline-parallel-size {pipeline_parallel}", "--data-parallel-size {data_parallel}",
		"expert_parallel? --enable-expert-parallel",
		"--max-num-seqs {max_num_seqs}", "--max-num-batched-tokens {max_num_batched_tokens}",
		// A share of all GPU memory, for weights, activations and KV cache together.
		"--gpu-memory-utilization {gpu_memory_utilization}",
		"prefix_caching? --enable-prefix-caching", "!prefix_caching? --no-enable-prefix-caching",
		"--max-model-len {max_model_len}", "--num-gpu-blocks-override {kv_blocks}",
	},
	node: `--nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" --master-addr "$MASTER_ADDR" $([ "$SLURM_NODEID" = 0 ] || echo --headless)`,
	formats: []string{"--quantization {quantization}", "--dtype {dtype}", "byte_kv? --kv-cache-dtype fp8", "--speculative-config {speculative}",
		"--all2all-backend {all2all_backend}", "dbo? --enable-dbo", "eplb? --enable-eplb",
		"--enable-lora --max-loras {lora_slots} --max-cpu-loras {lora_adapters} --max-lora-rank {lora_rank}"},
	metrics: metricNames{
		runningRequests: {"vllm:num_requests_running"},
		waitingRequests: {"vllm:num_requests_waiting"},
		kvUsage:         {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
		prefixQueries:   {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"},
		prefixHits:      {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
		preemptions:     {"vllm:num_preemptions_total"},
		promptTokens:    {"vllm:prompt_tokens_total"},
		outputTokens:    {"vllm:generation_tokens_total"},
		ttftSum:         {"vllm:time_to_first_token_seconds_sum"}, ttftCount: {"vllm:time_to_first_token_seconds_count"},
		queueSum: {"vllm:request_queue_time_seconds_sum"}, queueCount: {"vllm:request_queue_time_seconds_count"},
		tpotSum: {"vllm:request_time_per_output_token_seconds_sum"}, // since 0.11
		e2eSum:  {"vllm:e2e_request_latency_seconds_sum"},
	},
	stageEnds: map[string]string{
		"Starting to load model":   "start",
		"Loading weights took":     "weights",
		"Model loading took":       "weights",
		"GPU KV cache size:":       "profile",
		"CPU KV cache size:":       "profile",
		"Graph capturing finished": "graphs",
	},
	compiles: "JIT compilation during inference:", // since 0.26 or before, on a kernel's first compilation
	logFacts: map[string]string{
		"kv_tokens":              `KV cache size: ([\d,]+) tokens`,
		"block_tokens":           `Setting kv cache block size to (\d+) for`,
		"max_num_batched_tokens": `Chunked prefill is enabled with max_num_batched_tokens=(\d+)`,
		"max_model_len":          `Auto-fit max_model_len: reduced from \d+ to (\d+)`,
		"options":                `non-default args: (\{.*\})`,
		"weights_gib":            `Model loading took ([\d.]+) Gi?B`,
		"weights_s":              `Model loading took [\d.]+ Gi?B memory and ([\d.]+) seconds`,
		"kv_gib":                 `Available KV cache memory: ([\d.]+) Gi?B`,
		"graphs_s":               `Graph capturing finished in ([\d.]+) secs`,
		"init_s":                 `init engine .* took ([\d.]+) s`,
	},
	told:     append(slices.Clone(toldByMost), vllmConfig...),
	describe: labelsOfVLLM,
	reset: func(q *query) error {
		body, err := q.call(http.MethodPost, "/reset_prefix_cache")
		if err != nil {
			return err
		}
		// Newer releases say whether it succeeded.
		var answer struct{ Success *bool }
		if json.Unmarshal(body, &answer) == nil && answer.Success != nil && !*answer.Success {
			return errors.New("the engine says that it did not reset its prefix cache")
		}
		return nil
	},
}

// labelsOfVLLM reads the labels of the metric that holds the cache configuration: the whole
// configuration is not available if development mode is off (a server that somebody else started),
// or from releases that report it as prose.
func labelsOfVLLM(q *query) {
	metrics, err := q.call(http.MethodGet, "/metrics")
	if err != nil {
		return
	}
	for series := range parseMetrics(metrics) {
		if !strings.HasPrefix(series, "vllm:cache_config_info{") {
			continue
		}
		for _, t := range vllmConfig {
			if v := label(series, t.key[strings.LastIndexByte(t.key, '.')+1:]); v != "" && v != "None" {
				q.fact(t.fact, v)
			}
		}
	}
}

// vllmConfig is what vLLM reports of the configuration in effect, in development mode.
var vllmConfig = []factPlace{
	{vllmInfo, "vllm_config.cache_config.num_gpu_blocks", "kv_blocks"},
	{vllmInfo, "vllm_config.cache_config.block_size", "block_tokens"},
	{vllmInfo, "vllm_config.cache_config.enable_prefix_caching", "prefix_caching"},
	{vllmInfo, "vllm_config.cache_config.cache_dtype", "kv_cache_dtype"},
	{vllmInfo, "vllm_config.cache_config.gpu_memory_utilization", "gpu_memory_utilization"},
	{vllmInfo, "vllm_config.scheduler_config.max_num_seqs", "max_num_seqs"},
	{vllmInfo, "vllm_config.scheduler_config.max_num_batched_tokens", "max_num_batched_tokens"},
	{vllmInfo, "vllm_config.scheduler_config.enable_chunked_prefill", "chunked_prefill"},
	{vllmInfo, "vllm_config.scheduler_config.async_scheduling", "async_scheduling"},
	{vllmInfo, "vllm_config.scheduler_config.policy", "scheduling_policy"},
	{vllmInfo, "vllm_config.parallel_config.tensor_parallel_size", "tensor_parallel"},
	{vllmInfo, "vllm_config.parallel_config.pipeline_parallel_size", "pipeline_parallel"},
	{vllmInfo, "vllm_config.parallel_config.data_parallel_size", "data_parallel"},
	{vllmInfo, "vllm_config.model_config.max_model_len", "max_model_len"},
	{vllmInfo, "vllm_config.model_config.dtype", "dtype"},
	{vllmInfo, "vllm_config.model_config.quantization", "quantization"},
}

const vllmInfo = "/server_info?config_format=json"
