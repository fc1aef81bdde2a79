package model

import "math"

// setAttention sets what decodes and prompts take for attention and the KV cache.
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
// mla_generation_module_perf.txt of H200, B200 and A100, 100 timings each, read 2026-11). On an H200 FlashAttention
// (bf16, 0.40 ns) and FlashMLA (fp8, 0.36; bf16 too until 0.11) take latentKey for each token of the cache, with 1
// to 64 heads alike, which on an H100 is the time to read bf16; with 128 heads computing takes 0.405. They compute
// 64 heads at least, which is what takes long on an H20 (arXiv 2506.01969, of FlashMLA). Kernels of B200 reach
// latentShare of the bandwidth of ordinary attention, and compute in the cache's format. Triton's, elsewhere, read
// the cache again for every tritonHeads heads, at tritonShare. Each head moves latentHead bytes for every query
// besides, which goes into the latent space and whose result comes back (4.1 to 5.4 ns on H200, 2.8 to 4.1 on
// B200). A token of a prompt takes 75 to 97 ns in a layer with up to 8 heads on an H200 beyond what is counted
// elsewhere (mla_context_module_perf.txt), 30 passes of its hidden state, but without the compiler; served, half as
// many fit eight H200 and B200 of DeepSeek-R1 and Kimi-K2.5 best.
const (
	latentKey                = 0.385e-9
	latentShare              = 0.85
	tritonHeads, tritonShare = 16, 0.72
	latentHead               = 20e3
	latentPrompt             = 15 // passes of the hidden state
)

// setLatent sets the times of decodes with latent attention in some layers.
func (r *Roofline) setLatent(layers, heads, dims float64) {
	d, hw := r.dep, r.dep.Hardware
	usual, _ := profileFor(hw)
	slower := usual.kv(d.Precision.KV) / r.c.kv(d.Precision.KV)
	rate := hw.Flops.BF16
	switch hw.Generation {
	case GenerationHopper:
		padded := layers * 2 * max(heads, sparseHeads) * dims / (decodeCompute * rate)
		r.kv.full = max(r.kv.full, layers*latentKey*slower, padded*slower)
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
	r.prefill.token = layers * latentPrompt * 2 * float64(d.Arch.Hidden) / hw.Bandwidth
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

// indexFloor is what the index's kernels take a layer however few tokens there are, unless there are the costs of DeepGEMM,
// without which eight H200 are met. With it the modules take 70 to 115 us longer on a B200 than those without an index,
// for one to 64 requests (the same timings and mla_generation_module_perf.txt), but are not compiled. Served, 50 and 85 us
// of one request's are missing without it (DeepSeek-V3.2 in nvfp4 and fp8 on eight B200, vLLM 0.17;
// gddezero/b200-perf-opt, 2026-03), and 10 of eight on vLLM 0.20.
const indexFloor = 45e-6

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
