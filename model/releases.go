package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// kernelFamily is a group of kernels, or of costs around them, whose constants change with the engine's
// release.
type kernelFamily string

// The families. Their names appear in notes.
const (
	familyBF16       kernelFamily = "bf16 products"
	familyFP8        kernelFamily = "fp8 products"
	familyFP8Gen5    kernelFamily = "fp8 products on Blackwell"
	familyFP4Gen5    kernelFamily = "nvfp4 products on Blackwell"
	familyAttention  kernelFamily = "attention"
	familyReduce     kernelFamily = "all-reduces"
	familyMarlin     kernelFamily = "4-bit experts by Marlin"
	familyTriton     kernelFamily = "4-bit experts by Triton"
	familyFlashInfer kernelFamily = "4-bit experts by FlashInfer"
	familySort       kernelFamily = "sampling by a sort"
	familySampler    kernelFamily = "sampling by Triton"
	familyHost       kernelFamily = "scheduling and launches"
)

// constantRow is what is known of a family from release 0.x on, until its next row: the constant, its spread
// (of the logarithm), the newest release with evidence, and what each later release adds to the spread. A value
// of 0 means that the GPUs' profiles hold the constants and only their age is recorded here.
type constantRow struct {
	family        kernelFamily
	from, seen    int
	value         float64
	spread, aging float64
	source, date  string
}

// constantRows are the constants by release. KT are aiconfigurator's kernel tables as of 2026-08, between whose
// releases aging is the difference; served are runs of testdata/groundtruth.
var constantRows = []constantRow{
	{familyBF16, 10, 24, 0, 0, 0.004, "KT; served", "2026-08"},
	{familyFP8, 10, 24, 0, 0, 0.005, "KT; served", "2026-08"},
	// Share of bandwidth, from a fit of a 70B model's layer as A/tp + B in KT.
	{familyFP8Gen5, 10, 19, 0.72, 0.07, 0.03, "KT of 0.19; served 0.10.2", "2026-08"},
	{familyFP8Gen5, 22, 24, 0.61, 0.10, 0.03, "KT of 0.24", "2026-08"},
	{familyFP4Gen5, 10, 19, 0.60, 0.12, 0.05, "served 0.10.2; 0.51 in KT of 0.19", "2026-08"},
	{familyFP4Gen5, 22, 24, 0.69, 0.12, 0.05, "KT of 0.24", "2026-08"},
	{familyAttention, 10, 24, 0, 0, 0.005, "KT; served", "2026-08"},
	{familyReduce, 10, 24, 0, 0, 0.01, "KT; served", "2026-08"},
	// Share of bf16 compute on long prompts.
	{familyMarlin, 10, 18, 0.20, 0.08, 0.01, "served 0.18; 0.16 to 0.19 in KT, padding included", "2026-03"},
	{familyTriton, 10, 10, 0.21, 0.15, 0.02, "served 0.10.2, six runs", "2025-11"},
	{familyTriton, 19, 24, 0.42, 0.20, 0.03, "KT of 0.24, uneven routing; 0.56 if even", "2026-08"},
	// Share of the fp8 rate.
	{familyFlashInfer, 10, 15, 0.35, 0.15, 0.03, "served 0.15.1", "2026-02"},
	// Seconds per row and entry of the vocabulary.
	{familySort, 10, 16, 0.25e-9, 0.20, 0.02, "vLLM pull request 33538: 0.21 to 0.31 at 32,768 entries", "2026-02"},
	{familySampler, 10, 17, 0.075e-9, 0.35, 0.02, "vLLM pull request 33538: 0.05 to 0.1", "2026-02"},
	{familyHost, 10, 18, 0, 0, 0.01, "served", "2026-03"},
}

// agedMost bounds what age adds to a spread.
const agedMost = 0.25

// at returns a family's row for a release, or its first one if the release is older; zero for an unknown
// family.
func (f kernelFamily) at(v Version) constantRow {
	var found constantRow
	for _, row := range constantRows {
		if row.family == f && (found.family == "" || row.from <= v.minor()) {
			found = row
		}
	}
	return found
}

// aged returns what the releases since the evidence add to the spread.
func (c constantRow) aged(v Version) float64 {
	return min(c.aging*float64(max(0, v.minor()-c.seen)), agedMost)
}

// familiesOf returns the families that a deployment on an engine uses, by the doubt whose spread theirs adds
// to.
func familiesOf(dep Deployment, args EngineArgs) [doubtCount]kernelFamily {
	uses := [doubtCount]kernelFamily{DoubtKV: familyAttention, DoubtStep: familyHost, DoubtWeights: familyBF16}
	_, native := dep.Hardware.Flops.computeFormat(dep.denseFormat())
	switch w := dep.denseFormat(); {
	case w == FP8 && native && dep.Hardware.Generation == GenerationBlackwell:
		uses[DoubtWeights] = familyFP8Gen5
	case w == FP8 && native:
		uses[DoubtWeights] = familyFP8
	case w == NVFP4 && native:
		uses[DoubtWeights] = familyFP4Gen5
	}
	if dep.TP > 1 {
		uses[DoubtCommunication] = familyReduce
	}
	if dep.Arch.MoE.Present() {
		if w := dep.Precision.Weights; w == MXFP4 || w == INT4 || w == NVFP4 && args.experts(dep) == ExpertsMarlin {
			uses[DoubtPrefillExperts] = args.experts(dep).family()
		}
	}
	switch args.sampler(dep) {
	case SamplerSort:
		uses[DoubtRequest] = familySort
	case SamplerTriton:
		uses[DoubtRequest] = familySampler
	}
	return uses
}

// age widens the spread by what may have changed between the measured releases and this one.
func (s *Spread) age(dep Deployment, args EngineArgs) {
	v := versionOf(args.EngineVersion)
	for d, family := range familiesOf(dep, args) {
		row := family.at(v)
		s[d] = math.Hypot(max(s[d], row.spread), row.aged(v))
	}
}

// Aged says which constants of a deployment were measured only on releases older than the engine's, so that its
// interval is wider; empty if none.
func Aged(dep Deployment, args EngineArgs) string {
	dep = dep.Normal()
	v := versionOf(args.EngineVersion)
	older := map[int][]string{}
	for _, family := range familiesOf(dep, args) {
		if row := family.at(v); family != "" && v.minor() > row.seen {
			older[row.seen] = append(older[row.seen], string(family))
		}
	}
	var parts []string
	for seen := range newestMinor {
		if names := older[seen]; len(names) > 0 {
			slices.Sort(names)
			parts = append(parts, fmt.Sprintf("%s up to 0.%d", strings.Join(slices.Compact(names), ", "), seen))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("vLLM 0.%d is newer than what its kernels' constants were measured on, so the interval is wider: %s", v.minor(), strings.Join(parts, "; "))
}

// bygones are costs per layer with experts in releases before 0.until, each timed alone by whoever removed it.
// Predictions are compared with no server that has them.
var bygones = []struct {
	until int
	cost  float64
	of    func(Arch) bool
}{
	// Shared experts run after the routed ones instead of beside them: DeepSeek-R1 on 8 x B200, 32 at a time,
	// 23.35 to 22.09 ms a token (vLLM pull request 26440, 2025-10; for experts in a latent space 32790,
	// 2026-02).
	{12, 22e-6, func(a Arch) bool { return a.MoE.SharedIntermediate > 0 && a.MoE.Latent == 0 }},
	{16, 22e-6, func(a Arch) bool { return a.MoE.SharedIntermediate > 0 && a.MoE.Latent > 0 }},
	// A sigmoid and a bias in four small kernels before the top-k (28124, 2025-11), a top-k of 7 us instead of
	// 4 (34206, 2026-02), and a kernel that widens scores, 2 us (35121, 2026-02).
	{12, 9e-6, func(a Arch) bool { return a.Details.RouterBias }},
	{17, 5e-6, func(a Arch) bool { return a.Details.RouterBias }},
}

// matmulOGS is what Triton's kernels for experts in mxfp4 take longer per layer than AITER's on a GPU of CDNA3, which
// has no matrix instructions for mxfp4: one request at gpt-oss-120b on 8 x MI300X has 133 and 264 tokens/s (vLLM
// pull request 55934, 2026-09). It grows with requests, to 298 us at 128 of them, which is of the spread.
const matmulOGS = 104e-6

// byMatmulOGS reports whether experts run in these.
func (l EngineArgs) byMatmulOGS(d Deployment) bool {
	return d.Hardware.Generation == GenerationCDNA3 && d.Precision.Weights == MXFP4 && d.Arch.MoE.Present() && l.experts(d) == ExpertsTriton
}

// bygoneCosts returns the sum of them per layer with experts for a model and a release.
func bygoneCosts(a Arch, v Version) (cost float64) {
	for _, b := range bygones {
		if v.minor() < b.until && b.of(a) {
			cost += b.cost
		}
	}
	return cost
}
