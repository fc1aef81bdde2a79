package model

import (
	"math"
	"slices"
)

// computeFormat returns the data sheet's rate for products with weights of a format, and whether the GPU
// computes in that format. Formats without units are unpacked to bf16 first, int4 always (AWQ and GPTQ quantise
// weights alone).
func (f Flops) computeFormat(w WeightFormat) (rate float64, native bool) {
	switch {
	case w == FP8 && f.FP8 > 0:
		return f.FP8, true
	case w == INT8 && f.INT8 > 0:
		return f.INT8, true
	case w == NVFP4 && f.FP4 > 0:
		return f.FP4, true
	case w == MXFP4 && f.FP4 > 0:
		return max(f.FP8, f.BF16), true // activations are mxfp8, and the wider operand sets the rate
	}
	return f.BF16, false
}

// denseFormat returns the format of the dense matrices; mxfp4 checkpoints of MoE models leave everything but
// the experts in bf16.
func (d Deployment) denseFormat() WeightFormat {
	if d.Precision.Weights == MXFP4 && d.Arch.MoE.Present() {
		return BF16
	}
	return d.Precision.Weights
}

// peakFlops returns the data sheet's rate of the model's fastest products, in operations per second: those of
// the experts where only these are in a narrow format.
func (d Deployment) peakFlops() float64 {
	dense, _ := d.Hardware.Flops.computeFormat(d.denseFormat())
	all, _ := d.Hardware.Flops.computeFormat(d.Precision.Weights)
	return max(dense, all)
}

// split divides the parameters of a part by storage format; others is the format of those that the checkpoint
// does not set apart. If another format than the checkpoint's is served, no part is narrower than others.
func (d Deployment) split(parameters float64, own Mix, others WeightFormat) []weightGroup {
	if own == (Mix{}) {
		return []weightGroup{{parameters, others}}
	}
	var groups []weightGroup
	for i, share := range own {
		f := WeightFormat(i)
		if f == FormatUnset || d.Precision.Weights != d.Arch.Native && f.Bytes() < others.Bytes() {
			f = others
		}
		if share > 0 {
			groups = append(groups, weightGroup{parameters * share, f})
		}
	}
	return groups
}

// weight returns the bytes of one weight in a format, scales included; for a checkpoint that is served as
// published, with the scales of its own groups.
func (d Deployment) weight(f WeightFormat) float64 {
	if group := d.Arch.Details.Group; f == INT4 && group > 0 && d.Precision.Weights == d.Arch.Native {
		return 0.5 + 2/float64(group)
	}
	return f.Bytes()
}

// weightGroup is a number of weights on one GPU and their storage format.
type weightGroup struct {
	parameters float64
	format     WeightFormat
}

// parts returns the dense matrices of all layers on one GPU.
func (d Deployment) parts(n paramCounts) []weightGroup {
	tp, w, details := float64(d.TP), d.denseFormat(), d.Arch.Details
	return slices.Concat(d.split(n.mlp/tp, details.MLPFormats, w), []weightGroup{{n.router, BF16}}, d.split(n.shared/tp, details.SharedFormats, w),
		d.split(n.attention/tp+d.Arch.kvMatrices(d.TP)+n.state/tp+n.latent, details.AttentionFormats, w))
}

// expertParts returns the routed experts on one GPU, including padding.
func (d Deployment) expertParts(n paramCounts) []weightGroup {
	return d.split(n.experts/float64(d.TP*d.DP)*d.expertPadding(), d.Arch.Details.ExpertFormats, d.Precision.Weights)
}

// prefillRate returns operations per second of large dense products in a format.
func (r *Roofline) prefillRate(w WeightFormat) float64 {
	rate, native := r.dep.Hardware.Flops.computeFormat(w)
	if !native && w != INT4 {
		return rate * min(r.c.Prefill.For(w), r.c.Prefill[BF16])
	}
	rate *= r.c.Prefill.For(w)
	if w == FP8 && r.dep.blockScaled() && r.dep.Hardware.Generation == GenerationHopper {
		if versionOf(r.args.EngineVersion).AtLeast(0, 11) {
			return rate * deepGEMMBlocks
		}
		return rate * cutlassBlocks
	}
	return rate
}

// The ratios of the rates of fp8 products scaled in blocks and by channel on Hopper: 0.52 of the peak by
// DeepGEMM, vLLM's default since 0.11, and 0.37 by CUTLASS before (37.6 and 53.0 us for 4,096 x 3,072 x 1,536
// in SGLang's pull request 5820, 2025-04), against 0.57.
const deepGEMMBlocks, cutlassBlocks = 0.52 / 0.57, 0.37 / 0.57

// Routers in fp32 (vLLM's glm4_moe.py, minimax_m2.py and step3p5.py) run on the fp32 units after hidden states
// are widened from two bytes to four: at 59 TFLOP/s on GB300 (16,384 tokens; 37 at 4,096; vLLM pull request
// 55899, 2026-09) or at what the GPU has, a sixteenth of its bf16 on A100 and H100. One thread block walks
// along the whole hidden state, so the time of a few tokens depends on its size alone: with 6,144 values 7.5 us
// for one token, where bf16 takes 5, 17 to 22 for 2 to 16 tokens, 63 to 69 for 32 to 128, 78 for 256 and 97 for
// 512 (cuBLAS on GB200; pull requests 47973, 2026-07, and 44217).
const (
	routerRate                = 50e12
	routerOne                 = 7e-6
	routerFew, routerMany     = 20e-6 / 6144, 63e-6 / 6144
	routerFewest, routerTiled = 1, 16 // the largest numbers of rows for either
)

// wideRouter reports whether the router is multiplied in fp32. Nemotron-H's is, unless a kernel multiplies bf16
// into fp32: since 0.17 on Hopper and data-centre Blackwell (vLLM pull request 35121; before, it took 40 % of
// the time of a large step, 34582).
func (r *Roofline) wideRouter() bool {
	details, gen := r.dep.Arch.Details, r.dep.Hardware.Generation
	kernel := versionOf(r.args.EngineVersion).AtLeast(0, 17) && (gen == GenerationHopper || gen == GenerationBlackwell)
	return details.WideRouter || details.ExactRouter && !kernel
}

// routerTime returns the least time of fp32 routers in a step with the given rows.
func (r *Roofline) routerTime(rows float64) float64 {
	switch layers := float64(r.dep.Arch.MoE.Layers); {
	case rows <= routerFewest:
		return layers * routerOne
	case rows <= routerTiled:
		return layers * routerFew * float64(r.dep.Arch.Hidden)
	default:
		return layers * routerMany * float64(r.dep.Arch.Hidden)
	}
}

func (r *Roofline) setMatrices() {
	d, hw := r.dep, r.dep.Hardware
	n := d.Arch.counts()

	for _, part := range d.parts(n) {
		bytes := part.parameters * d.weight(part.format)
		r.dense.bytes += bytes
		r.dense.flops += 2 * part.parameters
		r.dense.read += bytes / r.c.Weights.For(part.format) / hw.Bandwidth
		r.dense.token += 2 * part.parameters / r.prefillRate(part.format)
	}
	if r.wide = r.wideRouter(); r.wide {
		r.dense.token += 2*n.router/min(routerRate, hw.Flops.BF16/16) + 10*float64(d.Arch.MoE.Layers*d.Arch.Hidden)/hw.Bandwidth
	}
	r.tiled = d.denseFormat() == FP8 && !d.blockScaled() && r.c.Tiles[0] > 0

	if moe := d.Arch.MoE; moe.Present() {
		for _, part := range d.expertParts(n) {
			bytes, flops := part.parameters*d.weight(part.format), 2*part.parameters*float64(moe.Active)/float64(moe.Experts)
			r.experts.bytes += bytes
			r.experts.flops += flops
			narrow := r.narrowness(part.format)
			r.experts.read += bytes / r.expertStream(part.format) * narrow
			r.experts.token += flops / r.expertRate(part.format) * narrow
		}
		to := &r.routing
		to.logMiss = math.Log1p(-float64(moe.Active) / float64(moe.Experts))
		to.replicas, to.active, to.ranks = float64(d.DP), float64(moe.Active), 1
		to.uneven = r.c.Uneven
		to.visits, to.tile = float64(moe.Active)/float64(moe.Experts), expertTile
		if r.tiledExperts() {
			to.tile = deepGEMMTile
			if r.kernels == ExpertsDeepGEMM && d.Hardware.Generation == GenerationHopper {
				to.padded = deepGEMMTile * max(0, 1-hw.Flops.BF16/hopperBF16)
			}
		}
		if d.EP {
			to.ranks = float64(d.TP * d.DP)
			to.perRank = float64(moe.Experts) / to.ranks
			if !r.args.Exchange.EPLB {
				to.apart = to.uneven / to.perRank
			}
			to.fullest = r.c.Link.ExpertSpread * fullestOf(to.ranks)
		}
	}

	head := float64(d.Arch.Vocab) * float64(d.Arch.Hidden) / float64(d.TP)
	r.head.bytes = head * BF16.Bytes()
	r.head.flops = 2 * head
	r.head.read = r.head.bytes / (r.c.Head.Memory * hw.Bandwidth)
	r.head.token = r.head.flops / (r.c.Head.Compute * hw.Flops.BF16)
	switch r.args.sampler(d) {
	case SamplerSort:
		r.sample = float64(d.Arch.Vocab) * r.c.Sampler.Sort
	case SamplerTriton:
		r.sample = float64(d.Arch.Vocab) * r.c.Sampler.Triton
	}
}

// normSums are the bytes of a token's two sums of squares, for queries and keys, that GPUs all-reduce before a
// norm over all heads (MiniMaxText01RMSNormTP.forward_qk in vllm/model_executor/layers/mamba/linear_attn.py,
// 0.11 to 0.20).
const normSums = 2 * 4

func (r *Roofline) setCommunication() {
	d := r.dep
	layers := float64(d.Arch.Layers)
	r.hiddenSize = 2 * float64(d.Arch.Hidden)
	if d.TP > 1 {
		r.reduce.each = newCollective(d.Hardware, d.TP, r.c.Link, r.args.fusedReduce(d)).across(d, d.TP, r.c.Link)
		r.reduce.count = 2*layers - float64(d.Arch.Bare) // after attention and after the MLP or the experts
		if d.Arch.Details.AllHeadsNorm {
			r.reduce.norms = layers
		}
		if r.args.fusedReduce(d) {
			// The all-reduce of the experts is inside their operator, where the compiler cannot fuse it.
			r.reduce.aparts = float64(d.Arch.MoE.Layers)
			r.reduce.count -= r.reduce.aparts
		}
		// Each GPU embeds its part of the vocabulary, which is summed, and computes logits of it, which all gather
		// (vocab_parallel_embedding.py and logits_processor.py in vllm/model_executor/layers, 0.32).
		r.reduce.aparts++
		r.reduce.apart = newCollective(d.Hardware, d.TP, r.c.Link, false).across(d, d.TP, r.c.Link)
		r.reduce.logits = 2 * float64(d.Arch.Vocab)
	}
	moe := d.Arch.MoE.Present() && d.DP > 1
	if d.PP == 1 && !moe {
		return
	}
	rate := d.Hardware.Link.Rate
	if rate <= 0 {
		rate = max(d.Hardware.PCIe, 16e9)
	}
	latency, rate := r.c.Link.SendLatency*r.c.Link.Scale, r.c.Link.SendShare*rate/r.c.Link.Scale
	// In a hand-over between nodes each GPU sends its part. Replicas are the outermost of vLLM's ranks, stages lie
	// within one.
	stages, crossings := float64(d.PP-1), float64(min(d.PP, d.spans(d.TP*d.PP))-1)
	r.handOver.step, r.handOver.token = stages*latency, stages*r.hiddenSize/rate
	if crossings > 0 {
		r.handOver.step += crossings * r.c.Link.NodeLatency * r.c.Link.Scale
		r.handOver.token += crossings * r.hiddenSize / float64(d.TP) * r.c.Link.Scale / (r.c.Link.NodeShare * d.Hardware.Node.Rate)
	}
	if moe {
		r.setExchange(latency, rate)
	}
}

// latentLaunch is how much longer the host takes to launch latent attention between graphs than other attention: 12
// requests of Kimi-K2.5 at max_num_seqs 12 took 18 and 19 ms on four and eight B200 (61 layers; 0.17,
// cloudrift-ai/deplodock, 2026-03), where 8 took 11 and 9.
const latentLaunch = 3

// formatFloor returns what dense products of all layers take on top of floors for their formats, two for attention and
// two for a network or shared experts, where FixedConstants.FormatLayer is of four.
func (r *Roofline) formatFloor() (seconds float64) {
	d, details := r.dep, r.dep.Arch.Details
	moe := float64(d.Arch.MoE.Layers)
	add := func(layers float64, formats Mix) {
		for _, part := range d.split(layers/2, formats, d.denseFormat()) {
			seconds += part.parameters * r.c.Fixed.FormatLayer.For(part.format)
		}
	}
	add(float64(d.Arch.Layers), details.AttentionFormats)
	add(float64(d.Arch.denseLayers()), details.MLPFormats)
	if d.Arch.MoE.SharedIntermediate > 0 {
		add(moe, details.SharedFormats)
	}
	return seconds
}

// graphs returns the mode of CUDA graphs of the model's attention: that of Triton for latents is in no graph of a whole
// step until 0.21 (vllm/v1/attention/backends/mla/triton_mla.py; _cudagraph_support of 0.11 to 0.22).
func (r *Roofline) graphs() GraphMode {
	mode := r.args.graphs()
	if mode == GraphsFull && flash2(r.dep.Hardware) && r.dep.Arch.Attention.MLA.Present() && !versionOf(r.args.EngineVersion).AtLeast(0, 22) {
		return GraphsPiecewise
	}
	return mode
}

func (r *Roofline) setFixed() {
	d, f := r.dep, r.c.Fixed
	layers, moe := float64(d.Arch.Layers)-float64(d.Arch.Bare)/2, float64(d.Arch.MoE.Layers)
	step := (f.Step + f.SyncStep) * float64(d.PP)
	block := 0.0
	switch {
	case r.tiledExperts() || d.blockScaled() && d.Hardware.CDNA():
		// On an MI300X 100 us a layer are missing without it (one request of Qwen3.5-122B, 0.18; Millstone AI, 2026-03).
		block = moe * f.BlockExpert
	case d.Arch.Attention.MLA.Present():
		block = layers * f.Latent
	}
	if at := d.Arch.Attention; at.MLA.Present() && at.Sparse.Keys > 0 && !at.Compressed.Present() && !r.tiledExperts() {
		block += float64(at.Sparse.Layers) * indexFloor
	}
	floor := layers*f.Layer + r.formatFloor()
	floor += moe * bygoneCosts(d.Arch, versionOf(r.args.EngineVersion))
	if r.args.byMatmulOGS(d) {
		floor += moe * matmulOGS
	}
	r.fixed.floor = floor + moe*f.MoELayer + block + step
	graphs := r.graphs()
	r.fixed.decodeOnly = graphs == GraphsDecodeOnly
	r.fixed.piecewise = graphs == GraphsPiecewise
	r.fixed.launch, r.fixed.launchPieces = layers*f.Launch, layers*f.LaunchPiece
	if d.Arch.Attention.MLA.Present() {
		r.fixed.launchPieces *= latentLaunch
	}
	// Whole steps are captured for no more rows than max_num_seqs, so that 9 to 12 requests of 12 replay a graph per
	// layer for want of one between 8 and 16 (vllm/v1/cudagraph_dispatcher.py, 0.11 to 0.33).
	r.fixed.uniform = math.Inf(1)
	if n := r.args.MaxNumSeqs; n > 0 && !r.args.capturesMost() {
		r.fixed.uniform = float64(n * (1 + r.args.Speculation.Tokens))
	}
	if r.fixed.decodeOnly || graphs == GraphsNone {
		r.fixed.launch = layers * f.LaunchAll
	}
	r.fixed.request = f.Request
	replicas := float64(d.DP) / float64(r.args.frontEnds(d)) // for each process of the API server
	r.fixed.intake, r.fixed.event = r.c.Frontend.Intake*replicas, r.c.Frontend.Event*replicas
	r.fixed.largest = r.args.LargestGraph(d.Hardware)
	if graphs == GraphsNone {
		r.fixed.largest = 0
	}
	r.fixed.freeTokens = elementwiseFree
	each := elementwiseExperts
	if r.fusedExperts() {
		each = fusedPasses
	}
	passes := elementwiseLayer*layers + each*float64(d.Arch.MoE.Active)*moe
	if d.Arch.MoE.SharedIntermediate > 0 {
		passes += elementwiseShared * moe
	}
	passes += d.Arch.Attention.Compressed.streamMoves() * layers
	r.fixed.elementToken = r.hiddenSize * passes / d.Hardware.Bandwidth
}
