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

// Grouped products pad each expert's rows to tiles, whose size kernels choose by the number of rows: by half of
// 64 rows on average (128 with DeepGEMM), and by no more than a quarter. Tiles with few rows wait for memory
// while tiles with many do not, so reading and computing add as squares. For 36 timings of Triton's experts in
// bf16, fp8 and block-scaled fp8 on H200, 1,024 to 16,384 tokens, all of vLLM's fused_experts included, the
// mean error is then 8, 7 and 13 %, against 16, 7 and 31 % without, always too fast (vLLM 0.20.0;
// aiconfigurator, campaign_checkpoints/h200_sxm/moe_perf.txt, read 2026-11).
const expertTile, deepGEMMTile = 64, 128

// hopperBF16 is the rate of an H100 or H200, in operations per second. BlockExpert, served there, holds what
// DeepGEMM's tiles of few rows take: 128 rows are computed for each expert that a token visits. A Hopper of less
// compute takes longer for them; an H20, with a seventh of the rate, is faster without DeepGEMM
// (vllm-project/recipes, pull request 100).
const hopperBF16 = 989e12

// blockExperts is the ratio of the rates of fp8 experts scaled in blocks of 128 x 128, which rescale every
// 128th step, and by channel: 0.33 and 0.47 of the peak (the same timings, Triton). DeepGEMM's lose nothing
// until experts are cut by eight, where Triton's are faster (vLLM pull request 29346).
const blockExperts = 0.33 / 0.47

// Experts in nvfp4 on Blackwell's data-centre GPUs run in FlashInfer's fused kernels. They reach expertFP4Native of the fp4
// rate, fusedPasses of the hidden state for each active expert and fusedStream of the speed at which the same
// kernels read gpt-oss-120b's mxfp4, fitted to 8 shapes with uneven routing on a B200: 72 timings of 1 to 256 tokens
// have a mean error of 12 % then (14 % without), 24 of 1,024 to 16,384 tokens 10 % (27 %) (vLLM 0.20.0; aiconfigurator,
// campaign_checkpoints/b200_sxm/moe_perf.txt, read 2026-11).
const expertFP4Native, fusedPasses, fusedStream = 0.325, 3.1, 1 / 1.22

// fusedExperts reports whether the experts run in these kernels.
func (d Deployment) fusedExperts() bool {
	return d.Arch.MoE.Present() && d.Precision.Weights == NVFP4 && d.Hardware.Generation == GenerationBlackwell
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

// padTo is the multiple to which FlashInfer's mxfp4 kernels pad the width of an expert: gpt-oss on 8 GPUs has
// 512 columns instead of 360.
const padTo = 256

// expertPadding returns the factor by which padding enlarges the experts' matrices on a GPU.
func (d Deployment) expertPadding() float64 {
	_, native := d.Hardware.Flops.computeFormat(MXFP4)
	if d.Precision.Weights != MXFP4 || !native || !d.Arch.MoE.Present() {
		return 1
	}
	width := d.Arch.MoE.Intermediate
	if !d.EP {
		width = ceilDiv(width, d.TP*d.DP)
	}
	return float64(padTo*ceilDiv(width, padTo)) / float64(width)
}

// expertStream returns the bytes per second at which routed experts in a format are read.
func (r *Roofline) expertStream(w WeightFormat) float64 {
	rate := r.c.Experts.For(w) * r.dep.Hardware.Bandwidth
	if _, native := r.dep.Hardware.Flops.computeFormat(w); !native && w.Bytes() < 1 && r.c.Unpacked > 0 {
		rate = min(rate, r.c.Unpacked)
	}
	if r.dep.fusedExperts() {
		rate *= fusedStream
	}
	return rate
}

// expertRate returns operations per second of grouped products in a format.
func (r *Roofline) expertRate(w WeightFormat) float64 {
	rate, native := r.dep.Hardware.Flops.computeFormat(w)
	switch {
	case w == NVFP4 && native:
		return rate * expertFP4Native * r.c.PrefillExperts[FP8] / prefillExperts[FP8]
	case w == NVFP4:
		return rate * r.c.PrefillExperts[INT4] // vLLM uses Marlin for both
	case w == FP8 && r.dep.blockScaled() && (r.dep.TP >= 8 || !r.deepGEMM()):
		rate *= blockExperts
	}
	return rate * r.c.PrefillExperts.For(w)
}

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
			r.experts.read += bytes / r.expertStream(part.format)
			r.experts.token += flops / r.expertRate(part.format)
		}
		to := &r.routing
		to.logMiss = math.Log1p(-float64(moe.Active) / float64(moe.Experts))
		to.replicas, to.active, to.ranks = float64(d.DP), float64(moe.Active), 1
		to.uneven = r.c.Uneven
		to.visits, to.tile = float64(moe.Active)/float64(moe.Experts), expertTile
		if d.blockScaled() && r.deepGEMM() {
			to.tile = deepGEMMTile
			if r.deepGEMMOnHopper() {
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

func (r *Roofline) setAttention() {
	d, hw, at := r.dep, r.dep.Hardware, r.dep.Arch.Attention
	full, window := float64(d.Arch.fullLayers()), float64(at.WindowLayers)
	bandwidth := r.c.kv(d.Precision.KV) * hw.Bandwidth
	r.kv.fullBytes = full * d.kvBytesPerLayer()
	r.kv.windowBytes = window * at.windowed().bytes(d.Precision.KV, d.TP)
	r.kv.full, r.kv.window = r.kv.fullBytes/bandwidth, r.kv.windowBytes/bandwidth

	headsHere := float64(at.Heads) / float64(d.TP)
	dims := at.dims()
	if m := at.MLA; m.Present() {
		dims = float64(m.NopeDim + m.RopeDim + m.ValueDim)
		r.setLatent(full, headsHere, at.latentDims())
	}
	r.kv.past = r.kv.full
	r.kv.skew = r.c.Attention.Skew
	if at.WindowLayers > 0 {
		r.kv.size, r.kv.chunked = at.Window, at.Chunked
	}
	if at.Sparse.Keys > 0 {
		r.setSparse(full, headsHere, dims, bandwidth)
		r.kv.past = r.kv.full
		return
	}
	if m := at.MLA; m.Present() {
		// Prefill uses the keys and values of every head, and expands those of a chunk's context anew for each
		// chunk.
		copies := full * headsHere * keyCopy(versionOf(r.args.EngineVersion))
		r.prefill.token += copies
		r.kv.past += copies
		for _, part := range d.split(full*headsHere*float64(m.KVRank*(m.NopeDim+m.ValueDim)), d.Arch.Details.AttentionFormats, d.denseFormat()) {
			r.kv.past += 2 * part.parameters / r.prefillRate(part.format)
		}
	}
	rate := r.c.Attention.Prefill * hw.Flops.BF16
	if flash2(hw) && d.Arch.Details.Sinks {
		rate *= sinksBeside
	}
	r.prefill.fullFlops, r.prefill.windowFlops = full*2*headsHere*dims, window*2*float64(at.windowedHeads())/float64(d.TP)*at.windowed().dims()
	r.prefill.full, r.prefill.window = r.prefill.fullFlops/rate, r.prefill.windowFlops/rate
	if at.HeadDim > widestHead && !at.MLA.Present() {
		r.prefill.full /= wideHeads
	}
	r.prefill.extra = r.c.Attention.ExtraKeys
	if flash2(hw) && hw.Generation != GenerationBlackwellRTX && !at.MLA.Present() && !d.Arch.Details.Sinks && at.KVHeads < at.Heads {
		r.kv.rows = flash2Rows
	}
}

// Decoding with latent attention, in vLLM 0.20.0's modules of DeepSeek-V3 (aiconfigurator, campaign_checkpoints,
// mla_generation_module_perf.txt of H200, B200 and A100, 100 timings each, read 2026-11). FlashMLA takes latentKey
// for each token of the cache on an H200, in bf16 (0.40 ns) and fp8 (0.36) and with 1 to 64 heads alike, which on an
// H100 is the time to read bf16; with 128 heads computing takes 0.405. Kernels of B200 reach latentShare of the
// bandwidth of ordinary attention, and compute in the cache's format. Triton's, elsewhere, read the cache again
// for every tritonHeads heads, at tritonShare. Each head moves latentHead bytes for every request besides: its query
// goes into the latent space and its result comes back (4.1 to 5.4 ns on H200, 2.8 to 4.1 on B200). A token of a
// prompt takes 75 to 97 ns in a layer with up to 8 heads and 180 to 220 with more on an H200 beyond what is counted
// elsewhere (mla_context_module_perf.txt; served, DeepSeek-R1 on eight: 110 to 170).
const (
	latentKey                = 0.385e-9
	latentShare              = 0.85
	tritonHeads, tritonShare = 16, 0.72
	latentHead               = 20e3
	latentPrompt             = 430e3 // as bytes
)

// setLatent sets the times of decodes with latent attention in some layers.
func (r *Roofline) setLatent(layers, heads, dims float64) {
	d, hw := r.dep, r.dep.Hardware
	usual, _ := profileFor(hw)
	slower := usual.kv(d.Precision.KV) / r.c.kv(d.Precision.KV)
	rate := hw.Flops.BF16
	switch hw.Generation {
	case GenerationHopper:
		r.kv.full = max(r.kv.full, layers*latentKey*slower)
	case GenerationBlackwell:
		r.kv.full /= latentShare
		if d.Precision.KV == KVFP8 {
			rate = hw.Flops.FP8
		}
	case GenerationAmpere, GenerationAda, GenerationBlackwellRTX:
		r.kv.full *= math.Ceil(heads/tritonHeads) / tritonShare
	}
	// Every head multiplies the one latent: with many heads on a GPU that takes longer than reading it. Ordinary
	// attention stays far from that.
	r.kv.math = layers * 2 * heads * dims / (decodeCompute * rate) * slower
	r.kv.full = max(r.kv.full, r.kv.math)
	r.kv.query = layers * heads * latentHead / hw.Bandwidth * slower
	r.prefill.token = layers * latentPrompt / hw.Bandwidth
}

// keyCopy returns the seconds per token and head to assemble a key from its part of the latent and the part
// that all heads share: 3.16 ms for 32,768 tokens and 128 heads by concatenation, 1.61 by copies since 0.13
// (vLLM pull request 29710, on B200; 0.38 ms for 8,192 by copies in SGLang's 10156, 2025-09).
func keyCopy(v Version) float64 {
	if v.minor() < 13 {
		return 0.75e-9
	}
	return 0.38e-9
}

// flash2Rows is the number of query rows that FlashAttention 2 computes per decode in a batch with prompts: it
// packs the queries of heads that share keys into a tile of 64 only if no request has more than one query
// (vllm-project/flash-attention, csrc/flash_attn, read 2026-11). Cards of compute capability 12 do not show
// this: Qwen3-4B on an RTX 5090 (vLLM 0.22.1, pegainfer-project/pegainfer, docs/benchmarks, 2026-06) takes
// 12.1, 14.6 and 20.5 ms a token at 8, 10 and 12 requests/s; simulated are 12.3, 15.4 and 20.8 without it and
// 12.9, 17.6 and 28.6 with it; the trace on an RTX PRO 6000 agrees.
const flash2Rows = 64

// Heads wider than widestHead do not fit FlashAttention's tiles. Prompts with heads of 512 reach wideHeads of
// the rate of others: Gemma-4-31B on a GH200 takes 1.16 ns times the square of the prompt length on top of a
// time per token, from 10,602 to 163,336 tokens (vLLM 0.28, the same source, 2026-09): 0.29 of the peak where
// others reach 0.70.
const widestHead, wideHeads = 256, 0.29 / 0.70

// sinksBeside is the ratio of the rates of attention with sinks, which FlashAttention 2 lacks, and of
// FlashAttention 2: Triton's kernel reaches 38 TFLOP/s on an A100 for prompts of 32,000 tokens (public runs of
// gpt-oss-20b and 120b on vLLM 0.11).
const sinksBeside = 0.12 / 0.57

// flash2 reports whether attention is FlashAttention 2: version 3 is for Hopper, and B200 uses FlashInfer.
func flash2(hw Hardware) bool {
	return hw.Generation == GenerationAmpere || hw.Generation == GenerationAda || hw.Generation == GenerationBlackwellRTX
}

// indexCompute is the share of fp8 compute that the index reaches when a prompt scores the tokens before it.
// Analogy: somewhat less than prefill attention.
const indexCompute = 0.5

// indexMoves are the bytes that the index moves per query-key pair: each score is written in fp32 and read two
// to four times to find the largest (vLLM's top_k_per_row_prefill; pull request 41834, 2026-07).
const indexMoves = 4 * (1 + 3)

// Quantising, scoring, choosing 2,048 tokens and finding their places in the cache take so many seconds a layer for
// each decoding request, however short its context (vLLM 0.20.0's modules of DeepSeek-V3.2, 48 timings on H200: 0.68
// us, 45 on B200: 0.28 and 0.23 ns for each chosen token; aiconfigurator, campaign_checkpoints,
// dsa_generation_module_perf.txt, read 2026-11). For each token of a prompt they move so many bytes (served: 0.24 to
// 0.53 us, with latentPrompt, explain four loads of DeepSeek-V3.2 on eight H200, 0.13).
const indexDecode, indexPrompt = 0.6e-6, 1e6

// sparseHeads is the least number of heads that FlashMLA's sparse kernels compute on Hopper: vLLM pads the 16
// heads per rank of DeepSeek-V3.2 on 8 GPUs to 64 (vllm/v1/attention/backends/mla/flashmla_sparse.py, 0.13 to
// 0.28). There, too, every query of a prompt is computed against as many tokens as the index may select, even
// if fewer exist. On Blackwell vLLM prefers FlashInfer's kernels for so few heads.
const sparseHeads = 64

// setSparse replaces attention to the whole context by that of the index, and attention to the tokens that it selects.
// Every rank computes the whole index, except that the heads of one that selects blocks are divided. dims are those of a
// key and a value.
func (r *Roofline) setSparse(layers, headsHere, dims, bandwidth float64) {
	d, hw, at, c := r.dep, r.dep.Hardware, r.dep.Arch.Attention, &r.c
	s, m, ratio := at.Sparse, at.MLA, at.Compressed.near()
	indexed, whole := float64(s.Layers)/ratio, float64(s.Whole)
	selecting := layers - whole
	if at.Compressed.Present() {
		selecting = float64(s.Layers)
	}
	heads, format, entry := float64(s.Heads), FP8, d.entryBytes()
	if s.Block > 0 {
		heads, format = max(1, heads/float64(d.TP)), BF16
	}
	if m.Present() {
		dims = at.latentDims()
	}
	r.kv.math *= selecting / ratio / layers
	r.kv.windowBytes, r.kv.size = selecting/ratio*entry, s.Keys
	r.kv.window = max(r.kv.windowBytes/bandwidth, r.kv.math)
	r.kv.fullBytes = indexed*s.bytes() + whole*entry
	r.kv.full = indexed*s.bytes()/(c.KV[format]*hw.Bandwidth) + whole*entry/bandwidth
	rate, _ := hw.Flops.computeFormat(format)
	r.prefill.fullFlops = whole * 2 * headsHere * dims
	r.prefill.full = indexed*(2*heads*float64(s.Dim)/(indexCompute*rate)+indexMoves/float64(max(s.Block, 1))/hw.Bandwidth) +
		r.prefill.fullFlops/(c.Attention.Prefill*hw.Flops.BF16)
	r.prefill.windowFlops = selecting / ratio * 2 * headsHere * dims
	r.prefill.window = r.prefill.windowFlops / (decodeCompute * hw.Flops.BF16)
	if m.Present() && hw.Generation == GenerationHopper {
		r.prefill.whole = true
		r.prefill.window *= max(1, sparseHeads/headsHere)
		r.kv.window = max(r.kv.window, r.prefill.window)
	}
	if at.Compressed.Present() {
		r.setCompressed(layers, headsHere, dims, bandwidth)
	} else if s.Block == 0 {
		r.kv.query += indexed * indexDecode
		r.prefill.token += indexed * indexPrompt / hw.Bandwidth
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

// deepGEMM reports whether DeepGEMM computes block-scaled experts; it permutes tokens into tiles of 128 rows,
// however few they are. On Hopper it does in 0.11 to 0.14, but only in 0.11 where experts are cut by eight
// (vLLM pull request 29346); later FlashInfer's and Triton's kernels take precedence (fused_moe/oracle/fp8.py;
// 34260). Models with latent attention keep its cost even so: DeepSeek-R1 takes 17 ms a token with Triton's
// experts, simulated 16 with the cost and 11 without; FixedConstants.Latent, which other models have instead,
// was timed.
func (r *Roofline) deepGEMM() bool {
	return r.dep.Hardware.Generation != GenerationHopper || r.dep.Arch.Attention.MLA.Present() || r.deepGEMMOnHopper()
}

func (r *Roofline) deepGEMMOnHopper() bool {
	d, minor := r.dep, versionOf(r.args.EngineVersion).minor()
	return d.Hardware.Generation == GenerationHopper && minor >= 11 && minor < 15 && (minor < 12 || d.TP < 8)
}

func (r *Roofline) setFixed() {
	d, f := r.dep, r.c.Fixed
	layers, moe := float64(d.Arch.Layers)-float64(d.Arch.Bare)/2, float64(d.Arch.MoE.Layers)
	step := (f.Step + f.SyncStep) * float64(d.PP)
	block := 0.0
	switch {
	case d.blockScaled() && r.deepGEMM():
		block = moe * f.BlockExpert
	case d.Arch.Attention.MLA.Present():
		block = layers * f.Latent
	}
	floor := layers * (f.Layer + f.FormatLayer.For(d.denseFormat()))
	floor += moe * bygoneCosts(d.Arch, versionOf(r.args.EngineVersion))
	if expertsByTriton(d, versionOf(r.args.EngineVersion)) {
		floor += moe * matmulOGS
	}
	r.fixed.floor = floor + moe*f.MoELayer + block + step
	graphs := r.args.graphs()
	r.fixed.decodeOnly = graphs == GraphsDecodeOnly
	r.fixed.piecewise = graphs == GraphsPiecewise
	r.fixed.launch, r.fixed.launchPieces = layers*f.Launch, layers*f.LaunchPiece
	if r.fixed.decodeOnly || graphs == GraphsNone {
		r.fixed.launch = layers * f.LaunchAll
	}
	r.fixed.request = f.Request
	replicas := float64(d.DP) / float64(r.args.frontEnds(d)) // for each process of the API server
	r.fixed.intake, r.fixed.event = r.c.Frontend.Intake*replicas, r.c.Frontend.Event*replicas
	r.fixed.largest = r.args.largestGraph(d.Hardware)
	if graphs == GraphsNone {
		r.fixed.largest = 0
	}
	r.fixed.freeTokens = elementwiseFree
	each := elementwiseExperts
	if d.fusedExperts() {
		each = fusedPasses
	}
	passes := elementwiseLayer*layers + each*float64(d.Arch.MoE.Active)*moe
	if d.Arch.MoE.SharedIntermediate > 0 {
		passes += elementwiseShared * moe
	}
	passes += d.Arch.Attention.Compressed.streamMoves() * layers
	r.fixed.elementToken = r.hiddenSize * passes / d.Hardware.Bandwidth
}
