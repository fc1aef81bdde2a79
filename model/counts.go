package model

import "cmp"

// paramCounts are the numbers of parameters of the whole model by treatment: how they are stored, whether
// tensor parallelism divides them, whether every token reads them.
type paramCounts struct {
	attention  float64 // projections that tensor parallelism divides
	kv         float64 // key and value projections, replicated once the degree exceeds the KV heads
	state      float64 // projections of layers with a state
	latent     float64 // down-projections of latent attention and projections of latent experts, on every rank
	mlp        float64 // dense layers' MLPs
	shared     float64 // shared experts
	router     float64 // on every rank, never quantised
	experts    float64 // routed experts
	embeddings float64 // input embedding
	head       float64 // LM head; 0 when tied
	rest       float64 // norms, biases, sinks
}

// counts derives the parameters from the shape.
func (a Arch) counts() paramCounts {
	var c paramCounts
	layers, hidden := float64(a.Layers), float64(a.Hidden)
	a.countAttention(&c)

	matrices := 3.0
	if a.Details.Ungated {
		matrices = 2
	}
	mlp := func(width int) float64 { return matrices * hidden * float64(width) }
	dense, moe := float64(a.denseLayers()), float64(a.MoE.Layers)
	c.mlp = dense * mlp(a.Intermediate)
	if a.MoE.Present() {
		e := float64(a.MoE.Experts)
		c.experts = moe * e * mlp(a.MoE.Intermediate)
		if latent := float64(a.MoE.Latent); latent > 0 {
			c.experts *= latent / hidden
			c.latent += moe * 2 * hidden * latent
		}
		c.shared = moe * mlp(a.MoE.SharedIntermediate)
		c.router = moe * hidden * e
		if a.Details.SharedGate {
			c.router += moe * hidden
		}
	}
	c.mlp += float64(a.Details.Joined) * hidden * hidden
	c.embeddings = float64(a.Vocab) * hidden
	if !a.Tied {
		c.head = c.embeddings
	}
	c.rest = a.countRest(layers, dense, moe)
	return c
}

func (a Arch) countAttention(c *paramCounts) {
	layers, hidden, at := float64(a.attentionLayers()), float64(a.Hidden), a.Attention
	c.state = float64(a.State.Layers) * a.State.matrices(hidden)
	heads := float64(at.Heads)
	if !at.MLA.Present() {
		c.attention = hidden * (float64(a.fullLayers()*at.Heads)*at.dims() + float64(at.WindowLayers*at.windowedHeads())*at.windowed().dims())
		if a.Details.OutputGate {
			c.attention *= 1.5
		}
		c.kv = a.kvMatrices(1)
		if s := at.Sparse; s.Keys > 0 {
			c.latent += hidden * float64(s.Layers*(s.Heads+1)*s.Dim)
		}
		return
	}
	m := at.MLA
	qk := float64(m.NopeDim + m.RopeDim)
	if m.QueryRank > 0 {
		c.latent += layers * hidden * float64(m.QueryRank)
		c.attention += layers * float64(m.QueryRank) * heads * qk
	} else {
		c.attention += layers * hidden * heads * qk
	}
	c.latent += layers * hidden * float64(m.KVRank+m.RopeDim)
	if s := at.Sparse; s.Keys > 0 {
		c.latent += float64(s.Layers) * (float64(m.QueryRank*s.Heads*s.Dim) + hidden*float64(s.Dim+s.Heads))
	}
	if at.Compressed.Present() {
		at.countCompressed(c, layers, hidden)
		return
	}
	c.attention += layers * float64(m.KVRank) * heads * float64(m.NopeDim+m.ValueDim)
	output := layers * heads * float64(m.ValueDim) * hidden
	if a.Details.OutputGate {
		output *= 2
	}
	c.attention += output
}

func (a Arch) countRest(layers, dense, moe float64) float64 {
	hidden, at, d := float64(a.Hidden), a.Attention, a.Details
	q, kv := float64(at.Heads*at.HeadDim), float64(at.KVHeads*at.HeadDim)
	n := (layers*float64(cmp.Or(d.NormsPerLayer, 2)) - float64(a.Bare) + 1) * hidden
	if d.NormBias {
		n *= 2
	}
	n += float64(a.State.Layers) * a.State.rest()
	layers -= float64(a.State.Layers)
	if at.MLA.Present() {
		n += layers * float64(at.MLA.QueryRank+at.MLA.KVRank)
	}
	if d.QKVBias {
		n += layers * (q + 2*kv)
	}
	if d.OutputBias {
		n += layers * hidden
	}
	if d.QKNorm {
		n += layers * 2 * float64(at.HeadDim)
	}
	if d.Sinks {
		n += layers * float64(at.Heads)
	}
	if d.MLPBias {
		up := float64(a.Intermediate)
		if !d.Ungated {
			up *= 2
		}
		n += dense * (up + hidden)
	}
	if d.ExpertBias {
		e := float64(a.MoE.Experts)
		n += moe * (e + e*(2*float64(a.MoE.Intermediate)+hidden))
	}
	if d.RouterBias {
		n += moe * float64(a.MoE.Experts)
	}
	if d.HeadBias {
		n += float64(a.Vocab)
	}
	return n
}

// kvMatrices returns the parameters of the key and value projections on one of tp GPUs, each of which has at
// least one whole head.
func (a Arch) kvMatrices(tp int) float64 {
	if a.Attention.MLA.Present() {
		return 0
	}
	heads := func(s KVShape) float64 { return float64(s.KVHeads) / float64(min(tp, s.KVHeads)) }
	full, windowed := a.Attention.KVShape, a.Attention.windowed()
	dims := full.dims()
	if a.Attention.KeysOnly {
		dims = float64(full.HeadDim)
	}
	return float64(a.Hidden) * (float64(a.fullLayers())*heads(full)*dims + float64(a.Attention.WindowLayers)*heads(windowed)*windowed.dims())
}

// Params returns the number of all parameters and of those that one token uses, both including both embedding
// matrices.
func (a Arch) Params() (total, active float64) {
	c := a.counts()
	common := c.attention + c.kv + c.state + c.latent + c.mlp + c.shared + c.router + c.embeddings + c.head + c.rest
	total = common + c.experts
	active = common
	if a.MoE.Present() {
		active += c.experts * float64(a.MoE.Active) / float64(a.MoE.Experts)
		if a.Details.ExpertBias {
			// A token uses the biases of its own experts only.
			perExpert := 2*float64(a.MoE.Intermediate) + float64(a.Hidden)
			active -= float64(a.MoE.Layers) * float64(a.MoE.Experts-a.MoE.Active) * perExpert
		}
	}
	return total, active
}

// KVBytesPerToken returns the bytes of one token in the KV cache over all layers and GPUs, without replication
// by tensor parallelism.
func (a Arch) KVBytesPerToken(f KVFormat) float64 {
	windows := float64(a.Attention.WindowLayers)
	return (float64(a.attentionLayers())-windows)*a.kvBytesPerLayer(f, 1) + windows*a.Attention.windowed().bytes(f, 1)
}

// entryBytes returns the bytes of one entry in the cache of one layer without a window on one GPU, without its index.
// Beside an index in fp8 a latent has an fp32 scale for each 128 values, and its part with positions stays in bf16: 656
// bytes for DeepSeek-V3.2 (FlashMLA's fp8_ds_mla, vllm/v1/attention/backends/mla/flashmla_sparse.py, 0.32), except with
// FlashInfer's kernels, which vLLM prefers on Blackwell (platforms/cuda.py).
func (d Deployment) entryBytes() float64 {
	at, bytes := d.Arch.Attention, d.Arch.entryBytes(d.Precision.KV, d.TP)
	gen := d.Hardware.Generation
	if at.Compressed.Present() && d.Precision.KV == KVFP8 {
		return bytes + float64(at.MLA.RopeDim) + compressedScales
	}
	if at.MLA.Present() && at.Sparse.Keys > 0 && d.Precision.KV == KVFP8 && (gen == GenerationHopper || gen == GenerationBlackwellRTX) {
		bytes += float64(at.MLA.KVRank)/128*4 + float64(at.MLA.RopeDim)
	}
	return bytes
}

// kvBytesPerLayer returns the bytes of one token in the cache of one layer without a window on one GPU, in the mean of
// the layers.
func (d Deployment) kvBytesPerLayer() float64 { return d.Arch.perToken(d.entryBytes()) }

// kvBytesPerLayer returns the bytes of one token in the cache of one layer without a window on one rank.
func (a Arch) kvBytesPerLayer(f KVFormat, tp int) float64 { return a.perToken(a.entryBytes(f, tp)) }

// entryBytes returns the bytes of one entry in the cache of one layer without a window on one rank. MLA's latent is on
// every rank.
func (a Arch) entryBytes(f KVFormat, tp int) float64 {
	if m := a.Attention.MLA; m.Present() {
		return float64(m.KVRank+m.RopeDim) * f.Bytes()
	}
	return a.Attention.bytes(f, tp)
}

// perToken returns the bytes that a layer's cache holds per token, index included, for entries of so many bytes.
func (a Arch) perToken(entry float64) float64 {
	s, layers := a.Attention.Sparse, float64(a.Layers)
	if s.Keys == 0 {
		return entry
	}
	index := s.bytes() * float64(s.Layers) / layers
	if c := a.Attention.Compressed; c.Present() {
		return (entry*float64(s.Layers)/layers+index)/float64(c.Near) + entry*float64(c.FarLayers)/layers/float64(c.Far)
	}
	return entry + index
}
