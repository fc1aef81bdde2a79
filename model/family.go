package model

import (
	"strings"

	"planner/internal/list"
)

// family is what an architecture class says about its checkpoints beyond config.json.
type family struct {
	mark    string // beginning of the class name, in lower case
	details Details
	tied    bool // default of tie_word_embeddings
	wide    bool // the MLP is four times the hidden size unless the config says otherwise
	mtp     bool // checkpoints may have multi-token prediction layers
	// since is the first release 0.x of vLLM that serves the class, 0 if all that are simulated do: min_vllm_version in
	// vllm-project/recipes (2026), or an older release with which somebody published a measurement.
	since int
	// experts are the kernels of 4-bit experts that vLLM takes on every GPU, by default those of the GPU.
	experts ExpertKernels
	// defaults are those of transformers' configuration class, which published files therefore omit.
	defaults map[string]float64
	// fullEvery says that every such layer has full attention and the others a window, unless files say so
	// layer by layer; fullKeys are the keys under which files give that number.
	fullEvery int
	fullKeys  []string
}

// families are the known classes, longer marks before shorter ones that they begin with. They follow the
// modelling code of transformers 4.5x and vLLM. An unknown class is counted as a Llama: gated MLP, two norms a
// layer, no biases.
var families = []family{
	{mark: "qwen2moe", details: Details{QKVBias: true, SharedGate: true}},
	{mark: "qwen2", details: Details{QKVBias: true}},
	{mark: "qwen3next", mtp: true, details: Details{QKNorm: true, SharedGate: true, BlockFP8: true}},
	{mark: "qwen3_5moe", since: 17, mtp: true, details: Details{QKNorm: true, SharedGate: true, BlockFP8: true}}, {mark: "qwen3_5", since: 17, mtp: true, details: Details{QKNorm: true, BlockFP8: true}},
	{mark: "nemotronh", mtp: true, details: Details{Ungated: true, RouterBias: true, ExactRouter: true}}, {mark: "granitemoehybrid", tied: true},
	{mark: "qwen3moe", details: Details{QKNorm: true, BlockFP8: true}},
	{mark: "qwen3vl", since: 11, details: Details{QKNorm: true, BlockFP8: true}},
	{mark: "minimaxm2", since: 11, mtp: true, details: Details{QKNorm: true, AllHeadsNorm: true, RouterBias: true, WideRouter: true, BlockFP8: true}},
	{mark: "minimaxm3", since: 23, details: Details{QKNorm: true, RouterBias: true, WideRouter: true}},
	// Other kernels lack its activation (NVIDIA aiconfigurator, pull request 1435, 2026-07).
	{mark: "kimik3", since: 27, experts: ExpertsMarlin, details: Details{RouterBias: true}}, {mark: "kimilinear", details: Details{RouterBias: true}},
	{mark: "kimik25", since: 15, mtp: true, details: Details{RouterBias: true, AttentionFormats: Mix{BF16: 1}, MLPFormats: Mix{BF16: 1}, SharedFormats: Mix{BF16: 1}, Group: 32}},
	{mark: "qwen3", details: Details{QKNorm: true, BlockFP8: true}},
	{mark: "gptoss", details: Details{AttentionFormats: Mix{BF16: 1}, QKVBias: true, OutputBias: true, Sinks: true, ExpertBias: true},
		defaults: map[string]float64{"head_dim": 64, "sliding_window": 128}, fullEvery: 2},
	{mark: "gemma2", details: Details{NormsPerLayer: 4}, tied: true, defaults: map[string]float64{"head_dim": 256}, fullEvery: 2},
	{mark: "gemma3", details: Details{NormsPerLayer: 4, QKNorm: true}, tied: true,
		defaults: map[string]float64{"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4,
			"head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096},
		fullEvery: 6, fullKeys: []string{"sliding_window_pattern", "_sliding_window_pattern"}},
	{mark: "gemma4", since: 19, mtp: true, details: Details{NormsPerLayer: 4, QKNorm: true}, tied: true, defaults: map[string]float64{"head_dim": 256}},
	{mark: "gemma", tied: true, defaults: map[string]float64{"head_dim": 256}},
	{mark: "gptj", wide: true, details: Details{Ungated: true, MLPBias: true, HeadBias: true, NormBias: true, NormsPerLayer: 1}},
	{mark: "gptneox", wide: true, details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true}},
	{mark: "gpt2", wide: true, tied: true, details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true},
		defaults: map[string]float64{"vocab_size": 50257}},
	{mark: "bloom", wide: true, tied: true, details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true}},
	{mark: "opt", wide: true, tied: true, details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true}},
	{mark: "jais", wide: true, tied: true, details: Details{QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true}},
	{mark: "falcon", wide: true, tied: true, details: Details{Ungated: true, NormBias: true, NormsPerLayer: 1}},
	{mark: "rwforcausal", wide: true, tied: true, details: Details{Ungated: true, NormBias: true, NormsPerLayer: 1}},
	{mark: "phi3"}, {mark: "phi4"},
	{mark: "phimoe", details: Details{NormBias: true, QKVBias: true, OutputBias: true, HeadBias: true}},
	{mark: "phi", details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, HeadBias: true, NormBias: true, NormsPerLayer: 1}},
	{mark: "starcoder2", tied: true, details: Details{Ungated: true, QKVBias: true, OutputBias: true, MLPBias: true, NormBias: true}},
	{mark: "cohere2", tied: true, details: Details{NormsPerLayer: 1}, fullEvery: 4, fullKeys: []string{"sliding_window_pattern"}},
	{mark: "cohere", tied: true, details: Details{NormsPerLayer: 1}},
	{mark: "llama4", details: Details{AttentionFormats: Mix{BF16: 1}}, defaults: map[string]float64{"head_dim": 128, "attention_chunk_size": 8192, "interleave_moe_layer_step": 1},
		fullEvery: 4, fullKeys: []string{"no_rope_layer_interval"}},
	{mark: "llama"}, {mark: "mistral"}, {mark: "ministral3"}, {mark: "mixtral"},
	{mark: "exaone4", mtp: true, details: Details{QKNorm: true}}, {mark: "olmo3", details: Details{QKNorm: true}},
	{mark: "deepseekv4", since: 20, mtp: true, details: Details{RouterBias: true, BlockFP8: true}},
	{mark: "deepseekv32", since: 11, mtp: true, details: Details{RouterBias: true, BlockFP8: true}}, {mark: "deepseekv3", mtp: true, details: Details{RouterBias: true, BlockFP8: true}}, {mark: "deepseek", mtp: true},
	{mark: "step3p", since: 16, mtp: true, details: Details{QKNorm: true, RouterBias: true, WideRouter: true, BlockFP8: true}},
	{mark: "ernie4_5_moe", mtp: true, details: Details{RouterBias: true, WideRouter: true}},
	{mark: "glm4moe", mtp: true, details: Details{RouterBias: true, WideRouter: true}}, {mark: "glmmoedsa", since: 16, mtp: true, details: Details{RouterBias: true, BlockFP8: true}},
}

// KnownClass reports whether more is known of the architecture class than config.json says.
func (a Arch) KnownClass() bool {
	_, known := familyOf(a.Family)
	return known
}

// WithoutMTP reports whether the architecture class is known to have no checkpoints with multi-token prediction
// layers: vLLM refuses method mtp for it (MTPModelTypes in vllm/config/speculative.py, 2026).
func (a Arch) WithoutMTP() bool {
	f, known := familyOf(a.Family)
	return known && !f.mtp
}

// Since returns the first release 0.x of vLLM that serves the architecture class, 0 if all do that are simulated.
func (a Arch) Since() int {
	f, _ := familyOf(a.Family)
	return f.since
}

// ExpertKernels returns the kernels of 4-bit experts that vLLM takes for the architecture class on every GPU,
// [ExpertsByDefault] if these depend on the GPU.
func (a Arch) ExpertKernels() ExpertKernels {
	f, _ := familyOf(a.Family)
	return f.experts
}

// familyOf returns what is known of a class, and whether it is known.
func familyOf(class string) (family, bool) {
	class = strings.ToLower(class)
	return list.Find(families, func(f family) bool { return strings.HasPrefix(class, f.mark) })
}
