package engine

import "strconv"

// lmdeploy follows LMDeploy of 2026-08 with its default back end, TurboMind, which
// quantises a KV cache to integers only. Its prefix cache is off by default.
var lmdeploy = adapter{
	kind:    "lmdeploy",
	program: []string{"lmdeploy", "serve", "api_server"},
	env:     []string{"PYTHONUNBUFFERED=1"},
	arguments: func(c *commandLine) {
		k := c.knobs
		c.add(c.settings.Model, "--server-name", loopback, "--server-port", strconv.Itoa(c.port))
		c.option("--model-name", c.settings.ServedName)
		c.degree("--tp", k.TensorParallel)
		c.degree("--dp", k.DataParallel)
		if k.ExpertParallel {
			c.option("--ep", k.TensorParallel)
		}
		c.option("--max-batch-size", k.MaxNumSeqs)
		c.option("--max-prefill-token-num", k.MaxNumBatchedTokens)
		// A share of the memory that is free once the weights are there, for the KV
		// cache.
		c.option("--cache-max-entry-count", k.GPUMemoryUtilization)
		c.when(k.PrefixCaching, "--enable-prefix-caching")
		c.option("--session-len", k.MaxModelLen)
		c.lacks("pipeline_parallel", k.PipelineParallel > 1)
		c.lacks("kv_blocks", k.KVBlocks > 0)
	},
	stored: func(c *commandLine) {
		f := c.settings.Format
		c.option("--dtype", f.dtype())
		if f.oneByteKV() {
			c.add("--quant-policy", "8")
			c.instead("kv_cache fp8", "integers of 8 bits")
		}
		c.checkpointOnly(true)
	},
	metrics: metricNames{
		runningRequests: {"lmdeploy:num_requests_running"},
		waitingRequests: {"lmdeploy:num_requests_waiting"},
		kvUsage:         {"lmdeploy:gpu_cache_usage_perc"},
		promptTokens:    {"lmdeploy:prompt_tokens_total"},
		outputTokens:    {"lmdeploy:generation_tokens_total"},
		ttftSum:         {"lmdeploy:time_to_first_token_seconds_sum"}, ttftCount: {"lmdeploy:time_to_first_token_seconds_count"},
		queueSum: {"lmdeploy:request_queue_time_seconds_sum"}, queueCount: {"lmdeploy:request_queue_time_seconds_count"},
	},
	stageEnds: map[string]string{
		"Application startup complete": "weights",
	},
	describe: func(q *query) {
		q.models()
		q.version()
	},
}
