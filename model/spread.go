package model

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Spread is how far the constants may be off: relative standard deviations, of the
// logarithm. Zero means certain.
type Spread struct {
	Weights          float64 // streaming of dense matrices and of experts together
	Experts          float64 // streaming of experts, on top of that
	KV               float64
	Prefill          float64 // dense and expert products together
	PrefillExperts   float64 // expert products, on top of that
	PrefillAttention float64
	Skew             float64
	Step             float64
	Layer            float64
	Request          float64
	Frontend         float64
	Communication    float64
	Routing          float64 // how unevenly tokens choose experts
	Draft            float64 // the time to propose tokens
	Refusals         float64 // the chance that proposed tokens are refused
	Equations        float64 // the time of every step, whatever its parts
}

// Of is the spread of a term.
func (s Spread) Of(t Term) float64 { return *s.slot(t) }

// slot is where the spread of a term stands.
func (s *Spread) slot(t Term) *float64 {
	return [termCount]*float64{&s.Frontend, &s.Step, &s.Layer, &s.Request, &s.Weights, &s.KV, &s.Prefill}[t]
}

// With returns a copy with the spread of one term replaced.
func (s Spread) With(t Term, sd float64) Spread {
	*s.slot(t) = sd
	return s
}

// Times returns the spread with everything so many times as uncertain.
func (s Spread) Times(by float64) Spread {
	for _, sd := range []*float64{&s.Weights, &s.Experts, &s.KV, &s.Prefill, &s.PrefillExperts, &s.PrefillAttention, &s.Skew,
		&s.Step, &s.Layer, &s.Request, &s.Frontend, &s.Communication, &s.Routing, &s.Draft, &s.Refusals, &s.Equations} {
		*sd *= by
	}
	return s
}

// SpreadFor returns the spread of the constants for a deployment on an engine: from the ranges that
// fits to several servers gave (weights 0.83-0.88, layer 33-34 and 73-106 us, step
// 130-550 us, request 1-3 us, frontend 6.5-8 ms, prefill +-0.08) where kernels of the
// very GPU were timed; twice that on other GPUs; more for what no served run tests:
// latent attention, fp8 cache, experts in formats other than bf16 and mxfp4, expert or
// data parallelism, tensor parallelism over PCIe or Infinity Fabric; and more for a
// release that is newer than its evidence.
func SpreadFor(dep Deployment, args EngineArgs) Spread {
	dep = dep.Normal()
	s := Spread{
		Weights: 0.04, KV: 0.06, Prefill: 0.08, PrefillAttention: 0.10, Skew: 0.20,
		Step: 0.25, Layer: 0.08, Request: 0.30, Frontend: 0.08, Communication: 0.10,
	}
	if !dep.Hardware.Timed() {
		s.Weights, s.KV, s.Prefill, s.PrefillAttention = 0.10, 0.12, 0.16, 0.20
		s.Layer, s.Step, s.Communication = 0.20, 0.35, 0.25
	}
	if dep.Hardware.Generation == GenerationUnknown {
		s.Weights, s.KV, s.Prefill, s.PrefillAttention = 0.15, 0.18, 0.25, 0.30
		s.Layer, s.Step = 0.30, 0.50
	}
	s.widenForArch(dep)
	if dep.TP > 1 && dep.Hardware.GeForce() {
		s.Communication = max(s.Communication, 0.40) // a factor of 1.5 between two releases
	}
	if dep.TP > 1 && dep.Hardware.Link.Kind != LinkNVLink || dep.PP > 1 {
		s.Communication = max(s.Communication, 0.35)
	}
	if dep.TP > 2 && dep.Hardware.Link.Kind == LinkPCIe {
		s.Communication = max(s.Communication, 0.75) // the tables of two systems differ 12 times at 4 MB
	}
	if dep.Nodes() > 1 {
		s.Communication = max(s.Communication, 0.50) // no served run tests it
	}
	if w := dep.denseFormat(); dep.Hardware.Generation == GenerationBlackwell && (w == FP8 || w == NVFP4) {
		s.Layer = max(s.Layer, 0.12) // floors of their products, 25 % either way
	}
	if mode := args.graphs(); mode == GraphsDecodeOnly || mode == GraphsNone {
		s.Layer = max(s.Layer, 0.20) // launches, of which two servers tell
	}
	if args.Speculation.On() {
		s.Draft, s.Refusals = 0.50, 0.15 // no served run tests it; texts differ by more than that
	}
	if args.LoRA.On() {
		s.Layer = max(s.Layer, 0.20) // no served run tests what adapters add to it
	}
	if _, active := dep.Arch.Params(); active < leastServed {
		s.Layer, s.Step = max(s.Layer, 0.20), max(s.Step, 0.40)
	}
	_, evidence := dep.unserved()
	s.Equations = evidence.Error()
	s.age(dep, args)
	return s
}

// widenForArch adds the doubt about features that no served run tests.
func (s *Spread) widenForArch(dep Deployment) {
	a, w := dep.Arch, dep.Precision.Weights
	if a.Attention.MLA.Present() {
		s.KV = max(s.KV, 0.20)
		s.PrefillAttention = max(s.PrefillAttention, 0.20)
		s.Layer = max(s.Layer, 0.20)
	}
	if a.State.Present() {
		s.KV, s.PrefillAttention, s.Layer = max(s.KV, 0.30), max(s.PrefillAttention, 0.30), max(s.Layer, 0.25)
	}
	if a.Attention.Sparse.Keys > 0 {
		s.KV, s.PrefillAttention = max(s.KV, 0.30), max(s.PrefillAttention, 0.40)
	}
	if dep.Precision.KV == KVFP8 {
		s.KV = max(s.KV, 0.15)
	}
	if w == INT4 || w == INT8 || w == NVFP4 {
		s.Weights = max(s.Weights, 0.12)
		s.Prefill = max(s.Prefill, 0.20)
	}
	if a.MoE.Present() {
		s.Experts, s.PrefillExperts, s.Routing = 0.05, 0.15, 0.30
		if w != BF16 && w != FP16 && w != MXFP4 {
			s.Experts, s.PrefillExperts = 0.12, 0.30
		}
		if a.Details.BlockFP8 && w == FP8 {
			s.Layer = max(s.Layer, 0.25)
		}
		if dep.EP || dep.DP > 1 {
			s.Experts, s.PrefillExperts = max(s.Experts, 0.15), max(s.PrefillExperts, 0.30)
			s.Communication = max(s.Communication, 0.35)
		}
	}
}

// timedGPUs are the catalog names of the GPUs in the kernel tables.
var timedGPUs = []string{"H100 SXM", "H200 SXM", "B200 SXM", "A100 SXM 80GB", "A100 SXM 40GB", "L40S", "RTX PRO 6000 Blackwell Server"}

// Timed reports whether kernels of the very GPU were timed.
func (h Hardware) Timed() bool { return slices.Contains(timedGPUs, h.Name) }

// Sample draws one plausible set of constants: every constant times the exponential of
// a normal draw, efficiencies kept below 0.97. Two calls with equally seeded
// generators give equal constants, and the draws come in the same order whatever the
// spread, so that samples of different deployments are paired. Draws are independent;
// fits trade bandwidth shares against layer costs, so together they are spread somewhat
// too wide.
func (c Constants) Sample(rng *rand.Rand, s Spread) Constants {
	factor := func(sd float64) float64 { return math.Exp(sd * rng.NormFloat64()) }
	weights, experts := factor(s.Weights), factor(s.Experts)
	kv := factor(s.KV)
	prefill, prefillExperts := factor(s.Prefill), factor(s.PrefillExperts)
	attention, skew := factor(s.PrefillAttention), factor(s.Skew)
	step, layer, request := factor(s.Step), factor(s.Layer), factor(s.Request)
	frontend, communication := factor(s.Frontend), factor(s.Communication)
	routing := factor(s.Routing)
	draft, refusals := factor(s.Draft), factor(s.Refusals)
	longer := factor(s.Equations)

	c.Experts = c.Experts.scaled(experts, math.Inf(1))
	c.PrefillExperts = c.PrefillExperts.scaled(prefillExperts, math.Inf(1))
	for t, by := range [termCount]float64{
		TermFrontend: frontend, TermStep: step, TermLayer: layer, TermRequest: request, TermWeights: weights, TermKV: kv, TermPrefill: prefill,
	} {
		switch {
		case Term(t).Efficiency():
			by /= longer
		case Term(t) != TermFrontend:
			by *= longer
		}
		c = c.times(Term(t), by, highestShare)
	}
	c.Attention.Prefill = min(c.Attention.Prefill*attention/longer, highestShare)
	c.Attention.Skew = min(c.Attention.Skew*skew, 1)
	c.Frontend.PromptToken *= frontend
	c.Link.Scale *= communication * longer
	c.Uneven *= routing
	c.Link.ExpertSpread *= routing
	c.Draft.Pass *= draft
	c.Draft.Search *= draft
	c.Draft.Refusals *= refusals
	return c
}

// highestShare is more of a data sheet's peak than any kernel was seen to reach.
const highestShare = 0.97
