package model

import (
	"cmp"
	"slices"

	"planner/internal/note"
)

// Deployment is one instance: a model, its number formats, the GPU it runs on and how it is spread over several
// of them.
type Deployment struct {
	Arch      Arch
	Hardware  Hardware
	Precision Precision
	TP        int  // tensor-parallel degree; 0 means 1
	PP        int  // pipeline stages; 0 means 1
	DP        int  // attention replicas inside the instance; 0 means 1
	EP        bool // each expert whole on one GPU instead of sliced
	NodeGPUs  int  // GPUs per node; 0: the hardware's own
}

// GPUs returns how many GPUs the instance takes.
func (d Deployment) GPUs() int {
	d = d.Normal()
	return d.TP * d.PP * d.DP
}

// Nodes returns the number of nodes that the instance spans.
func (d Deployment) Nodes() int { return d.spans(d.GPUs()) }

// spans returns the number of nodes that a group of adjacent GPUs spans.
func (d Deployment) spans(gpus int) int { return ceilDiv(gpus, d.Normal().NodeGPUs) }

// Normal returns the deployment with its defaults filled in: 1 for zero degrees of parallelism, and for an
// unset weight format the checkpoint's or, if unknown, bf16.
func (d Deployment) Normal() Deployment {
	d.TP, d.PP, d.DP = max(d.TP, 1), max(d.PP, 1), max(d.DP, 1)
	d.Precision.Weights = cmp.Or(d.Precision.Weights, d.Arch.Native, BF16)
	d.NodeGPUs = cmp.Or(d.NodeGPUs, d.Hardware.NodeGPUs())
	return d
}

// kvOfCheckpoint is the release 0.x from which on vLLM resolves an auto KV cache to the format that the
// checkpoint was calibrated for (pull requests 29980 and 30141, 2025-12).
const kvOfCheckpoint = 13

// Serving returns the deployment with its defaults filled in, and with what auto means for the KV cache: the
// checkpoint's own format, on releases that read it and if the checkpoint's own weights are served. For
// weight-only 8-bit integers it also removes the GPU's INT8 rate: Marlin, which vLLM uses for them, unpacks
// them to the activations' two bytes (vllm/model_executor/layers/quantization/gptq_marlin.py and
// compressed_tensors/schemes/compressed_tensors_wNa16.py).
func (d Deployment) Serving(args EngineArgs) Deployment {
	d = d.Normal()
	if d.Precision.KV == KVAuto && d.Precision.Weights == d.Arch.Native && versionOf(args.EngineVersion).AtLeast(0, kvOfCheckpoint) {
		d.Precision.KV = d.Arch.NativeKV
	}
	if d.weightOnly() {
		d.Hardware.Flops.INT8 = 0
	}
	return d
}

// weightOnly reports whether 8-bit integers are those of a checkpoint that quantises weights alone.
func (d Deployment) weightOnly() bool {
	return d.Arch.Details.WeightOnly && d.Precision.Weights == d.Arch.Native
}

// Unserved says for what vLLM has no kernels on the GPU, so that it does not start, or with what it runs otherwise than
// modelled; empty if there is nothing. Sources: vLLM issues 54311 (int8: scaled_mm_helper.hpp, 0.10 to 2026-08), 38006 and
// 40851 (sparse latent attention, 2026-08), 52202 and pull requests 43914 and 50882 (fp8 caches, which Triton cannot read
// before compute capability 8.9), 35733 and 35737 (nvfp4 by emulation).
func (d Deployment) Unserved(args EngineArgs) string {
	d = d.Serving(args)
	at, gen := d.Arch.Attention, d.Hardware.Generation
	latent := at.MLA.Present() || at.Compressed.Present()
	sparse := at.Sparse.Keys > 0
	switch {
	case d.Precision.Weights == INT8 && !d.weightOnly() && (gen == GenerationBlackwell || gen == GenerationBlackwellRTX):
		return "matrix products in int8 (W8A8): want fp8 (those of --linear-backend triton, since 0.22, are not simulated)"
	case latent && sparse && (gen == GenerationAmpere || gen == GenerationAda):
		return "sparse latent attention: want Hopper or newer"
	case d.Precision.KV == KVFP8 && gen == GenerationAmpere && (latent || sparse || d.Arch.Details.Sinks):
		return "a KV cache in fp8 of such attention: want kv_cache = \"auto\", or Ada or newer"
	case d.Precision.Weights == NVFP4 && d.Hardware.Vendor != "" && d.Hardware.Vendor != "NVIDIA":
		return "nvfp4, which it refuses there or unpacks in every step: want fp8 or mxfp4"
	}
	return ""
}

// splits reports whether KV heads divide evenly among GPUs, whole or replicated.
func splits(heads, gpus int) bool { return heads%gpus == 0 || gpus%heads == 0 }

// blockScaled reports whether fp8 matrices have a scale per block of 128 x 128, as checkpoints may; an engine
// that quantises matrices on loading scales whole ones.
func (d Deployment) blockScaled() bool {
	return d.Precision.Weights == FP8 && d.Arch.Native == FP8 && d.Arch.Details.BlockFP8
}

// cutBlocks returns a width whose parts on that many GPUs would cut fp8 blocks of 128, 0 if there is none: vLLM
// refuses to load such parts (fp8.py, 0.8 to 0.25).
func (d Deployment) cutBlocks() (gpus, width int) {
	a, moe := d.Arch, d.Arch.MoE
	if !d.blockScaled() {
		return 0, 0
	}
	switch {
	case moe.Present() && !d.EP && d.cuts(moe.Intermediate, d.TP*d.DP, a.Details.ExpertFormats):
		return d.TP * d.DP, moe.Intermediate
	case moe.Present() && d.cuts(moe.SharedIntermediate, d.TP, a.Details.SharedFormats):
		return d.TP, moe.SharedIntermediate
	case a.denseLayers() > 0 && d.cuts(a.Intermediate, d.TP, a.Details.MLPFormats):
		return d.TP, a.Intermediate
	}
	return 0, 0
}

// cuts reports whether that many parts of a width in the format of the weights would cut blocks or groups of 128.
func (d Deployment) cuts(width, parts int, own Mix) bool {
	f := d.Precision.Weights
	return parts > 1 && width%(128*parts) != 0 && slices.ContainsFunc(d.split(1, own, f), func(g weightGroup) bool { return g.format == f })
}

// undivided returns a width that the GPUs that share it do not divide, and what it is; 0 if there is none. vLLM pads the
// vocabulary to 64 (vocab_parallel_embedding.py), and divides the others as they are.
func (d Deployment) undivided() (gpus, width int, what string) {
	a, moe := d.Arch, d.Arch.MoE
	vocab := 64 * ceilDiv(a.Vocab, 64)
	switch {
	case vocab%d.TP != 0:
		return d.TP, vocab, "rows of the vocabulary"
	case a.denseLayers() > 0 && a.Intermediate%d.TP != 0:
		return d.TP, a.Intermediate, "columns of an MLP"
	case moe.Present() && !d.EP && moe.Intermediate%(d.TP*d.DP) != 0:
		return d.TP * d.DP, moe.Intermediate, "columns of an expert"
	}
	return 0, 0, ""
}

// CutGroups returns the width of an MLP whose parts on the tensor-parallel GPUs would cut groups of 128 4-bit integers, 0
// if there is none: vLLM loads only checkpoints that are padded (issues 16260 and 21695). Those of experts it makes smaller.
func (d Deployment) CutGroups() int {
	d = d.Normal()
	if d.Precision.Weights == INT4 && d.Arch.denseLayers() > 0 && d.cuts(d.Arch.Intermediate, d.TP, d.Arch.Details.MLPFormats) {
		return d.Arch.Intermediate
	}
	return 0
}

// Validate returns an error if the GPU or the model lacks a required figure (wrapping [ErrNoFigure]) or if the
// model cannot be divided as asked.
func (d Deployment) Validate() error {
	if d.TP < 0 || d.PP < 0 || d.DP < 0 {
		return note.New(note.DegreesNegative, d.TP, d.PP, d.DP)
	}
	if err := d.Hardware.Check(); err != nil {
		return err
	}
	if err := d.Arch.Check(); err != nil {
		return err
	}
	n := d.Normal()
	if n.Nodes() > 1 && n.Hardware.Node.Rate <= 0 {
		return note.New(note.TooWide, n.GPUs(), n.NodeGPUs, n.Hardware.Name)
	}
	at := n.Arch.Attention
	cutting, width := n.cutBlocks()
	sharing, uneven, what := n.undivided()
	switch {
	case at.Heads%n.TP != 0:
		return note.New(note.HeadsUndivided, n.TP, at.Heads, n.Arch.Name)
	case at.windowedHeads()%n.TP != 0:
		return note.New(note.HeadsUndivided, n.TP, at.windowedHeads(), n.Arch.Name)
	case !at.MLA.Present() && !splits(at.KVHeads, n.TP):
		return note.New(note.KVHeadsUndivided, n.TP, at.KVHeads, n.Arch.Name)
	case !at.MLA.Present() && !splits(at.windowed().KVHeads, n.TP):
		return note.New(note.KVHeadsUndivided, n.TP, at.windowed().KVHeads, n.Arch.Name)
	case n.Arch.State.undivided(n.TP) > 0:
		return note.New(note.StatesUndivided, n.TP, n.Arch.State.undivided(n.TP), n.Arch.Name)
	case uneven > 0:
		return note.New(note.WidthUndivided, sharing, uneven, what, n.Arch.Name)
	case width > 0:
		return note.New(note.BlocksCut, cutting, width, n.Arch.Name)
	case n.PP > n.Arch.Layers:
		return note.New(note.TooManyStages, n.PP, n.Arch.Layers, n.Arch.Name)
	case n.EP && !n.Arch.MoE.Present():
		return note.New(note.NoExperts, n.Arch.Name)
	case n.EP && n.Arch.MoE.Experts%(n.TP*n.DP) != 0:
		return note.New(note.ExpertsUndivided, n.TP*n.DP, n.Arch.MoE.Experts, n.Arch.Name)
	}
	return nil
}
