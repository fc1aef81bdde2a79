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
	if d.Arch.Details.WeightOnly && d.Precision.Weights == d.Arch.Native {
		d.Hardware.Flops.INT8 = 0
	}
	return d
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
	cut := func(width, parts int, own Mix) bool {
		return parts > 1 && width%(128*parts) != 0 && slices.ContainsFunc(d.split(1, own, FP8), func(g weightGroup) bool { return g.format == FP8 })
	}
	switch {
	case moe.Present() && !d.EP && cut(moe.Intermediate, d.TP*d.DP, a.Details.ExpertFormats):
		return d.TP * d.DP, moe.Intermediate
	case moe.Present() && cut(moe.SharedIntermediate, d.TP, a.Details.SharedFormats):
		return d.TP, moe.SharedIntermediate
	case a.denseLayers() > 0 && cut(a.Intermediate, d.TP, a.Details.MLPFormats):
		return d.TP, a.Intermediate
	}
	return 0, 0
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
