package model

import (
	"cmp"
	"fmt"
)

// Arch is the shape of a decoder-only transformer: what its weights, its KV cache
// and its arithmetic are counted from. Counts, not bytes.
type Arch struct {
	Name   string // as in the catalog: "llama-3.1-70b"
	Repo   string // Hugging Face id, may be empty
	Chat   string // that of the variant of the same shape that was tuned to converse, where Repo is not
	Family string // architecture class: "LlamaForCausalLM"

	Layers       int
	Hidden       int
	Intermediate int // width of a dense MLP; of the dense layers only, in a mixture of experts
	Vocab        int
	MaxPosition  int
	Bare         int  // layers without an MLP or experts behind their attention or state (Nemotron-H)
	Tied         bool // input embedding and LM head share one matrix

	Attention Attention
	State     RecurrentState
	MoE       MoE
	Details   Details
	Published PublishedDraft
	Native    WeightFormat // what the published checkpoint stores; FormatUnset if not said
	NativeKV  KVFormat     // what it was calibrated to be served with; KVAuto if not said

	Source string
	Notes  string
}

// Attention is the shape of the attention of every layer.
type Attention struct {
	Heads int
	KVShape
	MLA    MLA // zero: ordinary grouped-query attention
	Sparse Sparse
	// Windowed is the shape of layers with a window where it is not that of the others.
	Windowed      KVShape
	WindowedHeads int  // heads of a query in layers with a window where not those of the others, else 0
	KeysOnly      bool // values of layers without a window come of the projection of the keys (Gemma 4)

	Window       int  // tokens that a window layer looks back, 0: no such layer
	WindowLayers int  // how many layers have the window; the others see everything
	Chunked      bool // the window is a fixed chunk (Llama 4), which the cache keeps in full
}

// KVShape is what a layer keeps of a token.
type KVShape struct {
	KVHeads  int
	HeadDim  int // of a key
	ValueDim int // of a value where it is not that of a key
}

// dims are the numbers of one head's key and value together.
func (s KVShape) dims() float64 { return float64(s.HeadDim + cmp.Or(s.ValueDim, s.HeadDim)) }

// bytes are those of one token in one layer on one of so many GPUs: heads are divided
// until there is one on each, then replicated.
func (s KVShape) bytes(f KVFormat, tp int) float64 {
	return max(1, float64(s.KVHeads)/float64(tp)) * s.dims() * f.Bytes()
}

// windowed is the shape of layers with a window.
func (at Attention) windowed() KVShape { return cmp.Or(at.Windowed, at.KVShape) }

// windowedHeads are the heads of a query in layers with a window.
func (at Attention) windowedHeads() int { return cmp.Or(at.WindowedHeads, at.Heads) }

// MLA is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): the cache holds
// one latent of KVRank plus RopeDim values per token and layer instead of keys and
// values per head.
type MLA struct {
	QueryRank int // rank of the query's compression, 0: queries are not compressed
	KVRank    int
	RopeDim   int // of a head's key and query, the part with positions
	NopeDim   int // of a head's key and query, the part without
	ValueDim  int
}

// Sparse is attention of each query to those tokens alone that an index finds (DeepSeek
// sparse attention, DeepSeek-V3.2-Exp report, 2025-09); the zero value is to all.
type Sparse struct {
	Keys   int // tokens that a query attends to
	Heads  int // of the index
	Dim    int // of the index's keys, of which the cache holds one for each token, in fp8 with a scale
	Layers int // that have an index of their own; the others take the one before
}

// bytes is what the index keeps of a token in a layer that has one.
func (s Sparse) bytes() float64 { return float64(s.Dim) + 4 }

// Present reports whether the model uses multi-head latent attention.
func (m MLA) Present() bool { return m.KVRank > 0 }

// MoE is the mixture of experts; the zero value means a dense model.
type MoE struct {
	Experts            int // routed experts of one layer
	Active             int // routed experts that one token visits
	Intermediate       int // width of one routed expert
	SharedIntermediate int // width of all shared experts of a layer together, 0: none
	Layers             int // layers that have experts; the others are dense
	Latent             int // width of what experts read and write, 0: the hidden size (Nemotron 3)
}

// Present reports whether the model has routed experts.
func (m MoE) Present() bool { return m.Experts > 0 && m.Layers > 0 }

// Vision is the tower of a multimodal checkpoint, of which only what it takes away from
// the KV cache is counted; the zero value is a model of text.
type Vision struct {
	Params float64
	Hidden int
}

// PublishedDraft is what was published of speculative decoding with the model.
type PublishedDraft struct {
	Method   DraftMethod
	Accepted []float64 // by position, as in [Speculation]
	Source   string
}

// Details are the parts of an architecture class that matter for counting
// parameters exactly, and for little else.
type Details struct {
	QKVBias       bool // biases on the query, key and value projections
	OutputBias    bool // bias on the attention's output projection
	OutputGate    bool // queries come with a gate of the same width for what attention gives
	QKNorm        bool // a norm over the head dimension of queries and keys
	AllHeadsNorm  bool // that norm is over all heads, of which each GPU has a part
	Sinks         bool // one learned attention sink per head
	Ungated       bool // the MLP has two matrices instead of three
	MLPBias       bool // biases in the (dense) MLP
	ExpertBias    bool // biases on router and experts
	RouterBias    bool // a bias on the router alone (DeepSeek-V3's load balancing)
	WideRouter    bool // the router is held and multiplied in fp32
	ExactRouter   bool // the router is multiplied in fp32 where no kernel multiplies bf16 into fp32
	HeadBias      bool // bias on the LM head
	Joined        int  // hidden states that a matrix joins ahead of the first layer, as drafts of speculative decoding do
	NormBias      bool // norms carry a bias
	NormsPerLayer int  // 0 means 2
	Vision        Vision
	SharedGate    bool // a one-column gate on the shared experts (Qwen2-MoE)
	// What a quantised checkpoint stores its parts in where that is not the format of its
	// weights alone.
	AttentionFormats Mix // of layers with a state too
	MLPFormats       Mix // of dense layers
	SharedFormats    Mix // of shared experts
	ExpertFormats    Mix
	BlockFP8         bool // its fp8 checkpoint scales blocks of 128 x 128, not channels (costs time, not memory)
	WeightOnly       bool // its 8-bit integers are of weights alone, and are multiplied in two bytes
	Group            int  // 4-bit integers of its checkpoint that share a scale, 0: 128
}

// denseLayers returns how many layers have an ordinary MLP.
func (a Arch) denseLayers() int { return a.Layers - a.MoE.Layers - a.Bare }

// attentionLayers returns how many layers have attention.
func (a Arch) attentionLayers() int { return a.Layers - a.State.Layers }

// fullLayers returns how many layers attend to the whole context.
func (a Arch) fullLayers() int { return a.attentionLayers() - a.Attention.WindowLayers }

// Check returns an error that names the first figure of the shape that is missing
// (wrapping [ErrNoFigure]) or impossible.
func (a Arch) Check() error {
	need := []struct {
		what  string
		value int
	}{
		{"number of layers", a.Layers}, {"hidden size", a.Hidden}, {"number of attention heads", a.Attention.Heads},
		{"number of KV heads", a.Attention.KVHeads}, {"head dimension", a.Attention.HeadDim},
		{"vocabulary size", a.Vocab},
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
	case a.MoE.Active > a.MoE.Experts:
		return fmt.Errorf("model %q: %d active experts out of %d", a.Name, a.MoE.Active, a.MoE.Experts)
	case at.WindowLayers < 0 || at.WindowLayers > a.Layers || (at.WindowLayers > 0 && at.Window <= 0):
		return fmt.Errorf("model %q: %d of %d layers with a window of %d tokens", a.Name, at.WindowLayers, a.Layers, at.Window)
	}
	return a.State.check(a)
}
