package engine

import "strconv"

// llamaServer follows llama-server of llama.cpp, builds of 2026. Its cache is
// counted in cells of one token, and its context is divided by the slots.
var llamaServer = adapter{
	kind:    "llama-server",
	program: []string{"llama-server"},
	arguments: func(c *commandLine) {
		k := c.knobs
		c.add("-m", c.settings.Model, "--host", loopback, "--port", strconv.Itoa(c.port), "--metrics")
		c.option("--alias", c.settings.ServedName)
		c.option("-np", k.MaxNumSeqs)
		switch {
		case k.KVBlocks > 0:
			c.option("-c", k.KVBlocks)
		case k.MaxModelLen > 0:
			c.option("-c", k.MaxModelLen*max(k.MaxNumSeqs, 1))
		}
		if k.MaxNumBatchedTokens > 0 {
			c.option("-b", k.MaxNumBatchedTokens)
			c.option("-ub", min(k.MaxNumBatchedTokens, 512))
		}
		c.when(k.PrefixCaching, "--cache-prompt")
		c.when(!k.PrefixCaching, "--no-cache-prompt")
		// The cache is as large as slots x context.
		c.lacks("gpu_memory_utilization", k.GPUMemoryUtilization > 0)
		c.lacks("tensor_parallel", k.TensorParallel > 1)
		c.lacks("pipeline_parallel", k.PipelineParallel > 1)
		c.lacks("data_parallel", k.DataParallel > 1)
		c.lacks("expert_parallel", k.ExpertParallel)
	},
	stored: func(c *commandLine) {
		if c.settings.Format.oneByteKV() {
			c.add("-ctk", "q8_0", "-ctv", "q8_0")
			c.instead("kv_cache fp8", "q8_0, integers of 8 bits with a scale for 32 of them")
		}
		// A GGUF file holds what it holds.
		c.checkpointOnly(false)
	},
	metrics: metricNames{
		runningRequests: {"llamacpp:requests_processing"},
		waitingRequests: {"llamacpp:requests_deferred"},
		kvUsage:         {"llamacpp:kv_cache_usage_ratio"},
		promptTokens:    {"llamacpp:prompt_tokens_total"},
		outputTokens:    {"llamacpp:tokens_predicted_total"},
	},
	stageEnds: map[string]string{
		"loading model":               "start",
		"llama_context: constructing": "weights",
		"model loaded":                "profile",
	},
	describe: func(q *query) {
		q.models()
		props := q.object("/props")
		q.copy(props, "build_info", "version")
		q.copy(props, "total_slots", "max_num_seqs")
		settings, _ := props["default_generation_settings"].(map[string]any)
		q.copy(settings, "n_ctx", "max_model_len")
		slots, ok1 := props["total_slots"].(float64)
		context, ok2 := settings["n_ctx"].(float64)
		if ok1 && ok2 {
			q.fact("kv_tokens", strconv.Itoa(int(slots*context)))
			q.fact("block_tokens", "1")
		}
	},
}
