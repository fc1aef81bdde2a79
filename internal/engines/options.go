package engines

import (
	"strconv"

	"planner/internal/config"
	"planner/internal/wire"
	"planner/model"
)

// options are what is configured of an engine besides its knobs, by the names that
// command lines give it.
func options(e *config.EngineSettings) map[string]string {
	named := map[string]string{}
	if l := e.LoRA; l.On() {
		named["lora_adapters"], named["lora_slots"], named["lora_rank"] = strconv.Itoa(l.Adapters), strconv.Itoa(l.Slots), strconv.Itoa(l.Rank)
	}
	s := &e.Speculation
	if s.Tokens == 0 {
		return named
	}
	name := e.DraftModel
	if s.Method == model.DraftEagle && name == "" {
		name = "HEAD" // which a simulation need not know
	}
	if a := s.Draft; a != nil && a.Repo != "" {
		name = a.Repo
	}
	words := speculativeConfig{Method: vllmMethods[s.Method], Tokens: s.Tokens, Model: name}
	if s.Method == model.DraftNGram {
		words.Lookup = 4
	}
	if text, err := wire.Marshal(words); err == nil {
		named["speculative"] = string(text)
	}
	return named
}

// speculativeConfig is the value of vLLM's --speculative-config.
type speculativeConfig struct {
	Method string `json:"method"`
	Tokens int    `json:"num_speculative_tokens"`
	Model  string `json:"model,omitempty"`
	Lookup int    `json:"prompt_lookup_max,omitempty"`
}

// vllmMethods are vLLM's names of the methods.
var vllmMethods = map[model.DraftMethod]string{
	model.DraftMTP: "mtp", model.DraftEagle: "eagle3", model.DraftNGram: "ngram", model.DraftModel: "draft_model",
}
