package model

import (
	"cmp"
	"math"
	"slices"
)

// LoRA describes the LoRA adapters that requests choose from (multi-LoRA), all of one rank, of which a GPU
// holds as many as it has slots. The zero value is none.
type LoRA struct {
	Adapters int
	Slots    int
	Rank     int
}

// On reports whether there are adapters.
func (l LoRA) On() bool { return l.Adapters > 0 }

// Supports reports whether adapters of a model are modelled: those of attention and dense MLPs are, those of
// experts and of latent attention are not.
func (l LoRA) Supports(a Arch) bool { return !a.MoE.Present() && !a.Attention.MLA.Present() }

// slotRanks are the values of max_lora_rank that all releases of vLLM take (config/lora.py, 0.10 to 0.33).
var slotRanks = []int{8, 16, 32, 64, 128, 256, 320, 512}

// SlotRank is the rank that slots are made for: the least that vLLM takes and that holds the adapters'.
func (l LoRA) SlotRank() int {
	i, _ := slices.BinarySearch(slotRanks, l.Rank)
	return slotRanks[min(i, len(slotRanks)-1)]
}

// What adapters cost: vLLM adds two kernels to each of a layer's four products (qkv, output, gate-up, down),
// with the floor of small kernels (3 to 7 us in the GEMM tables); Punica reports 2 ms a token on a 7B model
// with seven products, each on its own (arXiv 2310.18547). Products of such a rank reach about a tenth of the
// compute; copies of an adapter's matrices are small. Analogy: no served run tests it.
const (
	loraKernels = 4 * 2
	loraFloor   = 4e-6
	loraCompute = 0.1
	loraCopies  = 14 // per layer
	loraCopy    = 10e-6
	loraLink    = 0.5 // of the PCIe rate
	usualPCIe   = 16e9
)

// adapterBytes returns the bytes of one adapter on every GPU: for each matrix two factors of the slots' rank,
// divided on the sides that tensor parallelism divides.
func (l LoRA) adapterBytes(dep Deployment) float64 {
	a, tp := dep.Arch, float64(dep.TP)
	q, kv := float64(a.Attention.Heads*a.Attention.HeadDim), float64(a.Attention.KVHeads*a.Attention.HeadDim)
	perRank := 7*float64(a.Hidden) + (2*q+2*kv+3*float64(a.Intermediate))/tp
	return float64(a.Layers) / float64(dep.PP) * perRank * float64(l.SlotRank()) * BF16.Bytes()
}

// slotBytes returns the bytes of all slots on every GPU.
func (l LoRA) slotBytes(dep Deployment) float64 {
	if !l.On() {
		return 0
	}
	return float64(l.Slots) * l.adapterBytes(dep)
}

// Distinct returns the mean number of different adapters that these requests use if all are equally likely.
func (l LoRA) Distinct(requests float64) float64 {
	n := float64(l.Adapters)
	return min(float64(l.Slots), -n*math.Expm1(requests*math.Log1p(-1/max(n, 1+1e-9))))
}

func (r *Roofline) setAdapters() {
	l, d, hw := r.args.LoRA, r.dep, r.dep.Hardware
	if !l.On() {
		return
	}
	bytes := l.adapterBytes(d) * float64(d.PP)
	layers := float64(d.Arch.Layers)
	a := &r.adapters
	a.floor, a.each = layers*loraKernels*loraFloor, bytes/(r.c.Weights[BF16]*hw.Bandwidth)
	a.token, a.load = bytes/(loraCompute*hw.Flops.BF16), layers*loraCopies*loraCopy+bytes/(loraLink*cmp.Or(hw.PCIe, usualPCIe))
}

func (r *Roofline) adapterTime(l *batchSums) float64 {
	a := &r.adapters
	return a.floor + l.adapters*a.each + l.all()*a.token + l.loads*a.load
}
