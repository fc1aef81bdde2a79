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
	tokens:  true,
	arguments: func(c *commandLine) {
		k := c.knobs
		c.add(c.settings.Model, "--host", loopback, "--port", strconv.Itoa(c.port))
		c.degree("--tp_size", k.TensorParallel)
		c.degree("--pp_size", k.PipelineParallel)
		if k.ExpertParallel {
			c.option("--ep_size", k.TensorParallel)
		}
		c.option("--max_batch_size", k.MaxNumSeqs)
		c.option("--max_num_tokens", k.MaxNumBatchedTokens)
		// A share of the memory that is free once weights and buffers are there, for
		// the KV cache.
		c.option("--kv_cache_free_gpu_memory_fraction", k.GPUMemoryUtilization)
		c.option("--max_seq_len", k.MaxModelLen)
		c.add("--enable_chunked_prefill")
		c.File = filepath.Join(c.settings.Dir, "trtllm.yaml")
		c.Content = fmt.Sprintf("enable_iter_perf_stats: true\nkv_cache_config:\n  enable_block_reuse: %t\n", k.PrefixCaching)
		c.add("--extra_llm_api_options", c.File)
		c.lacks("data_parallel", k.DataParallel > 1)
		c.lacks("kv_blocks", k.KVBlocks > 0)
	},
	stored: func(c *commandLine) {
		f := c.settings.Format
		if f.oneByteKV() {
			c.Content += "  dtype: fp8\n" // within kv_cache_config, which ends the file
		}
		if f.dtype() != "" {
			c.Content += "dtype: " + f.dtype() + "\n"
		}
		c.checkpointOnly(true)
	},
	iterations: true,
	stageEnds: map[string]string{
		"Loading model":    "start",
		"Model init total": "weights",
		"Max KV cache":     "profile",
	},
	logFacts: map[string]string{
		"kv_blocks":    `Number of blocks in KV cache primary pool: (\d+)`,
		"block_tokens": `tokens per block: (\d+)`,
	},
	describe: func(q *query) {
		q.version()
		q.models()
	},
}
