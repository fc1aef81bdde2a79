package model

import "math"

// CalibrationTerm names one of the constants that a calibration may fit; all others stay at what
// data sheets and kernel tables say.
type CalibrationTerm int

// The terms, in the order in which they are reported.
const (
	TermFrontend CalibrationTerm = iota // seconds per request outside the engine's loop
	TermStep                            // seconds per step
	TermLayer                           // seconds per layer and step, inside CUDA graphs
	TermRequest                         // seconds per running request and step
	TermWeights                         // share of bandwidth when weights are streamed
	TermKV                              // share of bandwidth of decode attention
	TermPrefill                         // share of compute of large matrix products
	termCount
)

var termNames = [termCount]string{"frontend", "step", "layer", "request", "weights", "kv", "prefill"}

// Terms returns all terms in order.
func Terms() []CalibrationTerm {
	out := make([]CalibrationTerm, termCount)
	for i := range out {
		out[i] = CalibrationTerm(i)
	}
	return out
}

// String returns the term's name in files and reports.
func (t CalibrationTerm) String() string { return termNames[t] }

// Efficiency reports whether the term is a share of a data sheet's peak, between 0 and
// 1; the others are seconds.
func (t CalibrationTerm) Efficiency() bool { return t >= TermWeights }

// Value returns a term's value for a deployment: of the efficiencies those of the
// formats that it uses. Where scheduling is synchronous, the step includes that part.
func (c Constants) Value(t CalibrationTerm, dep Deployment) float64 {
	dep = dep.Normal()
	switch t {
	case TermFrontend:
		return c.Frontend.Request
	case TermStep:
		return c.Fixed.Step + c.Fixed.SyncStep
	case TermLayer:
		return c.Fixed.Layer
	case TermRequest:
		return c.Fixed.Request
	case TermWeights:
		return c.Weights.For(dep.denseFormat())
	case TermKV:
		return c.kv(dep.Precision.KV)
	case TermPrefill:
		return c.Prefill.For(dep.denseFormat())
	}
	return 0
}

// WithValue returns the constants with one term set to a value in the sense of
// [Constants.Value], an efficiency to no more than kernels reach. Experts and LM head follow the dense matrices in proportion, a
// mixture's layers and launches follow the layer, sampling follows the request.
func (c Constants) WithValue(t CalibrationTerm, dep Deployment, v float64) Constants {
	old := c.Value(t, dep)
	if old <= 0 {
		return c
	}
	if t.Efficiency() {
		v = min(v, highestShare)
	}
	return c.times(t, v/old, 1)
}

// times multiplies what goes with a term, shares to no more than the most.
func (c Constants) times(t CalibrationTerm, by, most float64) Constants {
	switch t {
	case TermFrontend:
		c.Frontend.Request *= by
	case TermStep:
		c.Fixed.Step *= by
		c.Fixed.SyncStep *= by
	case TermLayer:
		c.Fixed.Layer *= by
		c.Fixed.Launch *= by
		c.Fixed.LaunchAll *= by
		c.Fixed.FormatLayer = c.Fixed.FormatLayer.scaled(by, math.Inf(1))
		c.Fixed.MoELayer *= by
		c.Fixed.BlockExpert *= by
		c.Fixed.Latent *= by
	case TermRequest:
		c.Fixed.Request *= by
		c.Sampler.Sort *= by
		c.Sampler.Triton *= by
	case TermWeights:
		c.Weights = c.Weights.scaled(by, most)
		c.Experts = c.Experts.scaled(by, most)
		c.Head.Memory = min(c.Head.Memory*by, most)
	case TermKV:
		c.KV = c.KV.scaled(by, most)
	case TermPrefill:
		c.Prefill = c.Prefill.scaled(by, most)
		c.PrefillExperts = c.PrefillExperts.scaled(by, most)
		c.Head.Compute = min(c.Head.Compute*by, most)
	}
	return c
}
