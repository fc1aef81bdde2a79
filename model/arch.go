package model

import (
	"cmp"
	"fmt"
)

// Arch is the shape of a decoder-only transformer, from which its weights, KV cache and arithmetic are counted.
// Counts, not bytes.
type Arch struct {
	Name   string // as in the catalog: "llama-3.1-70b"
	Repo   string // Hugging Face id, may be empty
	Chat   string // Hugging Face id of the instruction-tuned variant of the same shape, if Repo is not that variant
	Family string // architecture class: "LlamaForCausalLM"
	// RemoteCode is the first release of vLLM that needs no code of the model's repository, "always" where none is
	// known to be, and "" where no release needs any.
	RemoteCode string

	Layers       int
	Hidden       int
	Intermediate int // width of a dense MLP; in a mixture of experts that of its dense layers
	Vocab        int
	MaxPosition  int
	Bare         int  // layers with neither MLP nor experts after their attention or state (Nemotron-H)
	Tied         bool // input embedding and LM head share one matrix

	Attention Attention
	State     RecurrentState
	MoE       MoE
	Details   Details
	Published PublishedDraft
	Native    WeightFormat // format of the published checkpoint; FormatUnset if unknown
	NativeKV  KVFormat     // KV format that it was calibrated for; KVAuto if unknown

	Source string
	Notes  string
}

// always stands for the release of no engine in [Arch.RemoteCode].
const always = "always"

// TrustsRemoteCode reports whether vLLM of a release loads the model with code of its repository alone
// (--trust-remote-code).
func (a Arch) TrustsRemoteCode(release string) bool {
	until, err := ParseVersion(a.RemoteCode)
	return err != nil || a.RemoteCode != "" && !versionOf(release).AtLeast(until.Major, until.Minor)
}

// Attention is the shape of the attention of every layer.
type Attention struct {
	Heads int
	KVShape
	MLA        MLA // zero: ordinary grouped-query attention
	Sparse     Sparse
	Compressed Compression
	// Windowed is the shape of window layers if it differs from that of the others.
	Windowed      KVShape
	WindowedHeads int  // query heads of window layers if they differ from the others', else 0
	KeysOnly      bool // in layers without a window, values come from the key projection (Gemma 4)

	Window       int  // tokens that a window layer looks back, 0: no such layer
	WindowLayers int  // layers with the window; the others attend to the whole context
	Chunked      bool // the window starts anew every Window tokens (Llama 4)
}

// KVShape is what one layer's cache holds per token.
type KVShape struct {
	KVHeads  int
	HeadDim  int // of a key
	ValueDim int // of a value, if it differs from that of a key
}

// dims is the number of elements of one head's key and value together.
func (s KVShape) dims() float64 { return float64(s.HeadDim + cmp.Or(s.ValueDim, s.HeadDim)) }

// bytes returns the bytes of one token in one layer on one of tp GPUs: heads are divided until there is one per
// GPU, then replicated.
func (s KVShape) bytes(f KVFormat, tp int) float64 {
	return max(1, float64(s.KVHeads)/float64(tp)) * s.dims() * f.Bytes()
}

// windowed is the shape of window layers.
func (at Attention) windowed() KVShape { return cmp.Or(at.Windowed, at.KVShape) }

// windowedHeads is the number of query heads of window layers.
func (at Attention) windowedHeads() int { return cmp.Or(at.WindowedHeads, at.Heads) }

// MLA is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): the cache holds
// one latent of KVRank plus RopeDim values per token and layer instead of keys and
// values per head.
type MLA struct {
	QueryRank int // rank of the query's compression, 0: queries are not compressed
	KVRank    int
	RopeDim   int // part of a head's key and query with positions
	NopeDim   int // part of a head's key and query without
	ValueDim  int
}

// Sparse is attention of each query to only those tokens that an index selects (DeepSeek sparse attention,
// DeepSeek-V3.2-Exp report, 2025-09; of blocks in MiniMax-M3, arXiv 2606.13392); the zero value is attention to all.
type Sparse struct {
	Keys   int // tokens that a query attends to
	Heads  int // of the index
	Dim    int // of the index's keys, of which the cache holds one per entry
	Layers int // layers with their own index; the others reuse the previous one
	Whole  int // layers that attend to the whole context all the same
	Block  int // tokens that are selected together; 0: each is selected alone
}

// bytes is what the index holds per entry in a layer that has one: fp8 with a scale, or bf16 where it selects blocks
// (vllm/models/minimax_m3/common/indexer.py, 2026-07).
func (s Sparse) bytes() float64 {
	if s.Block > 0 {
		return BF16.Bytes() * float64(s.Dim)
	}
	return float64(s.Dim) + 4
}

// Present reports whether the model uses multi-head latent attention.
func (m MLA) Present() bool { return m.KVRank > 0 }

// latentDims are those of a key and a value as decodes multiply them: the latent stands for both, in a compressed cache
// with its part with positions.
func (at Attention) latentDims() float64 {
	dims := 2*at.MLA.KVRank + at.MLA.RopeDim
	if at.Compressed.Present() {
		dims += at.MLA.RopeDim
	}
	return float64(dims)
}

// MoE is the mixture of experts; the zero value means a dense model.
type MoE struct {
	Experts            int // routed experts of one layer
	Active             int // routed experts that one token visits
	Intermediate       int // width of one routed expert
	SharedIntermediate int // width of all shared experts of a layer together; 0: none
	Layers             int // layers that have experts; the others are dense
	Latent             int // width of the experts' input and output; 0: the hidden size (Nemotron 3)
	// Groups is the number of equal groups of experts of which a token visits TopGroups (DeepSeek's node-limited
	// routing); up to 1 all experts are one group.
	Groups, TopGroups int
}

// Present reports whether the model has routed experts.
func (m MoE) Present() bool { return m.Experts > 0 && m.Layers > 0 }

// Vision is the vision tower of a multimodal checkpoint, of which only the memory that it takes from the KV
// cache is modelled; the zero value is a text model.
type Vision struct {
	Params float64
	Hidden int
}

// PublishedDraft is what was published on speculative decoding with the model.
type PublishedDraft struct {
	Method   DraftMethod
	Accepted []float64 // by position, as in [Speculation]
	Source   string
}

// Details are the parts of an architecture class that matter for an exact parameter count, and for little else.
type Details struct {
	QKVBias       bool // biases on the query, key and value projections
	OutputBias    bool // bias on the attention's output projection
	OutputGate    bool // the query projection also yields a gate of the same width for attention's output
	QKNorm        bool // a norm over the head dimension of queries and of keys
	AllHeadsNorm  bool // that norm spans all heads, of which each GPU has a part
	Sinks         bool // one learned attention sink per head
	Ungated       bool // the MLP has two matrices instead of three
	MLPBias       bool // biases in the (dense) MLP
	ExpertBias    bool // biases on router and experts
	RouterBias    bool // a bias on the router alone (DeepSeek-V3's load balancing)
	WideRouter    bool // the router is held and multiplied in fp32
	ExactRouter   bool // the router is multiplied in fp32 unless a kernel multiplies bf16 into fp32
	HeadBias      bool // bias on the LM head
	Joined        int  // hidden states that a matrix joins before the first layer, as in draft modules of speculative decoding
	NormBias      bool // norms carry a bias
	NormsPerLayer int  // 0 means 2
	Vision        Vision
	SharedGate    bool // a one-column gate on the shared experts (Qwen2-MoE)
	// The formats in which a quantised checkpoint stores its parts if they differ from that of its weights.
	AttentionFormats Mix // also of layers with a state
	MLPFormats       Mix // of dense layers
	SharedFormats    Mix // of shared experts
	ExpertFormats    Mix
	BlockFP8         bool // its fp8 checkpoint scales 128 x 128 blocks, not channels (costs time, not memory)
	WeightOnly       bool // its 8-bit integers quantise weights alone and are multiplied in two-byte formats
	Group            int  // 4-bit integers of its checkpoint per scale; 0: 128
}

// denseLayers returns how many layers have an ordinary MLP.
func (a Arch) denseLayers() int { return a.Layers - a.MoE.Layers - a.Bare }

// attentionLayers returns how many layers have attention.
func (a Arch) attentionLayers() int { return a.Layers - a.State.Layers }

// fullLayers returns how many layers attend to the whole context.
func (a Arch) fullLayers() int { return a.attentionLayers() - a.Attention.WindowLayers }

// Check returns an error that names the first figure of the shape that is missing (wrapping [ErrNoFigure]) or
// impossible.
func (a Arch) Check() error {
	need := []struct {
		what  string
		value int
	}{
		{"number of layers", a.Layers}, {"hidden size", a.Hidden}, {"number of attention heads", a.Attention.Heads},
		{"number of KV heads", a.Attention.KVHeads}, {"head dimension", a.Attention.HeadDim},
		{"vocabulary size", a.Vocab}, {"number of KV heads of window layers", a.Attention.windowed().KVHeads},
		{"head dimension of window layers", a.Attention.windowed().HeadDim},
	}
	for _, n := range need {
		if n.value <= 0 {
			return fmt.Errorf("model %q: %s: %w", a.Name, n.what, ErrNoFigure)
		}
	}
	if a.denseLayers() > 0 && a.Intermediate <= 0 {
		return fmt.Errorf("model %q: intermediate size: %w", a.Name, ErrNoFigure)
	}
	if a.MoE.Present() && (a.MoE.Active <= 0 || a.MoE.Intermediate <= 0) {
		return fmt.Errorf("model %q: active experts or their intermediate size: %w", a.Name, ErrNoFigure)
	}
	return a.checkShape()
}

// checkShape refuses shapes that no model can have.
func (a Arch) checkShape() error {
	at := a.Attention
	switch {
	case !at.MLA.Present() && (at.Heads%at.KVHeads != 0 || at.windowedHeads()%max(1, at.windowed().KVHeads) != 0):
		return fmt.Errorf("model %q: %d attention heads are not a multiple of %d KV heads", a.Name, at.Heads, at.KVHeads)
	case a.MoE.Layers < 0 || a.MoE.Layers+a.Bare > a.Layers || a.Bare < 0:
		return fmt.Errorf("model %q: %d layers with experts out of %d", a.Name, a.MoE.Layers, a.Layers)
	case at.Sparse.Layers+at.Sparse.Whole+at.Compressed.FarLayers > a.Layers:
		return fmt.Errorf("model %q: attention of more than %d layers", a.Name, a.Layers)
	case a.MoE.Active > a.MoE.Experts:
		return fmt.Errorf("model %q: %d active experts out of %d", a.Name, a.MoE.Active, a.MoE.Experts)
	case at.WindowLayers < 0 || at.WindowLayers > a.Layers || (at.WindowLayers > 0 && at.Window <= 0):
		return fmt.Errorf("model %q: %d of %d layers with a window of %d tokens", a.Name, at.WindowLayers, a.Layers, at.Window)
	}
	return a.State.check(a)
}
