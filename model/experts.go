package model

import "slices"

// experts returns the kernels of routed experts: the chosen ones if they take the format, otherwise what vLLM prefers
// (vllm/model_executor/layers/fused_moe/oracle and quantization/fp8.py, 0.10 to 0.33).
func (l EngineArgs) experts(d Deployment) ExpertKernels {
	prefer := func(kernels ...ExpertKernels) ExpertKernels {
		return kernels[max(0, slices.Index(kernels, l.Kernels.Experts))]
	}
	hw, v, w := d.Hardware, versionOf(l.EngineVersion), d.Precision.Weights
	blackwell, hopper := hw.Generation == GenerationBlackwell, hw.Generation == GenerationHopper
	switch {
	case w == INT4 && blackwell:
		return prefer(ExpertsMarlin, ExpertsFlashInfer) // VLLM_USE_FLASHINFER_MOE_INT4; vLLM pull request 32437
	case w == INT4:
		return ExpertsMarlin
	case w == NVFP4 && blackwell && v.AtLeast(0, 16):
		return prefer(ExpertsFlashInfer, ExpertsCUTLASS, ExpertsMarlin)
	case w == NVFP4 && blackwell:
		return prefer(ExpertsCUTLASS, ExpertsFlashInfer, ExpertsMarlin)
	case w == NVFP4 && hw.Flops.FP4 > 0:
		return prefer(ExpertsCUTLASS, ExpertsMarlin)
	case w == NVFP4:
		return ExpertsMarlin
	case w == MXFP4 && hw.Flops.FP4 > 0:
		return prefer(ExpertsFlashInfer, ExpertsTriton, ExpertsMarlin)
	case w == MXFP4 && (hopper || hw.Generation == GenerationCDNA3 && d.Arch.Details.Sinks && !v.AtLeast(0, 30)): // gpt-oss; pull request 50622
		return prefer(ExpertsTriton, ExpertsMarlin)
	case w == MXFP4:
		return prefer(ExpertsMarlin, ExpertsTriton)
	case d.blockScaled() && blackwell && v.AtLeast(0, 16):
		return prefer(ExpertsFlashInfer, ExpertsDeepGEMM, ExpertsTriton)
	case d.blockScaled() && (blackwell || hopper && v.AtLeast(0, 11) && !v.AtLeast(0, 15) && (d.EP || d.TP*d.DP < 8 || !v.AtLeast(0, 12))):
		return prefer(ExpertsDeepGEMM, ExpertsTriton) // on Hopper until FlashInfer's and Triton's came first (34260), cut by eight only in 0.11 (29346)
	case d.blockScaled() && hopper && d.EP && v.AtLeast(0, 15):
		return prefer(ExpertsCUTLASS, ExpertsTriton, ExpertsDeepGEMM)
	case d.blockScaled() && hw.Generation == GenerationAmpere:
		return ExpertsMarlin // which multiplies in bf16
	case d.blockScaled() && hopper:
		return prefer(ExpertsTriton, ExpertsDeepGEMM)
	}
	return ExpertsTriton
}

// fusedExperts reports whether FlashInfer's fused kernels compute experts in nvfp4 or block-scaled fp8, the latter 5 % too
// fast to 7 % too slow in three public loads on B200 (6 to 18 % too slow by DeepGEMM's costs).
func (r *Roofline) fusedExperts() bool {
	return r.kernels == ExpertsFlashInfer && (r.dep.Precision.Weights == NVFP4 || r.dep.blockScaled())
}

// tiledExperts reports whether block-scaled experts have the costs of DeepGEMM, which permutes tokens into tiles of 128
// rows, however few they are. Models with latent attention keep them on Hopper whatever computes the experts:
// DeepSeek-R1 takes 17 ms a token with Triton's, simulated 16 with the costs and 11 without; FixedConstants.Latent, which
// other models have instead, was timed.
func (r *Roofline) tiledExperts() bool {
	return r.kernels == ExpertsDeepGEMM || r.dep.blockScaled() && r.dep.Hardware.Generation == GenerationHopper && r.dep.Arch.Attention.MLA.Present()
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

// Experts in nvfp4 on Blackwell's data-centre GPUs run in FlashInfer's fused kernels. They reach fusedFP4 of the fp4
// rate, fusedPasses of the hidden state for each active expert and fusedStream of the speed at which the same kernels
// read gpt-oss-120b's mxfp4, fitted to 8 shapes with uneven routing on a B200: 24 timings of 1,024 to 16,384 tokens
// have a mean error of 10 % then (27 % without), 72 of 1 to 256 tokens 12 % with 1/1.22 (14 %), of which half was served
// (vLLM 0.20.0; aiconfigurator, campaign_checkpoints/b200_sxm/moe_perf.txt, read 2026-11).
const fusedFP4, fusedPasses, fusedStream = 0.325, 3.1, 1 / 1.1

// expertFP4Native is the share of the fp4 rate that grouped products of nvfp4 experts reach on other GPUs with fp4 units
// and in other kernels: the ratio of bf16 experts to dense products there (0.64) times 0.40 for dense nvfp4 on B200.
// Analogy.
const expertFP4Native = 0.26

// padTo is the multiple to which FlashInfer's mxfp4 kernels pad the width of an expert: gpt-oss on 8 GPUs has
// 512 columns instead of 360.
const padTo = 256

// Triton's experts take max(1, narrowLeast + narrowColumns/width) times as long where cutting leaves few columns: tiles
// have 64 and more, and few of them leave processors idle. In 37 series of bf16 and fp8 on A100, H100 and H200 with
// uneven routing, 64 and 256 tokens on experts of 32, 64, 128 and 256 columns take 2.2, 1.6 to 1.8, 1.1 and 1.05 times
// as long as simulated without, on wider ones 0.9 (the timings at expertTile).
const narrowLeast, narrowColumns = 0.91, 39.0

// narrowness returns by how much longer experts in a format take for being narrow.
func (r *Roofline) narrowness(w WeightFormat) float64 {
	d := r.dep
	if w.Bytes() < 1 || d.Hardware.CDNA() || r.fusedExperts() || r.tiledExperts() {
		return 1
	}
	return max(1, narrowLeast+narrowColumns/float64(d.expertWidth()))
}

// expertWidth returns the columns of an expert on a GPU.
func (d Deployment) expertWidth() int {
	if d.EP {
		return d.Arch.MoE.Intermediate
	}
	return ceilDiv(d.Arch.MoE.Intermediate, d.TP*d.DP)
}

// expertPadding returns the factor by which padding enlarges the experts' matrices on a GPU.
func (d Deployment) expertPadding() float64 {
	_, native := d.Hardware.Flops.computeFormat(MXFP4)
	if d.Precision.Weights != MXFP4 || !native || !d.Arch.MoE.Present() {
		return 1
	}
	width := d.expertWidth()
	return float64(padTo*ceilDiv(width, padTo)) / float64(width)
}

// expertStream returns the bytes per second at which routed experts in a format are read.
func (r *Roofline) expertStream(w WeightFormat) float64 {
	rate := r.c.Experts.For(w) * r.dep.Hardware.Bandwidth
	if _, native := r.dep.Hardware.Flops.computeFormat(w); (!native || r.kernels == ExpertsMarlin) && w.Bytes() < 1 && r.c.Unpacked > 0 {
		rate = min(rate, r.c.Unpacked)
	}
	if w == NVFP4 && r.fusedExperts() {
		rate *= fusedStream
	}
	return rate
}

// expertRate returns operations per second of grouped products in a format.
func (r *Roofline) expertRate(w WeightFormat) float64 {
	rate, _ := r.dep.Hardware.Flops.computeFormat(w)
	switch {
	case w == NVFP4 && r.kernels == ExpertsMarlin:
		return r.dep.Hardware.Flops.BF16 * r.c.PrefillExperts[INT4]
	case w == NVFP4:
		share := expertFP4Native
		if r.fusedExperts() {
			share = fusedFP4
		}
		return rate * share * r.c.PrefillExperts[FP8] / prefillExperts[FP8]
	case w == FP8 && r.dep.blockScaled() && (r.kernels == ExpertsTriton || r.kernels == ExpertsDeepGEMM && r.dep.TP >= 8):
		rate *= blockExperts
	}
	return rate * r.c.PrefillExperts.For(w)
}
