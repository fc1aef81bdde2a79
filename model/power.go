package model

// What a GPU draws: rest is a share of its thermal design power, the others are shares of the remainder. Within
// about a fifth of the published figures of whole servers: 300 W for an H100 that decodes one request and 600 W
// at 128 (ML.ENERGY benchmark 3.0, 2025), the design power in long prompts (POLCA, arXiv 2308.12908: prompts at
// the limit of an A100), 137 to 300 W for an H200 that decodes small batches (arXiv 2605.11999). An H200
// measured since (2026-11-27, docs/predictions.md) drew 0.86 to 1.31 times the result, 1.1 in the mean of seven
// loads.
const (
	powerRest    = 0.15 // of the design power, with a model loaded
	powerBusy    = 0.10 // while steps run, whatever their load
	powerMemory  = 0.48 // at full bandwidth
	powerCompute = 1.00 // at the rate that long matrix products sustain
)

// PowerError is the relative error of a GPU's power: six of seven measured loads lie within it.
const PowerError = 0.25

// Power returns the mean watts of one GPU of the instance over a period of which steps ran for the share busy,
// reaching these shares of bandwidth and compute meanwhile (see [Roofline.Achieved]); 0 if the design power is
// unknown.
func (r *Roofline) Power(mbu, mfu, busy float64) float64 {
	format := r.dep.denseFormat()
	peak, _ := r.dep.Hardware.Flops.computeFormat(format)
	compute := min(1, mfu*peak/r.prefillRate(format))
	active := min(1, powerBusy+powerMemory*mbu+powerCompute*compute)
	return r.dep.Hardware.TDP * (powerRest + (1-powerRest)*active*busy)
}
