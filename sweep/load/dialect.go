package load

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
)

// dialect is what one engine takes beyond the plain OpenAI request. A field
// that an engine does not know is not sent to it: some refuse the whole request
// for it (TensorRT-LLM, transformers serve).
type dialect struct {
	engine string
	// tokenPrompts: /v1/completions takes a list of token ids as its prompt.
	tokenPrompts bool
	// ignoreEOS and minTokens ("" for none) make outputs exactly as long as
	// asked for.
	ignoreEOS bool
	minTokens string
	// streamOptions are the stream_options that make it count tokens, as they
	// stand in a body.
	streamOptions string
	// returnIDs: return_token_ids makes it stream the ids of what it generates.
	returnIDs bool
	// tokenize names the field of POST /tokenize that holds the text; "" when
	// there is no such endpoint.
	tokenize string
}

// The stream_options of engines that count tokens at the end of a stream, and in
// every event.
const (
	countOnce   = `,"stream_options":{"include_usage":true}`
	countAlways = `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
)

// dialects is read from the request schemas of vLLM (main, 2026-08), SGLang
// (2026-07), TensorRT-LLM (2026), TGI 3.3.7, llama.cpp (2026-04), LMDeploy
// (2026-08) and transformers 5.
var dialects = []dialect{
	{engine: "generic", streamOptions: countOnce},
	{engine: "simulated", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, returnIDs: true, tokenize: "prompt"},
	{engine: "vllm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, returnIDs: true, tokenize: "prompt"},
	{engine: "sglang", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, tokenize: "prompt"},
	{engine: "trtllm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways},
	{engine: "tgi", streamOptions: countOnce, tokenize: "inputs"},
	{engine: "llama-server", ignoreEOS: true, streamOptions: countOnce, tokenize: "content"},
	{engine: "lmdeploy", ignoreEOS: true, minTokens: "min_new_tokens", streamOptions: countOnce},
	{engine: "transformers"},
}

// dialectOf finds an engine's dialect; "" and the kinds that name no engine are
// generic.
func dialectOf(engine string) (*dialect, error) {
	switch engine {
	case "", "attach", "command":
		engine = "generic"
	}
	if i := slices.IndexFunc(dialects, func(d dialect) bool { return strings.EqualFold(d.engine, engine) }); i >= 0 {
		return &dialects[i], nil
	}
	names := list.Map(dialects, func(d dialect) string { return d.engine })
	return nil, fmt.Errorf("unknown engine dialect %q; allowed: %s", engine, strings.Join(names, ", "))
}
