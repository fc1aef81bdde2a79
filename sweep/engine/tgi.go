package engine

import "strconv"

// tgi follows Text Generation Inference 3.3. It turns away what is beyond
// --max-concurrent-requests (128) instead of queueing it, so that limit is
// raised. Outputs may be shorter than asked for: it cannot ignore the end of
// the text.
var tgi = adapter{
	kind:    "tgi",
	program: []string{"text-generation-launcher"},
	arguments: func(c *commandLine) {
		k := c.knobs
		c.add("--model-id", c.settings.Model, "--hostname", loopback, "--port", strconv.Itoa(c.port))
		c.degree("--num-shard", k.TensorParallel)
		c.option("--max-batch-size", k.MaxNumSeqs)
		c.option("--max-batch-prefill-tokens", k.MaxNumBatchedTokens)
		// A cap for the memory of the whole process; what the KV cache gets is found
		// by warm-up.
		c.option("--cuda-memory-fraction", k.GPUMemoryUtilization)
		c.option("--max-total-tokens", k.MaxModelLen)
		c.option("--max-batch-total-tokens", k.KVBlocks)
		c.add("--max-concurrent-requests", "16384")
		prefix := "0"
		if k.PrefixCaching {
			prefix = "1"
		}
		c.setenv("PREFIX_CACHING", prefix)
		c.lacks("pipeline_parallel", k.PipelineParallel > 1)
		c.lacks("data_parallel", k.DataParallel > 1)
		c.lacks("expert_parallel", k.ExpertParallel)
	},
	stored: func(c *commandLine) {
		f := c.settings.Format
		c.when(f.quantised("fp8"), "--quantize", "fp8")
		c.option("--dtype", f.dtype())
		c.when(f.oneByteKV(), "--kv-cache-dtype", "fp8_e4m3fn")
		c.checkpointOnly(true, "fp8")
	},
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
	describe: func(q *query) {
		info := q.object("/info")
		q.copy(info, "version", "version")
		q.copy(info, "model_id", "model")
		q.copy(info, "model_dtype", "dtype")
		q.copy(info, "max_total_tokens", "max_model_len")
		q.copy(info, "max_batch_total_tokens", "kv_tokens")
	},
}
