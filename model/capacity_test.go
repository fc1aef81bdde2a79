package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/list"
)

func plan(d Deployment, l EngineArgs) Memory {
	return must.Get(MemoryPlan(d, l))
}

func TestBoundsFollowFromTheDataSheet(t *testing.T) {
	d := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
	r := roofline(t, d, "0.15.1")
	m := plan(d, EngineArgs{MaxModelLen: 8192, EngineVersion: "0.15.1"})
	b := r.Bounds(MeanRequest{Prompt: 1000, Output: 200}, m)
	// All matrices but the input embedding, two bytes each.
	weights := 2 * (8030261248 - 128256*4096) / 3350e9
	if math.Abs(b.WeightSeconds/weights-1) > 1e-3 {
		t.Errorf("weights stream in %v, want %v", b.WeightSeconds, weights)
	}
	if want := 1100 * 131072 / 3350e9; math.Abs(b.KVSeconds/want-1) > 1e-9 {
		t.Errorf("KV of a mean context reads in %v, want %v", b.KVSeconds, want)
	}
	if want := 2 * 1000 * (8030261248 - 2*128256*4096) / 989e12; b.PrefillSeconds < want || b.PrefillSeconds > 1.05*want {
		t.Errorf("prompt computes in %v, want a little above %v", b.PrefillSeconds, want)
	}
	if b.IdleTPOT < b.WeightSeconds || b.IdleTTFT < b.PrefillSeconds || b.ConcurrencyLimit != min(b.Concurrency, 1024) {
		t.Errorf("%+v", b)
	}
	// The bound is never beaten by the model.
	n := b.ConcurrencyLimit
	if modelled := float64(n) / r.Step(decodes(r, n, 1100)).Total; modelled > b.OutputTokensPerS {
		t.Errorf("%.0f tokens/s modelled, bound %.0f", modelled, b.OutputTokensPerS)
	}
}

func TestCapacity(t *testing.T) {
	d := deploy(t, "Llama-3.1-70B", "H100 SXM", 4)
	d.Precision.Weights = FP8
	l := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 8192, EngineVersion: "0.20.0"}
	m := plan(d, l)
	r := must.Get(NewRoofline(d, ConstantsFor(d.Hardware, EngineArgs{EngineVersion: "0.20.0"}), l))
	q := MeanRequest{Prompt: 600, Output: 250}
	free := r.Capacity(q, m, Targets{})
	if free.Batch != 256 {
		t.Errorf("without targets: %+v", free)
	}
	tight := r.Capacity(q, m, Targets{TPOT: 0.025})
	if tight.Rate >= free.Rate || tight.Step > 0.025 || tight.Step < 0.024 {
		t.Errorf("25 ms per token: %+v", tight)
	}
	// Little's law: requests decoding = rate x time that each decodes.
	if got := tight.Rate * q.Output * tight.Step; math.Abs(got/tight.Batch-1) > 1e-9 {
		t.Errorf("%v requests by Little's law, %v in the batch", got, tight.Batch)
	}
	if none := r.Capacity(q, m, Targets{TPOT: 0.001}); none.Rate != 0 {
		t.Errorf("1 ms per token: %+v", none)
	}
	if none := r.Capacity(q, m, Targets{TTFT: 0.001}); none.Rate != 0 {
		t.Errorf("1 ms to the first token: %+v", none)
	}
	long := r.Capacity(MeanRequest{Prompt: 6000, Output: 1000}, m, Targets{})
	if long.Rate <= 0 || long.Rate >= free.Rate {
		t.Errorf("long requests: %+v", long)
	}
	// The time of prompts alone, in parts that fill a step, where each has one token for an answer.
	parts := math.Ceil(12000 / float64(r.Args().MaxNumBatchedTokens-1))
	prompts := r.Step(Batch{Chunks: []Chunk{{Tokens: int(12000 / parts), Context: int(12000 * (parts - 1) / parts / 2)}}, Sampled: 1}).Total * parts
	if one := r.Capacity(MeanRequest{Prompt: 12000, Output: 1}, m, Targets{}); one.Rate < 0.8/prompts || one.Rate > 1.1/prompts {
		t.Errorf("answers of one token: %+v, %.3g s of prompts", one, prompts)
	}
	small := m
	small.Blocks = 1000
	if kv := r.Capacity(q, small, Targets{}); kv.Batch <= 0 || kv.Batch > 1000/45 {
		t.Errorf("small pool: %+v", kv)
	}
	// A warm prefix cache never lowers it, nor does a looser target.
	warm := r.Capacity(MeanRequest{Prompt: 600, Cached: 500, Output: 250}, m, Targets{TPOT: 0.025})
	if warm.Rate < tight.Rate {
		t.Errorf("warm %v, cold %v", warm.Rate, tight.Rate)
	}
	last := 0.0
	for tpot := 0.012; tpot < 0.1; tpot *= 1.1 {
		c := r.Capacity(q, m, Targets{TPOT: tpot})
		if c.Rate < 0.99*last {
			t.Errorf("%.1f ms per token allows %v/s, a tighter target %v/s", 1e3*tpot, c.Rate, last)
		}
		last = c.Rate
	}
}

func TestSamplesAreReproducibleAndPlausible(t *testing.T) {
	for name, d := range variants(t) {
		c, s := ConstantsFor(d.Hardware, EngineArgs{}), SpreadFor(d, EngineArgs{})
		if !slices.Equal(c.Samples(5, 7, s), c.Samples(5, 7, s)) {
			t.Errorf("%s: equal seeds, different constants", name)
		}
		if c.Samples(2, 7, Spread{})[1] != c {
			t.Errorf("%s: no spread, but other constants", name)
		}
		var below, above int
		r := roofline(t, d, "")
		batch := decodes(r, 32, 1000)
		mid := r.Step(batch).Total
		for _, sampled := range c.Samples(200, 1, s) {
			if v := sampled.Weights.For(d.Normal().denseFormat()); v <= 0.15 || v > highestShare {
				t.Errorf("%s: weights at %v of the data sheet", name, v)
			}
			r := must.Get(NewRoofline(d, sampled, EngineArgs{}))
			if got := r.Step(batch).Total; got < mid {
				below++
			} else if got > mid {
				above++
			}
		}
		if below < 60 || above < 60 {
			t.Errorf("%s: %d samples faster, %d slower than the central constants", name, below, above)
		}
	}
	// Wider where less is known.
	h := SpreadFor(deploy(t, "Llama-3.1-8B", "H100 SXM", 1), EngineArgs{})
	if m := SpreadFor(deploy(t, "Llama-3.1-8B", "MI300X", 1), EngineArgs{}); m[DoubtWeights] <= h[DoubtWeights] || m[DoubtPrefill] <= h[DoubtPrefill] {
		t.Errorf("MI300X %+v, H100 %+v", m, h)
	}
	if g := SpreadFor(deploy(t, "Llama-3.1-8B", "Gaudi3", 1), EngineArgs{}); g[DoubtWeights] <= h[DoubtWeights]*2 {
		t.Errorf("Gaudi3 %+v", g)
	}
}

// A term that is set reads back, and slows down or speeds up what it is about.
func TestTerms(t *testing.T) {
	for name, d := range variants(t) {
		c := ConstantsFor(d.Hardware, EngineArgs{EngineVersion: "0.11.0"})
		for _, term := range Terms() {
			v := c.Value(term, d)
			if term == DoubtSkinny && v == 0 && d.Hardware.Generation.measured() {
				continue // GPUs read weights meanwhile
			}
			if v <= 0 {
				t.Errorf("%s: %v is %v", name, term, v)
			}
			changed := c.WithValue(term, d, 0.8*v)
			if got := changed.Value(term, d); math.Abs(got/(0.8*v)-1) > 1e-12 {
				t.Errorf("%s: %v set to %v reads %v", name, term, 0.8*v, got)
			}
			if changed == c {
				t.Errorf("%s: setting %v changed nothing", name, term)
			}
		}
	}
}

// A text that all requests share is held once, and what the cache holds of a prompt
// need not be computed: then the bounds are those of the rest.
func TestBoundsWithSharedText(t *testing.T) {
	d := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
	r := roofline(t, d, "0.15.1")
	m := plan(d, EngineArgs{MaxModelLen: 20000, EngineVersion: "0.15.1"})
	alone := r.Bounds(MeanRequest{Prompt: 200, Output: 20}, m)
	whole := r.Bounds(MeanRequest{Prompt: 16200, Output: 20}, m)
	one := r.Bounds(MeanRequest{Prompt: 16200, Cached: 16000, Output: 20, Shared: 16000, Texts: 1}, m)
	if want := (m.Blocks - 1 - 1000) / 14; one.Concurrency != want {
		t.Errorf("%d requests fit beside one text of 1,000 blocks, want %d", one.Concurrency, want)
	}
	many := r.Bounds(MeanRequest{Prompt: 16200, Cached: 16000, Output: 20, Shared: 16000, Texts: 1e12}, m)
	if many.Concurrency < whole.Concurrency-1 || many.Concurrency > whole.Concurrency {
		t.Errorf("%d requests fit with a text each, %d of their own length", many.Concurrency, whole.Concurrency)
	}
	if one.PromptsPerS < 10*whole.PromptsPerS || one.PromptsPerS > alone.PromptsPerS {
		t.Errorf("%.3g prompts/s with all but 200 tokens cached, %.3g without, %.3g of 200 tokens alone", one.PromptsPerS, whole.PromptsPerS, alone.PromptsPerS)
	}
	if one.IdleTTFT > whole.IdleTTFT/5 || one.IdleTTFT < alone.IdleTTFT {
		t.Errorf("idle TTFT %.4f s with a cached prefix, %.4f s without, %.4f s of 200 tokens alone", one.IdleTTFT, whole.IdleTTFT, alone.IdleTTFT)
	}
	if one.KVSeconds != whole.KVSeconds {
		t.Errorf("each request reads its whole context: %v, want %v", one.KVSeconds, whole.KVSeconds)
	}
	last := 0
	for _, texts := range []float64{1000, 30, 10, 3, 1} {
		n := r.Bounds(MeanRequest{Prompt: 16200, Cached: 16000, Output: 20, Shared: 16000, Texts: texts}, m).Concurrency
		if n < last {
			t.Errorf("%g texts: %d requests fit, %d with more texts", texts, n, last)
		}
		last = n
	}
}

// A release that is newer than its evidence widens the interval and says so; the release of
// the evidence does neither.
func TestReleasesBeyondTheirEvidenceWidenTheInterval(t *testing.T) {
	d := deploy(t, "gpt-oss-120b", "B200 SXM", 2)
	at := func(version string) (Spread, string) {
		args := EngineArgs{EngineVersion: version}
		return SpreadFor(d, args), Aged(d, args)
	}
	known, silent := at("0.15.1")
	newest, said := at("")
	if silent != "" || !strings.Contains(said, "experts by FlashInfer up to 0.15") {
		t.Errorf("0.15: %q; newest: %q", silent, said)
	}
	if newest[DoubtPrefillExperts] <= known[DoubtPrefillExperts] || newest[DoubtStep] <= known[DoubtStep] || newest[DoubtWeights] <= known[DoubtWeights] {
		t.Errorf("spread of the newest release %+v, of the one with evidence %+v", newest, known)
	}
	for _, family := range constantRows {
		if family.seen < family.from || family.source == "" || family.date == "" {
			t.Errorf("%+v", family)
		}
	}
}

// What follows the release where nothing is said.
func TestKernelsFollowTheRelease(t *testing.T) {
	llama, oss := deploy(t, "Llama-3.1-8B", "H100 SXM", 1), deploy(t, "gpt-oss-120b", "H100 SXM", 1)
	for _, c := range []struct {
		version string
		graphs  GraphMode
		sampler Sampler
	}{{"0.10.2", GraphsPiecewise, SamplerSort}, {"0.11.0", GraphsFull, SamplerSort}, {"0.17.0", GraphsFull, SamplerTriton}, {"0.21.0", GraphsFull, SamplerFlashInfer}, {"", GraphsFull, SamplerFlashInfer}} {
		args := EngineArgs{EngineVersion: c.version}
		if args.graphs() != c.graphs || args.sampler(llama) != c.sampler || args.sampler(oss) != SamplerGreedy {
			t.Errorf("%q: graphs %v, sampler %v and %v", c.version, args.graphs(), args.sampler(llama), args.sampler(oss))
		}
	}
	for gpu, want := range map[string]Sampler{"MI300X": SamplerTriton, "Gaudi3": SamplerTriton, "L4": SamplerFlashInfer} {
		if got := (EngineArgs{}).sampler(deploy(t, "Llama-3.1-8B", gpu, 1)); got != want {
			t.Errorf("sampler on %s: %v, want %v", gpu, got, want)
		}
	}
	for name, want := range map[string]Sampler{"MiniMax-M2.5": SamplerSort, "GLM-5": SamplerSort, "GLM-4.7-Flash": SamplerSort, "Qwen3.5-27B": SamplerSort, "GLM-4.7": SamplerGreedy, "Kimi-K2.5": SamplerGreedy} {
		if got := (EngineArgs{EngineVersion: "0.16.0"}).sampler(deploy(t, name, "H200 SXM", 8)); got != want {
			t.Errorf("sampler of %s: %v, want %v", name, got, want)
		}
	}
	stages := Deployment{DP: 1, PP: 2}
	for version, want := range map[string][2]bool{"0.16.0": {false, false}, "0.17.0": {true, false}, "0.21.0": {true, true}, "": {true, true}} {
		args := EngineArgs{EngineVersion: version}
		if got := [2]bool{args.fusedReduce(Deployment{DP: 1, PP: 1}), args.fusedReduce(stages)}; got != want {
			t.Errorf("%q: all-reduces fused %v, with two stages too: want %v", version, got, want)
		}
	}
	if off := (EngineArgs{EngineFeatures: EngineFeatures{Kernels: Kernels{FusedReduce: Off}}}); off.fusedReduce(Deployment{DP: 1, PP: 1}) {
		t.Error("fused all-reduces cannot be switched off")
	}
	if got := (EngineArgs{}).experts(oss); got != ExpertsTriton {
		t.Errorf("experts on H100 by %v", got)
	}
}

// What no served run is like is said, and its interval is wider; what was served is not.
func TestUncalibratedDeploymentsSaySo(t *testing.T) {
	for _, c := range []struct {
		model, gpu string
		tp         int
		format     WeightFormat
		evidence   EvidenceLevel
		says       string
	}{
		{"Llama-3.1-70B", "H100 SXM", 4, FP8, Served, ""},
		{"Qwen2.5-32B", "H100 SXM", 2, FP16, Served, ""},
		{"Llama-3.1-70B", "H200 SXM", 4, BF16, ServedApart, "dense models in bf16 on the GPU H200 SXM"},
		{"Llama-3.1-8B", "L40S", 1, BF16, ServedApart, "the GPU L40S"},
		{"Llama-3.1-70B", "MI300X", 4, FP8, ServedSlower, "AMD GPUs"},
		{"Qwen3-32B", "H100 SXM", 2, INT4, NeverServed, "dense models in int4"},
		{"DeepSeek-V3", "H200 SXM", 8, FP8, ServedSlower, "latent attention"},
		{"GLM-4.6", "H200 SXM", 8, BF16, ServedSlower, "experts chosen by a biased score"},
		{"DeepSeek-V2-Lite", "H200 SXM", 1, BF16, NeverServed, "latent attention"},
		{"Gemma-3-27B", "H100 SXM", 2, BF16, NeverServed, "layers other than a Llama's"},
		{"Qwen3-0.6B", "H100 SXM", 1, BF16, NeverServed, "as few as 0.6 billion active parameters"},
	} {
		d := deploy(t, c.model, c.gpu, c.tp)
		d.Precision.Weights = c.format
		what, within := Uncalibrated(d)
		if said := strings.Join(what, ", "); !strings.Contains(said, c.says) || (said == "") != (c.says == "") {
			t.Errorf("%s in %v on %s: %q, want %q", c.model, c.format, c.gpu, said, c.says)
		}
		if s := SpreadFor(d, EngineArgs{}); s[DoubtEquations] != c.evidence.Error() || (within == 0) != (c.evidence == Served) {
			t.Errorf("%s in %v on %s: equations within %g (%g said), want %g", c.model, c.format, c.gpu, s[DoubtEquations], within, c.evidence.Error())
		}
	}
}

// What front ends of other hosts took (frontendDoubt) lies within the interval of 90 %, but for the
// least and the most of it.
func TestIntervalsHoldFrontEndsOfOtherHosts(t *testing.T) {
	d := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
	c, spread := ConstantsFor(d.Hardware, EngineArgs{}), SpreadFor(d, EngineArgs{})
	drawn := list.Map(c.Samples(2000, 1, spread), func(c Constants) float64 { return c.Frontend.Request })
	slices.Sort(drawn)
	within := 0
	for _, ms := range []float64{1, 4, 6, 7, 8, 9, 10, 11, 16, 21, 26, 50} {
		if ms/1e3 >= drawn[100] && ms/1e3 <= drawn[1900] {
			within++
		}
	}
	if within != 10 {
		t.Errorf("%d of 12 front ends within %.1f to %.1f ms, want all but the first and the last", within, 1e3*drawn[100], 1e3*drawn[1900])
	}
}

// A step of many requests reads the experts that they visit, and not only those that one does.
func TestReadSecondsOfExperts(t *testing.T) {
	d := deploy(t, "Qwen3-30B-A3B", "H100 SXM", 1)
	r := roofline(t, d, "0.15.1")
	b := r.Bounds(MeanRequest{Prompt: 1000, Output: 200}, plan(d, EngineArgs{MaxModelLen: 8192, EngineVersion: "0.15.1"}))
	for _, n := range []int{1, 4, 16, 64, 256} {
		w := r.Work(decodes(r, n, 1100))
		// Routing that is not even visits up to a sixth fewer.
		if want := (w.WeightBytes + w.KVBytes) / d.Hardware.Bandwidth; b.ReadSeconds(float64(n)) < 0.999*want || b.ReadSeconds(float64(n)) > 1.17*want {
			t.Errorf("%d requests: %.4g s, want %.4g", n, b.ReadSeconds(float64(n)), want)
		}
	}
}

// Stages of a pipeline share the caches and the operations of all requests, attention replicas the experts.
func TestBoundsOfStagesAndReplicas(t *testing.T) {
	for name, parts := range map[string][2]int{"Llama-3.1-8B": {4, 1}, "Qwen3-30B-A3B": {2, 2}} {
		d := deploy(t, name, "H100 SXM", 1)
		d.PP, d.DP = parts[0], parts[1]
		r := roofline(t, d, "0.15.1")
		b := r.Bounds(MeanRequest{Prompt: 1000, Output: 200}, plan(d, EngineArgs{MaxModelLen: 8192, EngineVersion: "0.15.1"}))
		all := d.PP * d.DP
		for _, each := range []int{1, 64, 256} {
			w := r.Work(decodes(r, each, 1100)) // of one stage, for its part of the requests
			want := (w.WeightBytes + w.KVBytes) * float64(d.PP) / d.Hardware.Bandwidth
			if got := b.ReadSeconds(float64(each * all)); got < 0.999*want || got > 1.17*want {
				t.Errorf("%s: %d requests on %d stages and replicas: %.4g s, want %.4g", name, each*all, all, got, want)
			}
		}
		each := b.ConcurrencyLimit / all
		w := r.Work(decodes(r, each, 1100))
		read, peak := b.AllWeightSeconds+float64(each)*b.KVSeconds, w.Flops*float64(d.PP)/b.PeakFlops
		if want := float64(b.ConcurrencyLimit) / max(read, peak); math.Abs(b.OutputTokensPerS/want-1) > 0.1 {
			t.Errorf("%s: %.4g tokens/s, want %.4g", name, b.OutputTokensPerS, want)
		}
		if n := b.KVEqualsWeights; math.Abs(n/float64(all)*b.KVSeconds/b.AllWeightSeconds-1) > 1e-9 {
			t.Errorf("%s: caches outweigh weights from %.4g requests on", name, n)
		}
	}
}

// TestSamplesAreALatinHypercube: each sixteenth of every doubt's distribution is drawn once.
func TestSamplesAreALatinHypercube(t *testing.T) {
	const n = 16
	c := ConstantsFor(must.Get(catalog().GPU("H100 SXM")), EngineArgs{})
	var taken [n]bool
	for _, s := range c.Samples(n, 3, Spread{DoubtStep: 0.5}) {
		z := math.Log(s.Fixed.Step/c.Fixed.Step) / 0.5
		taken[int(n*math.Erfc(-z/math.Sqrt2)/2)] = true
	}
	if slices.Contains(taken[:], false) {
		t.Errorf("parts drawn: %v", taken)
	}
}
