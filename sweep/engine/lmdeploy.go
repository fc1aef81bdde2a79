package engine

import "strconv"

// lmdeploy follows LMDeploy of 2026-08 with its default back end, TurboMind, which
// quantises a KV cache to integers only. Its prefix cache is off by default.
var lmdeploy = adapter{
	kind:    "lmdeploy",
	program: []string{"lmdeploy", "serve", "api_server"},
	env:     []string{"PYTHONUNBUFFERED=1"},
	health:  "/health",
	arguments: func(d *draft) {
		k := d.knobs
		d.add(d.settings.Model, "--server-name", loopback, "--server-port", strconv.Itoa(d.port))
		d.text("--model-name", d.settings.ServedName)
		d.degree("--tp", k.TensorParallel)
		d.degree("--dp", k.DataParallel)
		if k.ExpertParallel {
			d.number("--ep", k.TensorParallel)
		}
		d.number("--max-batch-size", k.MaxNumSeqs)
		d.number("--max-prefill-token-num", k.MaxNumBatchedTokens)
		// A share of the memory that is free once the weights are there, for the KV
		// cache.
		d.share("--cache-max-entry-count", k.GPUMemoryUtilization)
		d.flag(k.PrefixCaching, "--enable-prefix-caching", "")
		d.number("--session-len", k.MaxModelLen)
		d.lacks("pipeline_parallel", k.PipelineParallel > 1)
		d.lacks("kv_blocks", k.KVBlocks > 0)
	},
	stored: func(d *draft) {
		f := d.settings.Format
		d.text("--dtype", f.dtype())
		if f.oneByteKV() {
			d.add("--quant-policy", "8")
			d.instead("kv_cache fp8", "integers of 8 bits")
		}
		d.checkpointOnly(true)
	},
	scrape: scrape{path: "/metrics", series: series{
		running:   []string{"lmdeploy:num_requests_running"},
		waiting:   []string{"lmdeploy:num_requests_waiting"},
		kv:        []string{"lmdeploy:gpu_cache_usage_perc"},
		prompt:    []string{"lmdeploy:prompt_tokens_total"},
		generated: []string{"lmdeploy:generation_tokens_total"},
		ttft:      "lmdeploy:time_to_first_token_seconds",
		queue:     "lmdeploy:request_queue_time_seconds",
	}},
	marks: []mark{{"Application startup complete", "weights"}},
	describe: func(q *question) {
		q.models()
		q.version("/version", "version")
	},
}
