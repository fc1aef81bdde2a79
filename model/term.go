package model

import (
	"math"
	"slices"
)

// terms are the doubts that a calibration may resolve, in the order of reports; everything else stays at the
// data sheets and kernel tables.
var terms = []Doubt{DoubtFrontend, DoubtIntake, DoubtStream, DoubtStep, DoubtLayer, DoubtLaunch, DoubtRequest, DoubtWeights, DoubtKV, DoubtPrefill, DoubtPrefillAttention, DoubtSkinny}

// Terms returns the terms of a calibration in order.
func Terms() []Doubt { return slices.Clone(terms) }

// String returns a term's name in files and reports.
func (t Doubt) String() string {
	return [doubtCount]string{DoubtFrontend: "frontend", DoubtIntake: "intake", DoubtStream: "stream", DoubtStep: "step", DoubtLayer: "layer", DoubtLaunch: "launch", DoubtRequest: "request",
		DoubtWeights: "weights", DoubtKV: "kv", DoubtPrefill: "prefill", DoubtPrefillAttention: "attention", DoubtSkinny: "skinny"}[t]
}

// Efficiency reports whether a term is a share of a data sheet's peak, between 0 and 1; the
// others are seconds, but for [DoubtSkinny], a ratio.
func (t Doubt) Efficiency() bool {
	return t == DoubtWeights || t == DoubtKV || t == DoubtPrefill || t == DoubtPrefillAttention
}

// Value returns a term's value for a deployment: an efficiency for the formats that it uses, and a step's cost
// including that of synchronous scheduling.
func (c Constants) Value(t Doubt, dep Deployment) float64 {
	dep = dep.Normal()
	switch t {
	case DoubtFrontend:
		return c.Frontend.Request
	case DoubtIntake:
		return c.Frontend.Intake
	case DoubtStream:
		return c.Frontend.Event
	case DoubtStep:
		return c.Fixed.Step + c.Fixed.SyncStep
	case DoubtLayer:
		return c.Fixed.Layer
	case DoubtLaunch:
		return c.Fixed.Launch
	case DoubtRequest:
		return c.Fixed.Request
	case DoubtWeights:
		return c.Weights.For(dep.denseFormat())
	case DoubtKV:
		return c.kv(dep.Precision.KV)
	case DoubtPrefill:
		return c.Prefill.For(dep.denseFormat())
	case DoubtPrefillAttention:
		return c.Attention.Prefill
	case DoubtSkinny:
		return c.Skinny
	}
	return 0
}

// WithValue returns the constants with one term set to a value in the sense of [Constants.Value], efficiencies
// limited to what kernels reach unless the peaks are those that a user guessed. Experts and LM head scale with the dense
// matrices, an MoE model's layer costs with the layer, sampling with the request.
func (c Constants) WithValue(t Doubt, dep Deployment, v float64) Constants {
	old := c.Value(t, dep)
	if old <= 0 {
		return c
	}
	most := math.Inf(1)
	if t.Efficiency() && dep.Hardware.Generation.measured() {
		v, most = min(v, highestShare), 1
	}
	return c.times(t, v/old, most)
}

// times multiplies the constants of a term, limiting shares to most.
func (c Constants) times(t Doubt, by, most float64) Constants {
	switch t {
	case DoubtFrontend:
		c.Frontend.Request *= by
	case DoubtIntake:
		c.Frontend.Intake *= by
		c.Fixed.Core *= by
	case DoubtStream:
		c.Frontend.Event *= by
	case DoubtStep:
		c.Fixed.Step *= by
		c.Fixed.SyncStep *= by
	case DoubtLayer:
		c.Fixed.Layer *= by
		c.Fixed.FormatLayer = c.Fixed.FormatLayer.Scaled(by, math.Inf(1))
		c.Fixed.MoELayer *= by
		c.Fixed.BlockExpert *= by
		c.Fixed.Latent *= by
	case DoubtLaunch:
		c.Fixed.Launch *= by
		c.Fixed.LaunchAll *= by
		c.Fixed.LaunchPiece *= by
	case DoubtRequest:
		c.Fixed.Request *= by
		c.Sampler.Sort *= by
		c.Sampler.Triton *= by
	case DoubtWeights:
		c.Weights = c.Weights.Scaled(by, most)
		c.Experts = c.Experts.Scaled(by, most)
		c.Head.Memory = min(c.Head.Memory*by, most)
	case DoubtKV:
		c.KV = c.KV.Scaled(by, most)
	case DoubtPrefill:
		c.Prefill = c.Prefill.Scaled(by, most)
		c.PrefillExperts = c.PrefillExperts.Scaled(by, most)
		c.Head.Compute = min(c.Head.Compute*by, most)
	case DoubtPrefillAttention:
		c.Attention.Prefill = min(c.Attention.Prefill*by, most)
	case DoubtSkinny:
		c.Skinny *= by
	}
	return c
}
