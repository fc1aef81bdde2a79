package model

import (
	"cmp"
	"math"
)

// LoRA is low-rank adapters that requests choose among (multi-LoRA): so many of one rank, of
// which a GPU holds as many as there are slots. The zero value is none.
type LoRA struct {
	Adapters int
	Slots    int
	Rank     int
}

// On reports whether there are adapters.
func (l LoRA) On() bool { return l.Adapters > 0 }

// Supports reports whether adapters of a model are modelled: those of attention and dense
// MLPs are, those of experts and of latent attention are not.
func (l LoRA) Supports(a Arch) bool { return !a.MoE.Present() && !a.Attention.MLA.Present() }

// What adapters cost: vLLM multiplies each of a layer's four products (query, key and value
// as one, output, gate and up as one, down) by two kernels more, with the floor of small
// kernels (3 to 7 us in the tables of matrix products); Punica reports 2 ms a token on a 7B
// model with seven products each on its own (arXiv 2310.18547). Products of such a rank
// reach a tenth or so of the compute; copies of an adapter's matrices are small. Analogy:
// no served run tests it.
const (
	loraKernels = 4 * 2
	loraFloor   = 4e-6
	loraCompute = 0.1
	loraCopies  = 14 // of a layer
	loraCopy    = 10e-6
	loraLink    = 0.5 // of the PCIe rate
	usualPCIe   = 16e9
)

// adapterBytes returns what one adapter takes of every GPU: of each matrix a part of the
// rank's rows and columns, the sides that tensor parallelism divides divided.
func (l LoRA) adapterBytes(dep Deployment) float64 {
	a, tp := dep.Arch, float64(dep.TP)
	q, kv := float64(a.Attention.Heads*a.Attention.HeadDim), float64(a.Attention.KVHeads*a.Attention.HeadDim)
	perRank := 7*float64(a.Hidden) + (2*q+2*kv+3*float64(a.Intermediate))/tp
	return float64(a.Layers) / float64(dep.PP) * perRank * float64(l.Rank) * BF16.Bytes()
}

// slotBytes returns what all slots take of every GPU.
func (l LoRA) slotBytes(dep Deployment) float64 {
	if !l.On() {
		return 0
	}
	return float64(l.Slots) * l.adapterBytes(dep)
}

// Distinct is how many different adapters so many requests use in the mean, each as likely
// as the others.
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
