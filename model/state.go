package model

import "fmt"

// RecurrentState is what some layers keep of a sequence instead of keys and values, of a size that does not
// depend on its length: gated delta networks (arXiv 2412.06464; Qwen3-Next, Qwen3.5; Kimi-K3's, arXiv 2510.26692, whose
// decay comes from two thin matrices that are not counted) and Mamba-2 (arXiv 2405.21060; Nemotron-H, Granite 4). Each head holds a matrix of KeyDim x HeadDim, beside the last inputs of a
// short convolution. The zero value is a model with attention only.
type RecurrentState struct {
	Layers   int // with a state instead of attention
	Heads    int
	HeadDim  int
	KeyHeads int  // groups of heads that share keys and queries (B and C of Mamba-2)
	KeyDim   int  // the state size of Mamba-2
	Conv     int  // length of the convolution
	Wide     bool // the matrix is held in fp32, otherwise in two bytes
	Delta    bool // a gated delta network, otherwise Mamba-2
}

// Present reports whether any layer has a state.
func (s RecurrentState) Present() bool { return s.Layers > 0 }

func (s RecurrentState) values() float64 { return float64(s.Heads * s.HeadDim) }
func (s RecurrentState) keys() float64   { return float64(s.KeyHeads * s.KeyDim) }

// CachesPrefixes reports whether a release keeps prefixes of a model: it switches prefix caching off where layers have a
// state, until 0.12 of Mamba-2 (vLLM pull request 25752, 2025-10) and until 0.15 of gated delta networks (30877).
func (l EngineArgs) CachesPrefixes(a Arch) bool {
	since := 12
	if a.State.Delta {
		since = 15
	}
	return !a.State.Present() || versionOf(l.EngineVersion).AtLeast(0, since)
}

// matrices returns the parameters of one layer's projections: in, for queries, keys, values, the output gate
// and the gates of each head; out, for the values.
func (s RecurrentState) matrices(hidden float64) float64 {
	gates := float64(s.Heads)
	if s.Delta {
		gates *= 2
	}
	return hidden * (2*s.keys() + 3*s.values() + gates)
}

// rest returns the other parameters of one layer: the convolution, gates and a norm.
func (s RecurrentState) rest() float64 {
	mixed := 2*s.keys() + s.values()
	if s.Delta {
		return mixed*float64(s.Conv) + 2*float64(s.Heads) + float64(s.HeadDim)
	}
	return mixed*float64(s.Conv+1) + 3*float64(s.Heads) + s.values()
}

// bytes returns the bytes of one sequence's state in one layer on one of tp GPUs, laid out as in vLLM's
// mamba_utils.py (0.33).
func (s RecurrentState) bytes(tp int) float64 {
	number := BF16.Bytes()
	if s.Wide {
		number = 4
	}
	keys := s.keys() * max(1, float64(tp)/float64(max(s.KeyHeads, 1)))
	conv := float64(s.Conv-1) * (2*keys + s.values()) * BF16.Bytes()
	return (s.values()*float64(s.KeyDim)*number + conv) / float64(tp)
}

// undivided returns the number of heads or groups of a state that this number of GPUs does not divide, 0 if they divide
// all: vLLM asserts that they divide the heads and, except for Mamba-2 with a single group, the groups
// (mamba_mixer2.py, gated delta networks likewise, 0.33).
func (s RecurrentState) undivided(gpus int) int {
	switch {
	case s.Heads%gpus != 0:
		return s.Heads
	case s.KeyHeads%gpus != 0 && (s.Delta || s.KeyHeads > 1):
		return s.KeyHeads
	}
	return 0
}

// flops returns the operations per prompt token in one layer: attention within chunks, plus once into the state
// and out of it.
func (s RecurrentState) flops() float64 {
	const chunk = 64
	return float64(s.Heads) * (4*float64(s.KeyDim*s.HeadDim) + 2*chunk*float64(s.KeyDim+s.HeadDim))
}

// activations returns the bytes per token in one layer on one of tp GPUs: queries, keys, values and the output
// gate.
func (s RecurrentState) activations(tp int) float64 {
	return 2 * (s.keys() + s.values()) * BF16.Bytes() / float64(tp)
}

// stateMoves is how often a layer with a state moves the activations of a prompt. A dozen kernels follow one
// another, each through memory. The recurrence alone takes 2.0 ns per token and head of 128 x 128 on H100
// (FLA's Triton kernels, 64 heads, 8,192 tokens; flashinfer-ai/flashinfer pull request 3788, 2026-06) and 6.6
// on A100 (433 us for 32 heads and 2,048 tokens, vLLM 0.27; pegainfer-project/pegainfer, docs/benchmarks,
// 2026-09), or 11 and 13 moves; convolution, norms, gates and copies are some 5 by their reads and writes, 7 at
// the two thirds of the bandwidth that they reach. A served A100 gives 20 (Qwen3.5-4B, the same source: 24.1 ms
// a token at 16 requests/s).
const stateMoves = 20

func (r *Roofline) setStates() {
	s, tp := r.dep.Arch.State, r.dep.TP
	if !s.Present() {
		return
	}
	layers := float64(s.Layers)
	r.states.bytes = 2 * layers * s.bytes(tp)
	r.states.flops = layers * s.flops() / float64(tp)
	r.states.request = r.states.bytes / (r.c.KV[BF16] * r.dep.Hardware.Bandwidth)
	r.states.token = layers * r.c.States * s.activations(tp) / r.dep.Hardware.Bandwidth
}

// blockTokensOf returns the block size of a deployment in tokens: vLLM enlarges the blocks of attention layers
// until a layer's block is no smaller than a state.
func blockTokensOf(dep Deployment) int {
	s := dep.Arch.State
	if n := dep.Arch.BlockSize(); n > 0 {
		return n
	}
	if !s.Present() {
		return blockTokens
	}
	token := dep.kvBytesPerLayer()
	return blockTokens * max(1, ceilDiv(int(s.bytes(dep.TP)), int(blockTokens*token)))
}

// BlockSize returns the tokens of a KV block that the attention of a model demands of the engine (--block-size in the
// recipes of DeepSeek-V4 and MiniMax-M3, vllm-project/recipes, 2026), 0 if it demands none.
func (a Arch) BlockSize() int {
	if a.Attention.Compressed.Present() {
		return compressedBlock
	}
	return a.Attention.Sparse.Block
}

// check refuses impossible states.
func (s RecurrentState) check(a Arch) error {
	switch {
	case s == RecurrentState{}:
		return nil
	case s.Layers <= 0 || s.Layers >= a.Layers:
		return fmt.Errorf("model %q: %d of %d layers with a state: want some with attention too", a.Name, s.Layers, a.Layers)
	case s.Heads <= 0 || s.HeadDim <= 0 || s.KeyHeads <= 0 || s.KeyDim <= 0 || s.Conv <= 0:
		return fmt.Errorf("model %q: heads, their dimensions or the convolution of layers with a state: %w", a.Name, ErrNoFigure)
	case s.values() > 1<<20 || s.keys() > 1<<20 || s.KeyDim > 1<<14 || s.Conv > 1<<10:
		return fmt.Errorf("model %q: a state of %d heads of %d x %d is none that a model can have", a.Name, s.Heads, s.KeyDim, s.HeadDim)
	case a.Attention.WindowLayers > 0 || a.Attention.Sparse.Keys > 0:
		return fmt.Errorf("model %q: layers with a state beside windows or an index: %w", a.Name, errUnsupported)
	}
	return nil
}
