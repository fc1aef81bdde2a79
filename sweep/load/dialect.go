package load

import (
	"fmt"
	"strings"
)

// dialect is what one engine takes beyond the plain OpenAI request. A field
// that an engine does not know is not sent to it: some refuse the whole request
// for it (TensorRT-LLM, transformers serve).
type dialect struct {
	engine string
	// owner is what the engine's /v1/models gives as the owner of a model; "" if
	// that tells nothing.
	owner string
	// tokenPrompts: /v1/completions takes a list of token ids as its prompt.
	tokenPrompts bool
	// ignoreEOS and minTokens ("" for none) make outputs exactly as long as
	// asked for.
	ignoreEOS bool
	minTokens string
	// usage and continuousUsage are the stream_options it takes.
	usage, continuousUsage bool
	// returnIDs: return_token_ids makes it stream the ids of what it generates.
	returnIDs bool
	// tokenize names the field of POST /tokenize that holds the text; "" when
	// there is no such endpoint.
	tokenize string
}

// dialects is read from the request schemas of vLLM (main, 2026-08), SGLang
// (2026-07), TensorRT-LLM (2026), TGI 3.3.7, llama.cpp (2026-04), LMDeploy
// (2026-08) and transformers 5.
var dialects = []dialect{
	{engine: "generic", usage: true},
	{engine: "simulated", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", usage: true, continuousUsage: true, returnIDs: true, tokenize: "prompt"},
	{engine: "vllm", owner: "vllm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", usage: true, continuousUsage: true, returnIDs: true, tokenize: "prompt"},
	{engine: "sglang", owner: "sglang", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", usage: true, continuousUsage: true, tokenize: "prompt"},
	{engine: "trtllm", owner: "tensorrt_llm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", usage: true, continuousUsage: true},
	{engine: "tgi", usage: true, tokenize: "inputs"},
	{engine: "llama-server", owner: "llamacpp", ignoreEOS: true, usage: true, tokenize: "content"},
	{engine: "lmdeploy", owner: "lmdeploy", ignoreEOS: true, minTokens: "min_new_tokens", usage: true},
	{engine: "transformers"},
}

// dialectOf finds an engine's dialect; "" and the kinds that name no engine are
// generic.
func dialectOf(engine string) (*dialect, error) {
	switch engine {
	case "", "attach", "command":
		engine = "generic"
	}
	for i := range dialects {
		if strings.EqualFold(dialects[i].engine, engine) {
			return &dialects[i], nil
		}
	}
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.engine
	}
	return nil, fmt.Errorf("unknown engine dialect %q; allowed: %s", engine, strings.Join(names, ", "))
}
