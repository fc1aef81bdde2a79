package engine

import (
	"cmp"
	"slices"
	"strconv"

	"planner/sweep/measure"
)

// usualSlots is the most requests that it serves at once unless told otherwise.
const usualSlots = 4

// llamaServer follows llama-server of llama.cpp, builds of 2026. Its cache is counted in cells of
// one token, and its context is divided among the slots.
var llamaServer = adapter{
	kind:     "llama-server",
	releases: "llama.cpp, builds of 2026",
	program:  []string{"llama-server"},
	options: []string{
		"-m {model} --host {host} --port {port} --metrics", "--alias {served_name}", "-np {max_num_seqs}",
		// The cache has slots x context cells.
		"-c {kv_blocks}", "!kv_blocks? max_model_len? -c {context}",
		"max_num_batched_tokens? -b {max_num_batched_tokens} -ub {micro_batch}",
		"prefix_caching? --cache-prompt", "!prefix_caching? --no-cache-prompt",
	},
	derived: func(k measure.Knobs) map[string]int {
		return map[string]int{"context": k.MaxModelLen * cmp.Or(k.MaxNumSeqs, usualSlots), "micro_batch": min(k.MaxNumBatchedTokens, 512)}
	},
	// Weights are as the GGUF file holds them.
	formats: []string{"byte_kv? -ctk q8_0 -ctv q8_0"},
	kvCache: "q8_0, integers of 8 bits with a scale for 32 of them",
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
	told: append(slices.Clone(toldByMost[1:]), []factPlace{
		{"/props", "build_info", "version"}, {"/props", "total_slots", "max_num_seqs"},
		{"/props", "default_generation_settings.n_ctx", "max_model_len"},
	}...),
	describe: func(q *query) {
		props := q.pages["/props"]
		if cells := props.GetFloat64("total_slots") * props.GetFloat64("default_generation_settings", "n_ctx"); cells > 0 {
			q.fact("kv_tokens", strconv.Itoa(int(cells)))
			q.fact("block_tokens", "1")
		}
	},
}
