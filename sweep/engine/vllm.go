package engine

import (
	"encoding/json"
	"errors"
	"strconv"
)

// vllm follows vLLM 0.10 to 0.32: options, metrics with prefix "vllm:", and log
// lines of the V1 engine. Development mode opens the endpoint that resets the
// prefix cache.
var vllm = adapter{
	kind:    "vllm",
	program: []string{"vllm", "serve"},
	env:     []string{"PYTHONUNBUFFERED=1", "VLLM_NO_USAGE_STATS=1", "VLLM_SERVER_DEV_MODE=1"},
	health:  "/health",
	tokens:  true,
	arguments: func(d *draft) {
		k := d.knobs
		d.add(d.settings.Model, "--host", loopback, "--port", strconv.Itoa(d.port))
		d.text("--served-model-name", d.settings.ServedName)
		d.degree("--tensor-parallel-size", k.TensorParallel)
		d.degree("--pipeline-parallel-size", k.PipelineParallel)
		d.degree("--data-parallel-size", k.DataParallel)
		d.flag(k.ExpertParallel, "--enable-expert-parallel", "")
		d.number("--max-num-seqs", k.MaxNumSeqs)
		d.number("--max-num-batched-tokens", k.MaxNumBatchedTokens)
		// A share of all GPU memory, for weights, activations and KV cache together.
		d.share("--gpu-memory-utilization", k.GPUMemoryUtilization)
		d.flag(k.PrefixCaching, "--enable-prefix-caching", "--no-enable-prefix-caching")
		d.number("--max-model-len", k.MaxModelLen)
		d.number("--num-gpu-blocks-override", k.KVBlocks)
	},
	stored: func(d *draft) {
		f := d.settings.Format
		d.when(f.quantised("fp8"), "--quantization", "fp8")
		d.text("--dtype", f.dtype())
		d.when(f.oneByteKV(), "--kv-cache-dtype", "fp8")
		d.checkpointOnly(true, "fp8")
	},
	scrape: scrape{path: "/metrics", series: series{
		running:     []string{"vllm:num_requests_running"},
		waiting:     []string{"vllm:num_requests_waiting"},
		kv:          []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
		queries:     []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"},
		hits:        []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
		preemptions: []string{"vllm:num_preemptions_total"},
		prompt:      []string{"vllm:prompt_tokens_total"},
		generated:   []string{"vllm:generation_tokens_total"},
		ttft:        "vllm:time_to_first_token_seconds",
		queue:       "vllm:request_queue_time_seconds",
	}},
	marks: []mark{
		{"Starting to load model", "start"},
		{"Loading weights took", "weights"},
		{"Model loading took", "weights"},
		{"GPU KV cache size:", "profile"},
		{"CPU KV cache size:", "profile"},
		{"Graph capturing finished", "graphs"},
	},
	notes: []note{
		noteOf("kv_tokens", `KV cache size: ([\d,]+) tokens`),
		noteOf("block_tokens", `Setting kv cache block size to (\d+) for`),
		noteOf("max_num_batched_tokens", `Chunked prefill is enabled with max_num_batched_tokens=(\d+)`),
		noteOf("max_model_len", `Auto-fit max_model_len: reduced from \d+ to (\d+)`),
		noteOf("options", `non-default args: (\{.*\})`),
		noteOf("weights_gib", `Model loading took ([\d.]+) Gi?B`),
		noteOf("weights_s", `Model loading took [\d.]+ Gi?B memory and ([\d.]+) seconds`),
		noteOf("kv_gib", `Available KV cache memory: ([\d.]+) Gi?B`),
		noteOf("graphs_s", `Graph capturing finished in ([\d.]+) secs`),
		noteOf("init_s", `init engine .* took ([\d.]+) s`),
	},
	describe: describeVLLM,
	reset: func(q *question) error {
		body, err := q.post("/reset_prefix_cache", nil)
		if err != nil {
			return err
		}
		// Newer releases say whether it was done.
		var answer struct{ Success *bool }
		if json.Unmarshal(body, &answer) == nil && answer.Success != nil && !*answer.Success {
			return errors.New("the engine says that it did not reset its prefix cache")
		}
		return nil
	},
}

// describeVLLM asks development mode for the whole configuration in effect, and
// where that is not to be had (a server that somebody else started, releases that
// answer in prose) the labels of the metric that holds that of the cache.
func describeVLLM(q *question) {
	q.version("/version", "version")
	q.models()
	all, _ := q.object("/server_info?config_format=json")["vllm_config"].(map[string]any)
	for _, f := range vllmConfig {
		part, _ := all[f.part].(map[string]any)
		q.copy(part, f.key, f.fact)
	}
	model, _ := all["model_config"].(map[string]any)
	q.unquantised(model)
	metrics, err := q.get("/metrics")
	if err != nil {
		return
	}
	for s := range parseMetrics(metrics) {
		if s.name != "vllm:cache_config_info" {
			continue
		}
		for _, f := range vllmConfig {
			if v := s.label(f.key); v != "" && v != "None" {
				q.fact(f.fact, v)
			}
		}
	}
}

// vllmConfig says where in vLLM's configuration a fact stands.
var vllmConfig = []struct{ part, key, fact string }{
	{"cache_config", "num_gpu_blocks", "kv_blocks"},
	{"cache_config", "block_size", "block_tokens"},
	{"cache_config", "enable_prefix_caching", "prefix_caching"},
	{"cache_config", "cache_dtype", "kv_cache_dtype"},
	{"cache_config", "gpu_memory_utilization", "gpu_memory_utilization"},
	{"scheduler_config", "max_num_seqs", "max_num_seqs"},
	{"scheduler_config", "max_num_batched_tokens", "max_num_batched_tokens"},
	{"scheduler_config", "enable_chunked_prefill", "chunked_prefill"},
	{"scheduler_config", "async_scheduling", "async_scheduling"},
	{"scheduler_config", "policy", "scheduling_policy"},
	{"parallel_config", "tensor_parallel_size", "tensor_parallel"},
	{"parallel_config", "pipeline_parallel_size", "pipeline_parallel"},
	{"parallel_config", "data_parallel_size", "data_parallel"},
	{"model_config", "max_model_len", "max_model_len"},
	{"model_config", "dtype", "dtype"},
	{"model_config", "quantization", "quantization"},
}
