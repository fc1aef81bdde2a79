package model

import (
	"math"
	"math/rand/v2"
	"planner/internal/list"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Doubt names a part of the constants that may be off on its own.
type Doubt int

// The doubts, in the order in which they are drawn.
const (
	DoubtWeights Doubt = iota // streaming of dense matrices and of experts together
	DoubtExperts              // streaming of experts, on top of that
	DoubtKV
	DoubtPrefill        // dense and expert products together
	DoubtPrefillExperts // expert products, on top of that
	DoubtPrefillAttention
	DoubtSkew
	DoubtStep     // seconds per step
	DoubtLayer    // seconds per layer and step, inside CUDA graphs
	DoubtRequest  // seconds per running request and step
	DoubtFrontend // seconds per request outside the engine's loop
	DoubtCommunication
	DoubtRouting   // how unevenly tokens choose experts
	DoubtDraft     // the time to propose tokens
	DoubtRefusals  // the chance that proposed tokens are refused
	DoubtEquations // the time of every step, whatever its parts
	DoubtLaunch    // the host's time to launch the layers of a step without graphs or in pieces
	DoubtStream    // the front end's time to stream an event
	DoubtSite      // the time of every step elsewhere than where the constants were measured
	DoubtIntake    // the front end's time to take in a request, and the engine's to schedule one
	DoubtSkinny    // products of few rows
	doubtCount
)

// Spread is how far the constants may be off, by doubt: standard deviations of the logarithm. Zero means
// certain.
type Spread [doubtCount]float64

// Times returns the spread with all deviations multiplied.
func (s Spread) Times(by float64) Spread {
	for d := range s {
		s[d] *= by
	}
	return s
}

// SpreadFor returns the spread of the constants for a deployment on an engine. If kernels of the very GPU were
// timed it is that of fits to several servers (weights 0.83-0.88, layer 33-34 and 73-106 us, step 130-550 us,
// request 1-3 us, prefill +-0.08, large all-reduces 0.8-1.16 times what they are taken for); on other GPUs most
// are 1.25 to 2.5 times that. Host times differ as much as hosts do: a front end takes from a quarter of the
// fits' 6.5-8 ms to four times as much (frontendDoubt), and the launch of a layer at most 0.55 ms on the fits'
// hosts, 0.8 in aiconfigurator's corpus and 1.2 on a virtual machine with an H200, where a layer with experts
// took up to 1.9 and one with latent attention too 2.8 (2026-11, docs/predictions.md). One run has one host, so
// for short prompts, whose time to first token is mostly host time, runs of one deployment differ by more than
// its kernels do. The spread is wider for what no served run tests, such as latent attention, fp8 cache,
// experts in formats other than bf16 and mxfp4, expert or data parallelism, tensor parallelism over PCIe or
// Infinity Fabric; and for a release newer than its evidence.
func SpreadFor(dep Deployment, args EngineArgs) Spread {
	dep = dep.Serving(args)
	s := leastSpread(dep, args)
	_, evidence := dep.unserved()
	s[DoubtEquations], s[DoubtSite] = evidence.Error(), siteDoubt
	s.age(dep, args)
	return s
}

// frontendDoubt is the spread of front ends around the default of 7 ms, of the logarithm. Subtracting the
// simulated steps from the time to first token of nine servers that others ran under light load leaves 1, 4, 6,
// 8, 10, 11, 21, 26 and 50 ms (docs/predictions.md), and fits of others gave 9 and 16: a deviation of 1.0 over
// these and the 7 ms, 0.86 to 1.05 with any one left out, including errors of the steps.
const frontendDoubt = 0.9

// streamDoubt is the spread of the events/s that a front-end process streams, of the logarithm: with their Python
// clients those that were seen to be full ended at 6.9, 7.4, 10.8, 12.9 and 18.7 thousand, one alone at 67
// (docs/predictions.md).
const streamDoubt = 0.7

// intakeDoubt is the spread of the time in which a front-end process takes in a request, of the logarithm: 2.4 ms were
// measured, and of public bursts each request cost those beside it 1.3, 1.9, 2.0, 3.0, 3.5 and 5.1 ms with its client's
// share. A token of a prompt takes 1.07 to 2.7 us where 1.5 are assumed (docs/predictions.md).
const intakeDoubt = 0.5

// siteDoubt is the standard deviation, of the logarithm, of an error common to all steps of a server elsewhere than
// where the constants were measured: power limits, hosts, virtual machines and clients differ. With it the 90 %
// intervals hold .88 of 727 times per token, durations and rates of public servers and .77 of 293 times to first token,
// .84 and .74 with half of it (go run ./internal/evidence/accuracy -public, 2026-11-29).
const siteDoubt = 0.16

// leastSpread returns the least spread of a deployment: for each doubt the widest of the rules that apply.
func leastSpread(dep Deployment, args EngineArgs) (s Spread) {
	a, hw, link, w := dep.Arch, dep.Hardware, dep.Hardware.Link.Kind, dep.Precision.Weights
	dense, moe := dep.denseFormat(), dep.Arch.MoE.Present()
	_, active := a.Params()
	backend := args.all2all(dep)
	for _, rule := range []struct {
		holds bool
		least Spread
	}{
		{true, Spread{DoubtWeights: 0.04, DoubtKV: 0.06, DoubtPrefill: 0.08, DoubtPrefillAttention: 0.10, DoubtSkew: 0.20,
			DoubtStep: 0.25, DoubtLayer: 0.08, DoubtRequest: 0.30, DoubtFrontend: frontendDoubt, DoubtCommunication: 0.20, DoubtLaunch: 0.50, DoubtStream: streamDoubt, DoubtIntake: intakeDoubt}},
		{!hw.Timed(), Spread{DoubtWeights: 0.10, DoubtKV: 0.12, DoubtPrefill: 0.16, DoubtPrefillAttention: 0.20,
			DoubtLayer: 0.20, DoubtStep: 0.35, DoubtCommunication: 0.25}},
		// A running request costs CPUs .3 and 2 ms a step (probes of vLLM and llama-server, 2026-11), not 2 us.
		{!hw.Generation.measured(), Spread{DoubtWeights: 0.15, DoubtKV: 0.18, DoubtPrefill: 0.25, DoubtPrefillAttention: 0.30,
			DoubtLayer: 0.30, DoubtStep: 0.50, DoubtRequest: 1, DoubtSkinny: 0.50}},
		// Their kernels for attention and prompts reached .09 to .12 of peaks that a data sheet promised, a fifth of
		// what GPUs do (probe of llama-server, 2026-11).
		{hw.Generation == GenerationCPU, Spread{DoubtWeights: 0.50, DoubtKV: 1, DoubtPrefill: 1, DoubtPrefillAttention: 1}},
		// Features that no served run tests.
		{a.Attention.MLA.Present(), Spread{DoubtKV: 0.20, DoubtPrefillAttention: 0.20, DoubtLayer: 0.20, DoubtLaunch: 0.70}},
		{a.State.Present(), Spread{DoubtKV: 0.30, DoubtPrefillAttention: 0.30, DoubtLayer: 0.25}},
		{a.Attention.Sparse.Keys > 0, Spread{DoubtKV: 0.30, DoubtPrefillAttention: 0.40}},
		{a.Attention.Compressed.Present(), Spread{DoubtKV: 0.40, DoubtPrefillAttention: 0.50, DoubtLayer: 0.30}},
		// Prompts took 2.5 times as long on two RTX PRO 6000 (vLLM pull request 41834, kernels in Triton).
		{a.Attention.Compressed.Present() && hw.Generation != GenerationHopper && hw.Generation != GenerationBlackwell, Spread{DoubtKV: 0.60, DoubtPrefillAttention: 0.80, DoubtPrefill: 0.50}},
		{flash2(hw) && a.Details.Sinks || a.Attention.HeadDim > widestHead, Spread{DoubtPrefillAttention: 0.40}},
		{dep.Precision.KV == KVFP8, Spread{DoubtKV: 0.15}},
		{w == INT4 || w == INT8 || w == NVFP4, Spread{DoubtWeights: 0.12, DoubtPrefill: 0.20}},
		{moe, Spread{DoubtExperts: 0.05, DoubtPrefillExperts: 0.15, DoubtRouting: 0.30, DoubtLaunch: 0.70}},
		{moe && w != BF16 && w != FP16 && (w != MXFP4 || flash2(hw)), Spread{DoubtExperts: 0.12, DoubtPrefillExperts: 0.30}},
		{args.byMatmulOGS(dep), Spread{DoubtExperts: 0.40, DoubtPrefillExperts: 0.40}},
		{moe && dep.blockScaled(), Spread{DoubtLayer: 0.25}},
		// Triton's products, which are in no table: a Qwen3-VL-32B on an L40S took 1.4 times as long (vLLM pull
		// request 29217).
		{dep.blockScaled() && hw.Generation != GenerationHopper && hw.Generation != GenerationBlackwell, Spread{DoubtWeights: 0.20, DoubtPrefill: 0.30}},
		{moe && (dep.EP || dep.DP > 1), Spread{DoubtExperts: 0.15, DoubtPrefillExperts: 0.30, DoubtCommunication: 0.35}},
		{dep.TP > 1 && link != LinkNVLink || dep.PP > 1, Spread{DoubtCommunication: 0.35}},
		// The tables of two systems differ by a factor of 12 at 4 MB. Cards of GeForce have no peer access: two to
		// four RTX 4090 left it 1.5 to 5 GB/s, by their times per token (docs/predictions.md).
		{link == LinkPCIe && (dep.TP > 2 || dep.TP > 1 && hw.GeForce()), Spread{DoubtCommunication: 0.75}},
		{dep.Nodes() > 1 || args.Exchange.DBO, Spread{DoubtCommunication: 0.50}},
		// Nobody's tables, or those of Hopper only: DeepEP's kernels reach .27 to .63 of a B200's links.
		{backend == All2AllPPLX || backend == All2AllFlashInfer || backend.deepEP() && hw.Generation != GenerationHopper, Spread{DoubtCommunication: 0.60}},
		{hw.Generation == GenerationBlackwell && (dense == FP8 || dense == NVFP4), Spread{DoubtLayer: 0.12}}, // the floors of their products vary by 25 % either way
		{args.Speculation.On(), Spread{DoubtDraft: 0.50, DoubtRefusals: 0.15}},                               // texts differ by more than that
		{args.LoRA.On(), Spread{DoubtLayer: 0.20}},
		{active < leastServed, Spread{DoubtLayer: 0.20, DoubtStep: 0.40}},
	} {
		if rule.holds {
			for d, sd := range rule.least {
				s[d] = max(s[d], sd)
			}
		}
	}
	return s
}

// timedGPUs are the catalog names of the GPUs in the kernel tables except the A100, whose table promises more
// than public runs on it reach (docs/decisions/0017).
var timedGPUs = []string{"H100 SXM", "H200 SXM", "B200 SXM", "L40S", "RTX PRO 6000 Blackwell Server"}

// Timed reports whether kernels of the very GPU were timed, and servers reach what these promise.
func (h Hardware) Timed() bool { return slices.Contains(timedGPUs, h.Name) }

// Samples draws n plausible sets of constants: every constant times the exponential of a normal draw,
// efficiencies kept below 0.97 unless one was calibrated beyond it. They are a Latin hypercube (McKay, Beckman and
// Conover 1979): of each doubt's n equal parts of the normal distribution every set has another. Equal seeds give equal
// draws whatever the spread, so that samples of different deployments are paired. Doubts are independent; since
// fits trade bandwidth shares against layer costs, their joint spread is somewhat too wide.
func (c Constants) Samples(n int, seed uint64, s Spread) []Constants {
	rng := rand.New(rand.NewPCG(seed, 0))
	draws := make([][doubtCount]float64, n)
	for d := range doubtCount {
		for i, part := range rng.Perm(n) {
			draws[i][d] = distuv.UnitNormal.Quantile((float64(part) + rng.Float64()) / float64(n))
		}
	}
	return list.Map(draws, func(normal [doubtCount]float64) Constants { return c.varied(normal, s) })
}

func (c Constants) varied(normal [doubtCount]float64, s Spread) Constants {
	var by [doubtCount]float64
	for d := range by {
		by[d] = math.Exp(s[d] * normal[d])
	}
	longer := by[DoubtEquations] * by[DoubtSite]
	most := highestShare
	if max(slices.Max(c.Weights[:]), slices.Max(c.KV[:]), slices.Max(c.Prefill[:]), c.Attention.Prefill) > most {
		most = math.Inf(1) // the peaks are a user's guess
	}
	c.Experts = c.Experts.Scaled(by[DoubtExperts], math.Inf(1))
	c.PrefillExperts = c.PrefillExperts.Scaled(by[DoubtPrefillExperts], math.Inf(1))
	for _, t := range terms {
		factor := by[t]
		switch {
		case t.Efficiency():
			factor /= longer
		case t != DoubtFrontend && t != DoubtIntake && t != DoubtStream && t != DoubtSkinny:
			factor *= longer
		}
		c = c.times(t, factor, most)
	}
	c.States *= longer / by[DoubtPrefillAttention]
	c.Attention.Skew = min(c.Attention.Skew*by[DoubtSkew], 1)
	c.Frontend.PromptToken *= by[DoubtFrontend]
	c.Link.Scale *= by[DoubtCommunication] * longer
	c.Link.Overlap = min(1, c.Link.Overlap/by[DoubtCommunication])
	c.Uneven *= by[DoubtRouting]
	c.Link.ExpertSpread *= by[DoubtRouting]
	c.Draft.Pass *= by[DoubtDraft]
	c.Draft.Search *= by[DoubtDraft]
	c.Draft.Refusals *= by[DoubtRefusals]
	return c
}

// highestShare is a larger share of a data sheet's peak than any kernel was seen to reach.
const highestShare = 0.97
