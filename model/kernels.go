package model

import "strings"

// Kernels are engine settings that choose the kernels of a step and how they are launched. A zero field is the
// release's default on the GPU.
type Kernels struct {
	// Async schedules a step while the one before it runs.
	Async Choice
	// Graphs says which steps replay CUDA graphs, GraphTokens is the size in tokens of the largest graph.
	Graphs      GraphMode
	GraphTokens int
	// Experts are the kernels of routed experts.
	Experts ExpertKernels
	// FusedReduce fuses all-reduces with the norms after them (fuse_allreduce_rms).
	FusedReduce Choice
	// Sampler draws the tokens.
	Sampler Sampler
}

// Choice is a setting that is on, off, or left to the engine.
type Choice int

// The choices.
const (
	ByDefault Choice = iota
	On
	Off
)

// or returns the choice, or a value if it is left to the engine.
func (c Choice) or(otherwise bool) bool { return c == On || c == ByDefault && otherwise }

// GraphMode says which steps replay CUDA graphs.
type GraphMode int

// The modes: full graphs of decode-only steps and the pieces between attention layers of all others
// (FULL_AND_PIECEWISE, the default since 0.11); such pieces of all steps (PIECEWISE, the default before); full
// graphs of decode-only steps, all others launched kernel by kernel (FULL_DECODE_ONLY); none (--enforce-eager).
const (
	GraphsByDefault GraphMode = iota
	GraphsFull
	GraphsPiecewise
	GraphsDecodeOnly
	GraphsNone
)

// ExpertKernels are the kernels of routed experts.
type ExpertKernels int

// The kernels of experts. Marlin multiplies unpacked 4-bit weights; DeepGEMM's are for fp8 scaled in blocks, CUTLASS's
// for nvfp4; FlashInfer's are for data-centre Blackwell, mxfp4 apart.
const (
	ExpertsByDefault ExpertKernels = iota
	ExpertsTriton
	ExpertsMarlin
	ExpertsFlashInfer
	ExpertsDeepGEMM
	ExpertsCUTLASS
)

// Sampler draws tokens from the rows of the LM head.
type Sampler int

// The samplers: argmax; top-p and top-k by sorting the vocabulary; the same by Triton kernels or by
// FlashInfer's.
const (
	SamplerByDefault Sampler = iota
	SamplerGreedy
	SamplerSort
	SamplerTriton
	SamplerFlashInfer
)

// String is the mode's name in configurations, "auto" for the release's default.
func (g GraphMode) String() string { return g.names()[g] }

// String is the kernels' name in configurations, "auto" for the release's default.
func (e ExpertKernels) String() string { return e.names()[e] }

// String is the sampler's name in configurations, "auto" for the model's own.
func (s Sampler) String() string { return s.names()[s] }

func (GraphMode) names() []string {
	return []string{"auto", "full", "piecewise", "decode-only", "eager"}
}
func (ExpertKernels) names() []string {
	return []string{"auto", "triton", "marlin", "flashinfer", "deepgemm", "cutlass"}
}
func (Sampler) names() []string {
	return []string{"auto", "greedy", "sort", "triton", "flashinfer"}
}

// Async reports whether the engine schedules the next step while the current one runs: by default since 0.14, with
// several pipeline stages since 0.15 (release notes of 0.14.0, 2026-01-20; vLLM pull request 32359). It does not with
// n-gram speculation, which searches text that the host does not have yet, and with a draft model it does since 0.26
// (48341, of 2026-07; config/vllm.py, 0.32). On processors it never does (platforms/cpu.py, 0.32).
func (l EngineArgs) Async(g Generation, stages int) bool {
	v := versionOf(l.EngineVersion)
	since := 14
	switch {
	case l.Speculation.Method == DraftModel:
		since = 26
	case stages > 1:
		since = 15
	}
	return l.Kernels.Async.or(g != GenerationCPU && v.AtLeast(0, since) && l.Speculation.Method != DraftNGram)
}

// graphs returns the CUDA graph mode; full graphs of decodes are the default since 0.11.
func (l EngineArgs) graphs() GraphMode {
	switch {
	case l.Kernels.Graphs != GraphsByDefault:
		return l.Kernels.Graphs
	case versionOf(l.EngineVersion).AtLeast(0, 11):
		return GraphsFull
	}
	return GraphsPiecewise
}

// IntegersByMarlin reports whether experts are in 4-bit integers that FlashInfer could multiply faster: those with a
// scale for 32 of them, since 0.16 but for 0.23 and 0.24, which take no SiLU there (fused_moe/experts/trtllm_mxint4_moe.py).
func (l EngineArgs) IntegersByMarlin(dep Deployment) bool {
	published := dep.Precision.Weights == INT4 && dep.Arch.Native == INT4 && dep.Arch.Details.Group == 32
	minor := versionOf(l.EngineVersion).minor()
	return dep.Arch.MoE.Present() && published && minor >= 16 && minor != 23 && minor != 24 &&
		dep.Hardware.Generation == GenerationBlackwell && l.experts(dep) == ExpertsMarlin
}

// fourBit returns the family of a format's 4-bit experts on hardware, whatever the model.
func (l EngineArgs) fourBit(hw Hardware, w WeightFormat) kernelFamily {
	return l.experts(Deployment{Hardware: hw, Precision: Precision{Weights: w}}).family()
}

// family returns the family of 4-bit experts' kernels, "" if they are of none.
func (e ExpertKernels) family() kernelFamily {
	return map[ExpertKernels]kernelFamily{ExpertsTriton: familyTriton, ExpertsMarlin: familyMarlin, ExpertsFlashInfer: familyFlashInfer}[e]
}

// sampler returns how tokens are sampled. Requests that do not set them use the top-p and top-k of the model's
// generation config: by sorting the vocabulary up to 0.16, by Triton kernels since, and on NVIDIA's GPUs by FlashInfer's
// since 0.21 (vLLM pull requests 40376 of 2026-04 and 42472).
func (l EngineArgs) sampler(dep Deployment) Sampler {
	v := versionOf(l.EngineVersion)
	switch {
	case l.Kernels.Sampler != SamplerByDefault:
		return l.Kernels.Sampler
	case !dep.Arch.truncates():
		return SamplerGreedy
	case v.AtLeast(0, 21) && dep.Hardware.Generation.measured() && !dep.Hardware.CDNA():
		return SamplerFlashInfer
	case v.AtLeast(0, 17):
		return SamplerTriton
	}
	return SamplerSort
}

// fusedReduce reports whether all-reduces are fused with the norms after them: by default since 0.17 (vLLM pull
// request 34299 of 2026-02), and since 0.21 with several stages or replicas too (41458). Only data-centre Blackwell has
// timings of it.
func (l EngineArgs) fusedReduce(dep Deployment) bool {
	v := versionOf(l.EngineVersion)
	return l.Kernels.FusedReduce.or(v.AtLeast(0, 21) || v.AtLeast(0, 17) && dep.PP == 1 && dep.DP == 1)
}

// largeVocab separates Llama 3's checkpoints from earlier ones of the class, which have a top-p too, but whose
// served runs show no cost of it.
const largeVocab = 100_000

// truncates reports whether the generation config of the model's checkpoints sets top-p or top-k (read 2026-11:
// Llama 3 and 4 0.9; Qwen 2.5 and 3 top-k 20; Gemma top-k 64; DeepSeek, GLM-5 and GLM-4.7-Flash 0.95; MiniMax-M2 0.95
// and top-k 40; Mistral, Mixtral, Phi, gpt-oss, Kimi and GLM-4.5 to 4.7 none; GLM's and MiniMax's from an audit of
// 2026-09-13, GOAT's "Model generation policies", and what SGLang logged for MiniMax-M2.5 on 2026-03-30).
func (a Arch) truncates() bool {
	class := strings.ToLower(a.Family)
	for _, mark := range []string{"qwen", "gemma", "deepseek", "llama", "glmmoedsa", "glm4moelite", "minimaxm2"} {
		if strings.HasPrefix(class, mark) {
			return a.Vocab > largeVocab && !strings.Contains(strings.ToLower(a.Name), "kimi")
		}
	}
	return false
}
