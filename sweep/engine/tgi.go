package engine

import "strconv"

// tgi follows Text Generation Inference 3.3. It turns away what is beyond
// --max-concurrent-requests (128) instead of queueing it, so that limit is
// raised. Outputs may be shorter than asked for: it cannot ignore the end of
// the text.
var tgi = adapter{
	kind:    "tgi",
	program: []string{"text-generation-launcher"},
	health:  "/health",
	arguments: func(d *draft) {
		k := d.knobs
		d.add("--model-id", d.settings.Model, "--hostname", loopback, "--port", strconv.Itoa(d.port))
		d.degree("--num-shard", k.TensorParallel)
		d.number("--max-batch-size", k.MaxNumSeqs)
		d.number("--max-batch-prefill-tokens", k.MaxNumBatchedTokens)
		// A cap for the memory of the whole process; what the KV cache gets is found
		// by warm-up.
		d.share("--cuda-memory-fraction", k.GPUMemoryUtilization)
		d.number("--max-total-tokens", k.MaxModelLen)
		d.number("--max-batch-total-tokens", k.KVBlocks)
		d.add("--max-concurrent-requests", "16384")
		prefix := "0"
		if k.PrefixCaching {
			prefix = "1"
		}
		d.setenv("PREFIX_CACHING", prefix)
		d.lacks("pipeline_parallel", k.PipelineParallel > 1)
		d.lacks("data_parallel", k.DataParallel > 1)
		d.lacks("expert_parallel", k.ExpertParallel)
	},
	stored: func(d *draft) {
		f := d.settings.Format
		d.when(f.quantised("fp8"), "--quantize", "fp8")
		d.text("--dtype", f.dtype())
		d.when(f.oneByteKV(), "--kv-cache-dtype", "fp8_e4m3fn")
		d.checkpointOnly(true, "fp8")
	},
	scrape: scrape{path: "/metrics", series: series{
		running:   []string{"tgi_batch_current_size"},
		waiting:   []string{"tgi_queue_size"},
		prompt:    []string{"tgi_request_input_length_sum"},
		generated: []string{"tgi_request_generated_tokens_sum"},
		queue:     "tgi_request_queue_duration",
	}},
	marks: []mark{
		{"Starting shard", "start"},
		{"Server started at", "weights"},
		{"Setting max batch total tokens to", "profile"},
	},
	notes: []note{noteOf("kv_tokens", `Setting max batch total tokens to (\d+)`)},
	describe: func(q *question) {
		info := q.object("/info")
		q.copy(info, "version", "version")
		q.copy(info, "model_id", "model")
		q.copy(info, "model_dtype", "dtype")
		q.copy(info, "max_total_tokens", "max_model_len")
		q.copy(info, "max_batch_total_tokens", "kv_tokens")
	},
}
