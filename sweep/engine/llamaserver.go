package engine

import "strconv"

// llamaServer follows llama-server of llama.cpp, builds of 2026. Its cache is
// counted in cells of one token, and its context is divided by the slots.
var llamaServer = adapter{
	kind:    "llama-server",
	program: []string{"llama-server"},
	health:  "/health",
	arguments: func(d *draft) {
		k := d.knobs
		d.add("-m", d.settings.Model, "--host", loopback, "--port", strconv.Itoa(d.port), "--metrics")
		d.text("--alias", d.settings.ServedName)
		d.number("-np", k.MaxNumSeqs)
		switch {
		case k.KVBlocks > 0:
			d.number("-c", k.KVBlocks)
		case k.MaxModelLen > 0:
			d.number("-c", k.MaxModelLen*max(k.MaxNumSeqs, 1))
		}
		if k.MaxNumBatchedTokens > 0 {
			d.number("-b", k.MaxNumBatchedTokens)
			d.number("-ub", min(k.MaxNumBatchedTokens, 512))
		}
		d.flag(k.PrefixCaching, "--cache-prompt", "--no-cache-prompt")
		// The cache is as large as slots x context.
		d.lacks("gpu_memory_utilization", k.GPUMemoryUtilization > 0)
		d.lacks("tensor_parallel", k.TensorParallel > 1)
		d.lacks("pipeline_parallel", k.PipelineParallel > 1)
		d.lacks("data_parallel", k.DataParallel > 1)
		d.lacks("expert_parallel", k.ExpertParallel)
	},
	stored: func(d *draft) {
		if d.settings.Format.oneByteKV() {
			d.add("-ctk", "q8_0", "-ctv", "q8_0")
			d.instead("kv_cache fp8", "q8_0, integers of 8 bits with a scale for 32 of them")
		}
		// A GGUF file holds what it holds.
		d.checkpointOnly(false)
	},
	scrape: scrape{path: "/metrics", series: series{
		running:   []string{"llamacpp:requests_processing"},
		waiting:   []string{"llamacpp:requests_deferred"},
		kv:        []string{"llamacpp:kv_cache_usage_ratio"},
		prompt:    []string{"llamacpp:prompt_tokens_total"},
		generated: []string{"llamacpp:tokens_predicted_total"},
	}},
	marks: []mark{
		{"loading model", "start"},
		{"llama_context: constructing", "weights"},
		{"model loaded", "profile"},
	},
	describe: func(q *question) {
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
