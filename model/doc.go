// Package model says how long one step of an LLM serving engine takes, how much
// memory it needs, and why.
//
// It is pure: data sheets and shapes go in, seconds and bytes come out. There is no
// clock, no random state and no I/O beyond the catalog embedded in the binary and
// the readers that callers hand in.
//
// # Units
//
// Times are seconds, sizes bytes, rates bytes or operations per second, all float64.
// The catalog's GB/s, TFLOP/s and GB are converted once, when a row is read.
//
// # The parts
//
// [Hardware] is one GPU's data sheet, [Arch] a model's shape, [Precision] the formats of its numbers; with the
// degrees of parallelism they make a [Deployment]. [MemoryPlan] divides a GPU's memory between weights,
// activations and KV cache. [NewRoofline] precomputes the coefficients with which [Roofline.Step] times any
// batch; [Constants] holds every number in it that is not on a data sheet, each with its source, and [Spread]
// how far each may be off.
package model
