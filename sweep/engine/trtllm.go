package engine

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// trtllm follows trtllm-serve of TensorRT-LLM 1.x with the PyTorch backend. It
// takes the reuse of blocks and the number formats from a YAML file only, and
// quantised weights only from checkpoints that are (NVIDIA's ModelOpt makes them).
var trtllm = adapter{
	kind:    "trtllm",
	program: []string{"trtllm-serve"},
	env:     []string{"PYTHONUNBUFFERED=1"},
	health:  "/health",
	tokens:  true,
	arguments: func(d *draft) {
		k := d.knobs
		d.add(d.settings.Model, "--host", loopback, "--port", strconv.Itoa(d.port))
		d.degree("--tp_size", k.TensorParallel)
		d.degree("--pp_size", k.PipelineParallel)
		if k.ExpertParallel {
			d.number("--ep_size", k.TensorParallel)
		}
		d.number("--max_batch_size", k.MaxNumSeqs)
		d.number("--max_num_tokens", k.MaxNumBatchedTokens)
		// A share of the memory that is free once weights and buffers are there, for
		// the KV cache.
		d.share("--kv_cache_free_gpu_memory_fraction", k.GPUMemoryUtilization)
		d.number("--max_seq_len", k.MaxModelLen)
		d.add("--enable_chunked_prefill")
		d.file = File{
			Path:    filepath.Join(d.settings.Dir, "trtllm.yaml"),
			Content: fmt.Sprintf("enable_iter_perf_stats: true\nkv_cache_config:\n  enable_block_reuse: %t\n", k.PrefixCaching),
		}
		d.add("--extra_llm_api_options", d.file.Path)
		d.lacks("data_parallel", k.DataParallel > 1)
		d.lacks("kv_blocks", k.KVBlocks > 0)
	},
	stored: func(d *draft) {
		f := d.settings.Format
		if f.oneByteKV() {
			d.file.Content += "  dtype: fp8\n" // within kv_cache_config, which ends the file
		}
		if f.dtype() != "" {
			d.file.Content += "dtype: " + f.dtype() + "\n"
		}
		d.checkpointOnly(true)
	},
	scrape: scrape{path: "/metrics", json: true},
	marks: []mark{
		{"Loading model", "start"},
		{"Model init total", "weights"},
		{"Max KV cache", "profile"},
	},
	notes: []note{
		noteOf("kv_blocks", `Number of blocks in KV cache primary pool: (\d+)`),
		noteOf("block_tokens", `tokens per block: (\d+)`),
	},
	describe: func(q *question) {
		q.version("/version", "version")
		q.models()
	},
}
