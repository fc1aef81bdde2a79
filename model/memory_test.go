package model

import (
	"math"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// Pools that servers reported, or that a fit to servers lists. None was used to set a
// constant except the three of vLLM 0.28, which set the size of CUDA graphs.
func TestKVPoolsAgreeWithReportedOnes(t *testing.T) {
	cases := []struct {
		what       string
		model, gpu string
		tp         int
		weights    WeightFormat
		args       EngineArgs
		blocks     int     // reported, or
		gib        float64 // available for the cache
		tolerance  float64
	}{
		{"vLLM 0.15.1 served benchmark", "Llama-2-7B", "H100 SXM", 1, FormatUnset,
			EngineArgs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: 0.9, MaxModelLen: 4096, EngineVersion: "0.15.1"}, 7463, 0, 0.02},
		{"ridgepoint 0.1.2, vLLM 0.28", "Llama-3.1-8B", "A100 SXM 80GB", 1, FormatUnset,
			EngineArgs{Utilization: 0.9, MaxModelLen: 8192, EngineVersion: "0.28.0"}, 0, 55.1, 0.02},
		{"ridgepoint 0.1.2, vLLM 0.28", "Qwen3-14B", "A100 SXM 80GB", 1, FormatUnset,
			EngineArgs{Utilization: 0.9, MaxModelLen: 8192, EngineVersion: "0.28.0"}, 0, 42.0, 0.03},
		{"ridgepoint 0.1.2, vLLM 0.28", "DeepSeek-V2-Lite", "A100 SXM 80GB", 1, FormatUnset,
			EngineArgs{Utilization: 0.9, MaxModelLen: 8192, EngineVersion: "0.28.0"}, 0, 40.8, 0.02},
	}
	for _, c := range cases {
		d := deploy(t, c.model, c.gpu, c.tp)
		d.Precision.Weights = c.weights
		m, err := MemoryPlan(d, c.args)
		if err != nil {
			t.Errorf("%s: %v", c.model, err)
			continue
		}
		got, want := m.KV/gib, c.gib
		if c.blocks > 0 {
			got, want = float64(m.Blocks), float64(c.blocks)
		}
		t.Logf("%s on %s (%s): %.2f, reported %.2f (%+.1f %%)", c.model, c.gpu, c.what, got, want, 100*(got/want-1))
		if math.Abs(got/want-1) > c.tolerance {
			t.Errorf("%s on %s: %.2f, reported %.2f: %s", c.model, c.gpu, got, want, m.arithmetic(d.Normal(), c.args.withDefaults(d)))
		}
	}
}

// Llama 4 Scout leaves the room that a server reported (8253
// blocks at fp8 on two H100, vLLM 0.15.1): attention in bf16, the vision tower and the
// profiling pass of its images take their part.
func TestScoutPoolIsAsReported(t *testing.T) {
	d := deploy(t, "Llama-4-Scout", "H100 SXM", 2)
	d.Precision.Weights = FP8
	m := must.Get(MemoryPlan(d, EngineArgs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: 0.9, MaxModelLen: 4096, EngineVersion: "0.15.1"}))
	missing := float64(m.Blocks-4*8253) * m.Layout.blockBytes(d.Normal()) / gib // four groups share what is reported
	t.Logf("%d blocks, reported 4 times 8253: %.1f GiB per GPU unexplained", m.Blocks, missing)
	if math.Abs(missing) > 0.2 {
		t.Errorf("%.1f GiB unexplained", missing)
	}
	if l := layoutOf(d.Normal(), EngineArgs{EngineVersion: "0.13.0"}); l != (KVLayout{16, 48, 1, 0, 0, 0, 0}) {
		t.Errorf("before 0.14 chunks were kept in full: %+v", l)
	}
}

func TestMemoryPartsAddUp(t *testing.T) {
	for name, d := range variants(t) {
		m := divide(d.Normal(), EngineArgs{}.withDefaults(d))
		if sum := m.Weights + m.Activation + m.Graphs + m.NonTorch + m.Vision + m.KV; math.Abs(sum-m.Usable) > 1 {
			t.Errorf("%s: parts add up to %.3f GiB of %.3f", name, sum/gib, m.Usable/gib)
		}
		if text := m.arithmetic(d.Normal(), EngineArgs{}.withDefaults(d)); !strings.Contains(text, "blocks of 16 tokens") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// More memory, a larger share of it, fewer bytes and smaller steps never shrink the pool.
func TestPoolIsMonotone(t *testing.T) {
	for name, d := range variants(t) {
		d = d.Normal()
		args := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 4096, Utilization: 0.9}.withDefaults(d)
		base := divide(d, args).Blocks
		check := func(what string, d Deployment, l EngineArgs) {
			t.Helper()
			if got := divide(d, l).Blocks; got < base {
				t.Errorf("%s: %s gives %d blocks, %d before", name, what, got, base)
			}
		}
		more := d
		more.Hardware.Memory *= 1.02
		check("more memory", more, args)
		fewer := d
		fewer.Precision.KV = KVFP8
		check("fp8 cache", fewer, args)
		l := args
		l.Utilization = 0.95
		check("larger share", d, l)
		l = args
		l.MaxNumBatchedTokens = 2048
		check("fewer tokens a step", d, l)
		l = args
		l.MaxNumSeqs = 64
		check("fewer sequences", d, l)
	}
}

func TestDoesNotFit(t *testing.T) {
	d := deploy(t, "Llama-3.1-70B", "H100 SXM", 1)
	_, err := MemoryPlan(d, EngineArgs{MaxModelLen: 32768, EngineVersion: "0.15.1"})
	if err == nil {
		t.Fatal("70B in bf16 fits on one H100")
	}
	for _, want := range []string{"131.42 weights", "smallest tensor_parallel that fits is 4", "one request of 32768 tokens takes 2048"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	_, err = MemoryPlan(deploy(t, "DeepSeek-V3", "A100 SXM 40GB", 8), EngineArgs{MaxModelLen: 4096})
	if err == nil || !strings.Contains(err.Error(), "no tensor_parallel up to 8 fits") {
		t.Errorf("DeepSeek-V3 on A100 40GB: %v", err)
	}
	_, err = MemoryPlan(deploy(t, "Llama-3.1-405B", "H100 SXM", 1), EngineArgs{MaxModelLen: 4096})
	if err == nil || !strings.Contains(err.Error(), `no tensor_parallel up to 8 fits; with weights = "fp8" tensor_parallel 8 fits; with pipeline_parallel = 2 tensor_parallel 8 fits`) {
		t.Errorf("Llama-3.1-405B on H100: %v", err)
	}
	// A pool that cannot hold one longest request is refused even if pinned.
	_, err = MemoryPlan(deploy(t, "Llama-3.1-8B", "H100 SXM", 1), EngineArgs{KVBlocks: 100, MaxModelLen: 8192})
	if err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("100 blocks for 8192 tokens: %v", err)
	}
	m, err := MemoryPlan(deploy(t, "Llama-3.1-8B", "H100 SXM", 1), EngineArgs{KVBlocks: 1000, MaxModelLen: 8192})
	if err != nil || m.Blocks != 1000 {
		t.Errorf("pinned pool: %d blocks, %v", m.Blocks, err)
	}
	// 80 GiB less 15 of weights hold 33,273 blocks of 2 MiB, and no more.
	for blocks, fits := range map[int]bool{33_000: true, 33_500: false} {
		_, err := MemoryPlan(deploy(t, "Llama-3.1-8B", "H100 SXM", 1), EngineArgs{KVBlocks: blocks, MaxModelLen: 8192})
		if (err == nil) != fits {
			t.Errorf("%d pinned blocks: %v", blocks, err)
		}
	}
}

func TestKVLayouts(t *testing.T) {
	cases := []struct {
		model  string
		tp     int
		want   KVLayout
		tokens int
		blocks int // of a request of so many tokens with 2048 in flight
	}{
		{"Llama-3.1-8B", 1, KVLayout{16, 32, 1, 0, 0, 0, 0}, 1000, 63},
		{"gpt-oss-120b", 2, KVLayout{16, 18, 1, 1, 128, 0, 0}, 10000, 625 + 136 + 1},
		{"Gemma-3-27B", 1, KVLayout{16, 10, 1, 6, 1024, 0, 0}, 10000, 625 + 6*(192+1)},
		{"Gemma-2-27B", 1, KVLayout{16, 23, 1, 1, 4096, 0, 0}, 100, 14},
		{"Mistral-7B-v0.1", 1, KVLayout{16, 32, 0, 1, 4096, 0, 0}, 30000, 384 + 1},
		{"Llama-4-Scout", 2, KVLayout{16, 12, 1, 3, 8192, 0, 0}, 20000, 1250 + 3*(640+1)},
		{"DeepSeek-V3", 8, KVLayout{16, 61, 1, 0, 0, 0, 0}, 17, 2},
		// 25 layers with a window and 5 without; a head of the latter is twice as wide.
		{"Gemma-4-26B-A4B", 8, KVLayout{32, 2.5, 2, 5, 1024, 0, 0}, 10000, 2*313 + 5*(96+1)},
	}
	for _, c := range cases {
		d := deploy(t, c.model, "H200 SXM", c.tp)
		got := layoutOf(d.Normal(), EngineArgs{})
		if got != c.want {
			t.Errorf("%s: layout %+v, want %+v", c.model, got, c.want)
		}
		if n := got.Blocks(c.tokens, 2048); n != c.blocks {
			t.Errorf("%s: %d tokens take %d blocks, want %d", c.model, c.tokens, n, c.blocks)
		}
	}
}

// A dense model in mxfp4 has no experts to pad for the units that compute in fp4.
func TestDenseModelInMXFP4(t *testing.T) {
	d := deploy(t, "Llama-3.1-70B", "B200 SXM", 1)
	d.Precision.Weights = MXFP4
	if m, err := MemoryPlan(d, EngineArgs{MaxModelLen: 8192}); err != nil || !(m.Weights > 35e9 && m.Weights < 43e9) {
		t.Errorf("%v bytes of weights, %v", m.Weights, err)
	}
}

// A layer that proposes tokens adds to a block what it keeps of 16 of them, also where blocks of
// window layers are twice as long.
func TestDraftsOfNarrowLayers(t *testing.T) {
	d := deploy(t, "Gemma-4-26B-A4B", "H200 SXM", 8)
	m := must.Get(MemoryPlan(d, EngineArgs{EngineFeatures: EngineFeatures{Speculation: Speculation{Method: DraftMTP, Tokens: 1, Accepted: []float64{0.8}}}}))
	if layer := d.Arch.kvBytesPerLayer(KVAuto, 8); m.Layout.BlockTokens != 32 || m.Layout.DraftBytes != 16*layer {
		t.Errorf("%d tokens a block, of which the draft keeps %v bytes, want those of 16 (%v a token)", m.Layout.BlockTokens, m.Layout.DraftBytes, layer)
	}
}

// KV heads are replicated once there are more GPUs than heads, latents always.
func TestKVBytesUnderTensorParallelism(t *testing.T) {
	for _, c := range []struct {
		model string
		tp    int
		want  float64 // bytes of a token on one GPU
	}{
		{"Llama-3.1-8B", 1, 131072}, {"Llama-3.1-8B", 4, 32768}, {"Qwen3-30B-A3B", 4, 98304 / 4},
		{"Qwen3-30B-A3B", 8, 98304 / 4}, {"DeepSeek-V3", 1, 70272}, {"DeepSeek-V3", 8, 70272},
	} {
		d := deploy(t, c.model, "H200 SXM", c.tp)
		if got := d.Arch.kvBytesPerLayer(KVAuto, c.tp) * float64(d.Arch.Layers); got != c.want {
			t.Errorf("%s tp %d: %.0f bytes, want %.0f", c.model, c.tp, got, c.want)
		}
	}
}

func TestDefaultArgs(t *testing.T) {
	c := catalog()
	for _, k := range []struct {
		gpu, version string
		seqs, tokens int
		share        float64
	}{
		{"H100 SXM", "0.15.1", 1024, 8192, 0.90}, {"A100 SXM 80GB", "0.15.1", 256, 2048, 0.90},
		{"L40S", "0.21.0", 256, 2048, 0.92}, {"B200 SXM", "0.24.0", 1024, 8192, 0.92},
		{"B200 SXM", "", 1024, 16384, 0.92}, {"H100 SXM", "", 1024, 8192, 0.92},
	} {
		l := DefaultArgs(must.Get(c.GPU(k.gpu)), k.version)
		if l.MaxNumSeqs != k.seqs || l.MaxNumBatchedTokens != k.tokens || l.Utilization != k.share {
			t.Errorf("%s vLLM %q: %+v", k.gpu, k.version, l)
		}
	}
	h100, _ := c.GPU("H100 SXM")
	if got := (EngineArgs{MaxNumSeqs: 100, MaxNumBatchedTokens: 8192}).LargestGraph(h100); got != 200 {
		t.Errorf("largest graph %d, want 200", got)
	}
	if got := (EngineArgs{MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192}).LargestGraph(h100); got != 512 {
		t.Errorf("largest graph %d, want 512", got)
	}
}

// A stage has whole layers, and an engine without CUDA graphs keeps no memory for them.
func TestFullestStageAndEagerEngine(t *testing.T) {
	d := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
	divided := func(pp int, k Kernels) Memory {
		d.PP = pp
		return divide(d, EngineArgs{EngineVersion: "0.28.0", EngineFeatures: EngineFeatures{Kernels: k}}.withDefaults(d))
	}
	ends := 2 * 128256.0 * 4096
	layer := (divided(1, Kernels{}).Weights - 2*ends) / 32
	for pp, layers := range map[int]float64{2: 16, 3: 11, 5: 7} {
		if got := (divided(pp, Kernels{}).Weights - ends) / layer; math.Abs(got-layers) > 1e-6 {
			t.Errorf("%d stages: the fullest has %.4g layers, want %g", pp, got, layers)
		}
	}
	if with, without := divided(1, Kernels{}), divided(1, Kernels{Graphs: GraphsNone}); without.Graphs != 0 || math.Abs(without.KV-with.KV-with.Graphs) > 1 || with.Graphs == 0 {
		t.Errorf("%.3g bytes of graphs, of an eager engine %.3g", with.Graphs, without.Graphs)
	}
}

func TestGenerationOfAWorkstationCard(t *testing.T) {
	for name, want := range map[string]Generation{"RTX 5000 Ada Generation": GenerationAda, "RTX 6000 Ada": GenerationAda, "RTX 5090": GenerationBlackwellRTX, "RTX A5000": GenerationAmpere,
		"RTX PRO 5000 Blackwell": GenerationBlackwellRTX} {
		if got := generationOf(name); got != want {
			t.Errorf("%s is taken for %q", name, got)
		}
	}
}

// What vLLM's logs say that gpt-oss-120b takes on one H100: 64.4 GiB by Triton (issue 33155) and 66.0 by Marlin (23278),
// whose layouts pad its matrices of 2,880 columns.
func TestLayoutsPadExperts(t *testing.T) {
	d := deploy(t, "gpt-oss-120b", "H100 SXM", 1)
	for kernels, want := range map[ExpertKernels]float64{ExpertsTriton: 64.4, ExpertsMarlin: 66.0} {
		m := must.Get(MemoryPlan(d, EngineArgs{EngineVersion: "0.10.2", MaxModelLen: 4096, MaxNumSeqs: 64, MaxNumBatchedTokens: 2048, EngineFeatures: EngineFeatures{Kernels: Kernels{Experts: kernels}}}))
		if got := m.Weights / gib; math.Abs(got-want) > 0.4 {
			t.Errorf("%v: %.1f GiB of weights, want %.1f", kernels, got, want)
		}
	}
}

// The second copy of what expands a latent: 61 layers of 128 heads with 128 + 128 dimensions, from 512, in 16 bits.
func TestLatentAttentionKeepsASecondCopy(t *testing.T) {
	for tp, want := range map[int]float64{1: 61 * 128 * 256 * 512 * 2, 8: 61 * 16 * 256 * 512 * 2} {
		if got := absorbedBytes(deploy(t, "DeepSeek-V3", "H200 SXM", tp).Normal()); got != want {
			t.Errorf("TP %d: %g bytes, want %g", tp, got, want)
		}
	}
	if got := absorbedBytes(deploy(t, "Llama-3.1-8B", "H200 SXM", 1).Normal()); got != 0 {
		t.Errorf("without a latent: %g bytes", got)
	}
}
