package model

// Compression is attention to a cache that holds one vector for several tokens, key and value at once, beside those of
// the last tokens one by one (DeepSeek-V4, 2026-04; the shapes and formats here are those of vllm/models/deepseek_v4,
// 2026-07). An index selects among the nearer vectors ([Sparse], whose Keys count tokens), all of the farther ones are
// attended to. The zero value is a cache of every token.
type Compression struct {
	Near      int // tokens per vector in the layers with an index
	Far       int // tokens per vector in the others
	FarLayers int
	Window    int // last tokens to which every layer attends one by one

	OutputGroups int // groups of heads whose outputs are projected to OutputRank values each
	OutputRank   int
	Streams      int // residual streams that each layer mixes (hyper-connections, arXiv 2409.19606); 0: one
}

// Present reports whether the cache is compressed.
func (c Compression) Present() bool { return c.Near > 0 }

// near returns the tokens per entry of the layers with an index.
func (c Compression) near() float64 { return float64(max(c.Near, 1)) }

// Widths of compressors: a nearer vector is made of two overlapping parts, and each part has values and weights.
const nearParts, compressorParts = 2, 2

// compressors returns the columns of the projections of a layer's compressors, for vectors of so many values.
func (at Attention) compressors(values int) (near, far float64) {
	return float64(compressorParts * nearParts * (values + at.Sparse.Dim)), float64(compressorParts * values)
}

// countCompressed adds the compressors and the output projection.
func (at Attention) countCompressed(n *paramCounts, layers, hidden float64) {
	c, values := at.Compressed, at.MLA.KVRank+at.MLA.RopeDim
	near, far := at.compressors(values)
	// Counted with the index is a key of its own, which comes from its compressor.
	n.latent += hidden * (float64(at.Sparse.Layers)*(near-float64(at.Sparse.Dim)) + float64(c.FarLayers)*far)
	n.attention += layers * (float64(at.Heads*values*c.OutputRank) + float64(c.OutputGroups*c.OutputRank)*hidden)
}

// compressedScales are the bytes of an fp8 vector's scales; its part with positions stays in bf16.
const compressedScales = 8

// paged returns the bytes that blocks hold per token and layer. A block of the farther vectors has the size of one of
// the nearer: with 8 B200 vLLM 0.25 reports room for 20.43 requests of 2^20 tokens of DeepSeek-V4-Flash in the caches of
// TP 8, which is .89 of what these come to (issue 51454, 2026-08).
func (d Deployment) paged() float64 {
	c, entry := d.Arch.Attention.Compressed, d.entryBytes()
	if !c.Present() {
		return d.kvBytesPerLayer()
	}
	return d.kvBytesPerLayer() + entry*float64(c.FarLayers)/float64(d.Arch.Layers)*(1/float64(c.Near)-1/float64(c.Far))
}

// compressedBlock is the number of tokens of a block of the cache, nearBlock and farBlock are those of what the compressors
// of the nearer and the farther vectors hold, and windowBlock is that of the last tokens.
const compressedBlock, nearBlock, farBlock, windowBlock = 256, 4, 8, 64

// held returns the bytes that a request holds whatever its length: its last tokens, and in fp32 what compressors have
// not yet made a vector of, each rounded up to blocks.
func (d Deployment) held() float64 {
	at := d.Arch.Attention
	c := at.Compressed
	near, far := at.compressors(at.MLA.KVRank + at.MLA.RopeDim)
	return float64(d.Arch.Layers*(c.Window+windowBlock))*d.entryBytes() +
		4*(float64(at.Sparse.Layers*(nearParts*c.Near+nearBlock))*near+float64(c.FarLayers*(c.Far+farBlock))*far)
}

// setCompressed adds attention to the farther vectors and to the last tokens.
func (r *Roofline) setCompressed(layers, headsHere, dims, bandwidth float64) {
	c, entry := r.dep.Arch.Attention.Compressed, r.dep.entryBytes()
	compute := 2 * max(headsHere, sparseHeads) * dims / (decodeCompute * r.dep.Hardware.Flops.BF16)
	each := max(entry/bandwidth, compute)
	far, last := float64(c.FarLayers)/float64(c.Far), layers*float64(c.Window)
	r.kv.fullBytes += far * entry
	r.kv.full += far * each
	r.prefill.fullFlops += far * 2 * headsHere * dims
	r.prefill.full += far * compute
	r.states.bytes, r.states.request = last*entry, last*each
	r.prefill.token, r.states.flops = last*compute, last*2*headsHere*dims
}

// streamMoves is how often a layer moves a token's hidden state to mix residual streams: before attention and before
// the experts it reads all of them and writes one, behind them it reads all and that one, and writes all.
func (c Compression) streamMoves() float64 {
	if c.Streams == 0 {
		return 0
	}
	return 2 * float64(3*c.Streams+2)
}
