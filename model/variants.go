package model

import "strings"

// chatVariants are the checkpoints of the same shape that were tuned to converse, of those
// that the catalog names and that were not.
var chatVariants = map[string]string{
	"meta-llama/Meta-Llama-3.1-8B":   "meta-llama/Llama-3.1-8B-Instruct",
	"meta-llama/Meta-Llama-3.1-70B":  "meta-llama/Llama-3.1-70B-Instruct",
	"meta-llama/Meta-Llama-3.1-405B": "meta-llama/Llama-3.1-405B-Instruct",
	"meta-llama/Meta-Llama-3-8B":     "meta-llama/Meta-Llama-3-8B-Instruct",
	"meta-llama/Llama-3.2-1B":        "meta-llama/Llama-3.2-1B-Instruct",
	"meta-llama/Llama-3.2-3B":        "meta-llama/Llama-3.2-3B-Instruct",
	"meta-llama/Llama-2-7b-hf":       "meta-llama/Llama-2-7b-chat-hf",
	"meta-llama/Llama-2-13b-hf":      "meta-llama/Llama-2-13b-chat-hf",
	"meta-llama/Llama-2-70b-hf":      "meta-llama/Llama-2-70b-chat-hf",
	"mistralai/Mistral-7B-v0.1":      "mistralai/Mistral-7B-Instruct-v0.1",
	"mistralai/Mixtral-8x7B-v0.1":    "mistralai/Mixtral-8x7B-Instruct-v0.1",
	"mistralai/Mixtral-8x22B-v0.1":   "mistralai/Mixtral-8x22B-Instruct-v0.1",
	"google/gemma-2-27b":             "google/gemma-2-27b-it",
	"deepseek-ai/DeepSeek-V2-Lite":   "deepseek-ai/DeepSeek-V2-Lite-Chat",
	"HuggingFaceTB/SmolLM2-135M":     "HuggingFaceTB/SmolLM2-135M-Instruct",
}

// tunedName reports whether a name is that of a variant to converse with.
func tunedName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "-instruct") || strings.HasSuffix(name, "-chat") || strings.HasSuffix(name, "-it")
}

// ChatCheckpoint is the checkpoint to converse with: that of the catalog, or its variant
// that was tuned for it.
func (a Arch) ChatCheckpoint() string {
	for base, chat := range chatVariants {
		if strings.EqualFold(base, a.Repo) {
			return chat
		}
	}
	return a.Repo
}
