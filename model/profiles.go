package model

import (
	"slices"
	"strings"
)

// hopperWeightsBF16 is the share of bandwidth that a served H100 reaches in bf16; routed experts on other GPUs
// scale with the ratio of theirs to it.
const hopperWeightsBF16 = 0.88

// hopperUnpacked is the rate at which a Hopper's SMs unpack 4-bit experts, in bytes/s, whatever its memory: a
// layer of gpt-oss-120b takes 687 us on H100 and 661 on H200 in kernel tables, activation and sum included,
// which is 2.5 TB/s (served: 2.85 without these).
const hopperUnpacked = 2.85e12

// blackwellUnpacked is the same for a B200: 148 SMs at 1.965 GHz, where an H100 has 132 at 1.98 (data sheets;
// analogy).
const blackwellUnpacked = hopperUnpacked * 148 * 1.965 / (132 * 1.98)

// profileRow is the profile of GPUs whose generation begins with a name and whose bandwidth is at least so
// high, in bytes/s; timed says that their kernels were timed.
type profileRow struct {
	generation Generation
	bandwidth  float64
	timed      bool
	Constants
}

// profiles are tried in order: a GPU gets the first that fits. Bandwidth shares in bf16 are the GEMM tables'
// times 1.06 unless a served run says otherwise: kernels chained in a CUDA graph overlap their tails, which
// tables of single kernels cannot show (H100: 0.83 in the table, 0.88 served). In fp8 the table's value is the
// served one. int8 is taken as fp8, int4 (Marlin) as 0.85 of bf16, both by analogy. Layer applies inside CUDA
// graphs; a missing MoELayer is H100's.
var profiles = []profileRow{
	// H200: the same chip with 43 % more bandwidth, of which single kernels reach a smaller share. Its tables
	// give 0.77 and 0.69 for bf16 products and attention, and 0.65 of compute for fp8 products, which does not
	// survive the power limit; one chip has one value.
	{GenerationHopper, h200Bandwidth, true, Constants{
		Weights:   ByFormat{BF16: 0.85, FP8: 0.76, INT8: 0.76, INT4: 0.70, NVFP4: 0.70},
		Prefill:   ByFormat{BF16: 0.78, FP8: 0.57, INT8: 0.57, INT4: 0.70, NVFP4: 0.60},
		KV:        ByFormat{BF16: 0.83, FP8: 0.59},
		Attention: AttentionConstants{Prefill: 0.70, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 33e-6},
		Unpacked: hopperUnpacked, Tiles: [...]float64{1.17, 1.17, 1.36, 2.0},
	}},
	// H100: GEMM tables and served runs; attention FlashAttention 3.
	{GenerationHopper, 0, true, Constants{
		Weights:   ByFormat{BF16: hopperWeightsBF16, FP8: 0.82, INT8: 0.82, INT4: 0.75, NVFP4: 0.75},
		Prefill:   ByFormat{BF16: 0.78, FP8: 0.57, INT8: 0.57, INT4: 0.70, NVFP4: 0.60},
		KV:        ByFormat{BF16: 0.87, FP8: 0.76},
		Attention: AttentionConstants{Prefill: 0.70, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 33e-6},
		Unpacked: hopperUnpacked, Tiles: [...]float64{1.08, 1.08, 1.25, 1.6},
	}},
	// RTX PRO 6000: GEMM tables; KV from the trace. The factor of 1.06 holds here too: without it the trace's TPOT
	// is 3.8 % too long, with it 2.2 %. The tables' source counts shares of 1792 GB/s, the Workstation Edition's;
	// these are of the 1597 of the Server Edition, whose rates they are.
	{GenerationBlackwellRTX, 0, true, Constants{
		Weights:   ByFormat{BF16: 0.95, FP8: 0.91, INT8: 0.91, INT4: 0.81, NVFP4: 0.81},
		Prefill:   ByFormat{BF16: 0.84, FP8: 0.78, INT8: 0.78, INT4: 0.75, NVFP4: 0.45},
		KV:        ByFormat{BF16: 0.875, FP8: 0.74},
		Attention: AttentionConstants{Prefill: 0.55, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 33e-6},
	}},
	// B200: GEMM and attention tables, whose shares of 7.7 TB/s are converted to the data sheet's 8; fp8 fits
	// badly there (15 %). The attention kernel's floor is 8.8 us against 12 on H100, so a layer costs 3 us
	// less. Routing, gathering and reducing are fused into FlashInfer's expert kernels, so a layer with experts
	// costs half of what it does on H100 (served: gpt-oss-120b on two B200 at 4 and 8 requests).
	{GenerationBlackwell, 0, true, Constants{
		Weights:   ByFormat{BF16: 0.84, FP8: 0.72, INT8: 0.72, INT4: 0.67, NVFP4: 0.60},
		Prefill:   ByFormat{BF16: 0.70, FP8: 0.47, INT8: 0.47, INT4: 0.60, NVFP4: 0.40},
		KV:        ByFormat{BF16: 0.90, FP8: 0.90},
		Attention: AttentionConstants{Prefill: 0.54, ExtraKeys: 485}, Fixed: FixedConstants{Layer: 30e-6, MoELayer: 20e-6,
			FormatLayer: ByFormat{FP8: 10e-6, NVFP4: 20e-6}},
		Unpacked: blackwellUnpacked,
	}},
	// A100: GEMM tables; FlashAttention 2. Kernel floors are 7.6 us against 3.0 on H100 (four products a layer)
	// and 18 us against 12 (attention): 17 us more per layer with the overlap found on H100.
	{GenerationAmpere, 0, true, Constants{
		Weights:   ByFormat{BF16: 0.81, FP8: 0.70, INT8: 0.70, INT4: 0.69, NVFP4: 0.65},
		Prefill:   ByFormat{BF16: 0.87, FP8: 0.70, INT8: 0.65, INT4: 0.75, NVFP4: 0.65},
		KV:        ByFormat{BF16: 0.70, FP8: 0.55},
		Attention: AttentionConstants{Prefill: 0.57, ExtraKeys: 245}, Fixed: FixedConstants{Layer: 50e-6},
	}},
	// L40S: GEMM tables; FlashAttention 2.
	{GenerationAda, 0, true, Constants{
		Weights:   ByFormat{BF16: 0.82, FP8: 0.67, INT8: 0.67, INT4: 0.70, NVFP4: 0.65},
		Prefill:   ByFormat{BF16: 0.62, FP8: 0.47, INT8: 0.47, INT4: 0.55, NVFP4: 0.50},
		KV:        ByFormat{BF16: 0.70, FP8: 0.60},
		Attention: AttentionConstants{Prefill: 0.55, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 33e-6},
	}},
	// CDNA: no kernel was timed; prefill comes from the measured matrix products in the data sheet row, the
	// rest by analogy to A100, which is as far from its data sheet.
	{"cdna", 0, false, Constants{
		Weights:   ByFormat{BF16: 0.75, FP8: 0.65, INT8: 0.65, INT4: 0.60, NVFP4: 0.60},
		Prefill:   ByFormat{BF16: 0.50, FP8: 0.40, INT8: 0.40, INT4: 0.42, NVFP4: 0.35},
		KV:        ByFormat{BF16: 0.70, FP8: 0.60},
		Attention: AttentionConstants{Prefill: 0.40, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 45e-6, Latent: 45e-6},
	}},
	// Anything else: near the lower end of what was measured anywhere.
	{GenerationUnknown, 0, false, Constants{
		Weights:   ByFormat{BF16: 0.78, FP8: 0.68, INT8: 0.68, INT4: 0.65, NVFP4: 0.65},
		Prefill:   ByFormat{BF16: 0.65, FP8: 0.50, INT8: 0.50, INT4: 0.55, NVFP4: 0.45},
		KV:        ByFormat{BF16: 0.70, FP8: 0.58},
		Attention: AttentionConstants{Prefill: 0.50, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 40e-6}, Skinny: 1,
	}},
}

// geForce is the profile of consumer cards: products are bound by fp32 accumulation, whose rate is their figure
// in the catalog and of which an RTX 4090 reached 0.95 to 0.99 (164 TFLOP/s); GDDR6X without ECC reaches 0.88
// of its bandwidth for weights and 0.85 for the cache (a served trace on the card; L40S 0.82 in the tables).
func geForce(hw Hardware) Constants {
	c := Constants{
		Weights:   ByFormat{BF16: 0.88, FP8: 0.80, INT8: 0.80, INT4: 0.75, NVFP4: 0.70},
		Prefill:   ByFormat{BF16: 0.92, FP8: 0.80, INT8: 0.80, INT4: 0.80, NVFP4: 0.45},
		KV:        ByFormat{BF16: 0.85, FP8: 0.70},
		Attention: AttentionConstants{Prefill: 0.70, ExtraKeys: 500}, Fixed: FixedConstants{Layer: 33e-6},
	}
	if hw.Generation == GenerationAmpere {
		c.Fixed.Layer = 50e-6 // as on A100, FlashAttention 2
	}
	if hw.Flops.FP4 == 0 {
		c.Prefill[NVFP4] = 0.70 // unpacked as integers are, at the ratio to these found on A100
	}
	return c
}

// h200Bandwidth separates Hopper parts with HBM3e, which behave like an H200, from those that behave like an
// H100, in bytes/s.
const h200Bandwidth = 4.4e12

// profileFor returns the profile of a GPU and whether kernels of its generation were timed.
func profileFor(hw Hardware) (profile Constants, timed bool) {
	if hw.GeForce() {
		return geForce(hw), false
	}
	i := slices.IndexFunc(profiles, func(p profileRow) bool {
		return strings.HasPrefix(string(hw.Generation), string(p.generation)) && hw.Bandwidth >= p.bandwidth
	})
	return profiles[i].Constants, profiles[i].timed
}
