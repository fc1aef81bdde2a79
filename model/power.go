package model

// What a GPU draws, as shares of its thermal design power and of what is left of that above
// rest. Within a fifth or so of the published figures of whole servers: 300 W of an H100 that
// decodes one request and 600 W at 128 (ML.ENERGY benchmark 3.0, 2025), its design power in
// long prompts (POLCA, arXiv 2308.12908: prompts at the limit of an A100), 137 to 300 W of
// an H200 in decode of small batches (arXiv 2605.11999). An H200 measured since (2026-11-27,
// docs/predictions.md) drew 0.86 to 1.31 times what comes out, 1.1 in the mean of seven loads.
const (
	powerRest    = 0.15 // of the design power, with a model loaded
	powerBusy    = 0.10 // while steps run, whatever they do
	powerMemory  = 0.48 // at full bandwidth
	powerCompute = 1.00 // at the rate that long matrix products sustain
)

// PowerError is how far the power of a GPU may be off, relative: six of seven measured loads lie within it.
const PowerError = 0.25

// Power returns the mean watts of one GPU of the instance over a time in which steps ran for
// a share, with so much of bandwidth and compute achieved meanwhile (see
// [Roofline.Achieved]); 0 where the design power is not known.
func (r *Roofline) Power(mbu, mfu, busy float64) float64 {
	format := r.dep.denseFormat()
	peak, _ := r.dep.Hardware.Flops.computeFormat(format)
	compute := min(1, mfu*peak/r.prefillRate(format))
	active := min(1, powerBusy+powerMemory*mbu+powerCompute*compute)
	return r.dep.Hardware.TDP * (powerRest + (1-powerRest)*active*busy)
}
