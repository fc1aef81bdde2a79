package model

import (
	"fmt"
	"slices"
)

// served are the weight formats of the dense models and of the MoE models whose served runs the constants were
// calibrated on, by GPU: testdata/groundtruth.
var served = map[string][2][]WeightFormat{
	"H100 SXM":                      {{BF16, FP8}, {BF16, FP8, MXFP4}},
	"H200 SXM":                      {{FP8}, {FP8, MXFP4}},
	"B200 SXM":                      {{FP8, NVFP4}, {MXFP4}},
	"RTX PRO 6000 Blackwell Server": {{BF16}},
}

// leastServed is just below the smallest number of active parameters of a served model, gpt-oss-120b's 5.1
// billion. Smaller models wait for their host.
const leastServed = 5e9

// EvidenceLevel is what served runs say about a deployment like the one asked for.
type EvidenceLevel int

// The levels: its kind of model was served on its GPU; both were, but not together, or the GPU's kernels were
// timed; either was never served; similar servers run by others were much slower than simulated.
const (
	Served EvidenceLevel = iota
	ServedApart
	NeverServed
	ServedSlower
)

// Error is the standard deviation, of the logarithm, of an error common to all times of a step, on top of those
// of each constant. internal/evidence/accuracy predicts served runs with their model, their kind of model or
// their GPU left out of the fit and counts those within the 90 % interval: with these figures .9 of the times
// per token. The last figure is from six servers of that kind (docs/decisions/0017).
func (e EvidenceLevel) Error() float64 { return [...]float64{0.03, 0.06, 0.10, 0.25}[e] }

// unserved lists what no calibration run covers of a deployment, and the worst level.
func (d Deployment) unserved() (what []string, worst EvidenceLevel) {
	d = d.Normal()
	kind, kinds, format := 0, "dense models in ", d.Precision.Weights
	if d.Arch.MoE.Present() {
		kind, kinds = 1, "mixtures of experts in "
	}
	if format == FP16 {
		format = BF16
	}
	kinds += format.String()
	runs, here := served[d.Hardware.Name]
	add := func(e EvidenceLevel, text string) {
		what, worst = append(what, text), max(worst, e)
	}
	switch {
	case d.Hardware.CDNA():
		add(ServedSlower, "AMD GPUs (public servers took 1.0 to 1.9 times as long)")
	case !d.Hardware.Timed():
		add(NeverServed, "the GPU "+d.Hardware.Name)
	case !here:
		add(ServedApart, "the GPU "+d.Hardware.Name)
	}
	anywhere := false
	for _, runs := range served {
		anywhere = anywhere || slices.Contains(runs[kind], format)
	}
	switch {
	case !anywhere:
		add(NeverServed, kinds)
	case here && !slices.Contains(runs[kind], format):
		add(ServedApart, kinds+" on the GPU "+d.Hardware.Name)
	}
	for _, s := range d.Arch.unserved() {
		add(NeverServed, s)
	}
	if d.Arch.MoE.Present() && d.Arch.Details.RouterBias {
		add(ServedSlower, "experts chosen by a biased score (public servers took up to 1.7 times as long)")
	}
	return what, worst
}

// unserved lists what no served run covers of a model's layers.
func (a Arch) unserved() []string {
	var what []string
	add := func(has bool, text string) {
		if has {
			what = append(what, text)
		}
	}
	d := a.Details
	add(!a.KnownClass(), "the class "+a.Family)
	add(a.Attention.MLA.Present() && a.Attention.Sparse.Keys == 0, "latent attention")
	add(a.Attention.Sparse.Keys > 0, "sparse attention")
	add(a.Attention.Compressed.Present(), "a compressed cache")
	add(a.State.Present(), "layers with a state instead of a cache")
	add(d.NormsPerLayer > 0 || d.NormBias || d.Ungated, "layers other than a Llama's ("+a.Family+")")
	_, active := a.Params()
	add(active < leastServed, fmt.Sprintf("as few as %.2g billion active parameters", active/1e9))
	return what
}

// Uncalibrated lists what of a deployment lies outside of the calibration runs, and by what share all times may
// then be off in 90 % of cases; nothing if all lies within.
func Uncalibrated(dep Deployment) (what []string, within float64) {
	what, evidence := dep.unserved()
	if len(what) == 0 {
		return nil, 0
	}
	return what, 1.645 * evidence.Error()
}
