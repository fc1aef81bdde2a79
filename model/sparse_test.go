package model

import (
	"math"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// Sparse attention costs as much as dense attention up to the tokens that a query sees, and
// beyond them little more: the index alone grows with the context.
func TestSparseAttention(t *testing.T) {
	args := EngineArgs{MaxNumSeqs: 64, MaxNumBatchedTokens: 8192, MaxModelLen: 65536}
	step := func(name string, b Batch) float64 {
		// Every rank computes the whole index: what it saves is seen without tensor parallelism.
		dep := deploy(t, name, "H200 SXM", 1)
		return must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args)).Step(b).Total
	}
	decode := func(context int) Batch {
		return Batch{Decodes: 32, Context: 32 * context, Longest: context, Windowed: 32 * min(context, 2048), Sampled: 32}
	}
	short, long := decode(1000), decode(32000)
	if d, s := step("DeepSeek-V3", short), step("DeepSeek-V3.2", short); s < d || s > 1.1*d {
		t.Errorf("contexts of 1,000: dense %.2f ms, sparse %.2f", 1e3*d, 1e3*s)
	}
	grown := step("DeepSeek-V3.2", long) - step("DeepSeek-V3.2", short)
	if dense := step("DeepSeek-V3", long) - step("DeepSeek-V3", short); grown > dense/3 || grown <= 0 {
		t.Errorf("contexts of 32,000 take %.2f ms more, of dense attention %.2f", 1e3*grown, 1e3*dense)
	}
	dense, sparse := deploy(t, "DeepSeek-V3", "H200 SXM", 8), deploy(t, "DeepSeek-V3.2", "H200 SXM", 8)
	if got := sparse.Arch.KVBytesPerToken(KVAuto) - dense.Arch.KVBytesPerToken(KVAuto); got != 61*132 {
		t.Errorf("the index takes %v bytes of a token", got)
	}
	if prompt, full := step("DeepSeek-V3.2", Batch{Chunks: []Chunk{{Tokens: 4096, Context: 60000}}, Sampled: 1}),
		step("DeepSeek-V3", Batch{Chunks: []Chunk{{Tokens: 4096, Context: 60000}}, Sampled: 1}); prompt >= full {
		t.Errorf("a prompt behind 60,000 tokens takes %.0f ms, of dense attention %.0f", 1e3*prompt, 1e3*full)
	}
}

// In fp8 FlashMLA keeps scales and the part with positions in bf16 beside 512 values, FlashInfer on Blackwell does not;
// the index takes 132 bytes on both.
func TestSparseCacheInFP8(t *testing.T) {
	for gpu, latent := range map[string]float64{"H200 SXM": 656, "RTX PRO 6000 Blackwell Server": 656, "B200 SXM": 576} {
		d := deploy(t, "DeepSeek-V3.2", gpu, 8)
		d.Precision.KV = KVFP8
		if got := d.kvBytesPerLayer(); got != latent+132 {
			t.Errorf("%s: %v bytes a token and layer, want %v", gpu, got, latent+132)
		}
		if r := roofline(t, d, ""); r.kv.windowBytes != 61*latent || r.kv.fullBytes != 61*132 {
			t.Errorf("%s: a token is read as %v bytes, of the index %v", gpu, r.kv.windowBytes/61, r.kv.fullBytes/61)
		}
	}
}

// On Hopper the sparse kernels compute 64 heads and all that an index may find, however few heads
// a GPU has and however short a prompt is.
func TestSparseKernelsPadHeads(t *testing.T) {
	attention := func(gpu string, tp, prompt int) float64 {
		dep := deploy(t, "DeepSeek-V3.2", gpu, tp)
		r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, EngineArgs{}), EngineArgs{}))
		return r.Step(Batch{Chunks: []Chunk{{Tokens: prompt}}, Sampled: 1}).PrefillAttention/float64(prompt) - r.prefill.token
	}
	if two, eight := attention("H200 SXM", 2, 1000), attention("H200 SXM", 8, 1000); two != eight {
		t.Errorf("64 heads take %g s a token, 16 heads %g", two, eight)
	}
	if short, long := attention("H200 SXM", 8, 100), attention("H200 SXM", 8, 2000); short < 0.9*long {
		t.Errorf("a token of 100 takes %g s, of 2,000 %g", short, long)
	}
	if two, eight := attention("B200 SXM", 2, 1000), attention("B200 SXM", 8, 1000); eight > two/2 {
		t.Errorf("B200: 64 heads take %g s a token, 16 heads %g", two, eight)
	}
}

// TestShapesOf2026 holds parameters against what is published: 284B with 13B active and 1.6T with 49B for DeepSeek-V4
// (llama.cpp lists 284.33B), 428B with 23B for MiniMax-M3, where active ones leave out embeddings, and 2.8T for Kimi-K3; and
// the bytes of a million tokens of DeepSeek-V4-Pro against the 9.62 GiB in bf16, index included, of vLLM's blog (2026-04-24).
func TestShapesOf2026(t *testing.T) {
	for name, want := range map[string][2]float64{
		"DeepSeek-V4-Flash": {284.33e9, 13e9}, "DeepSeek-V4-Pro": {1.6e12, 49e9}, "MiniMax-M3": {428e9, 23e9 + 2*200064*6144}, "Kimi-K3": {2.8e12, 0},
	} {
		total, active := deploy(t, name, "B300 SXM", 8).Arch.Params()
		if math.Abs(total/want[0]-1) > 0.02 || want[1] > 0 && math.Abs(active/want[1]-1) > 0.1 {
			t.Errorf("%s: %.4g parameters, %.3g active, want %.4g and %.3g", name, total, active, want[0], want[1])
		}
	}
	for name, experts := range map[string]WeightFormat{"deepseek-ai/DeepSeek-V4-Flash": MXFP4, "nvidia/DeepSeek-V4-Flash-NVFP4": NVFP4, "nvidia/MiniMax-M3-NVFP4": NVFP4} {
		if a := must.Get(catalog().Model(name)); a.Native != experts || a.Details.AttentionFormats[FP8] != 1 || a.Details.SharedFormats[FP8] != 1 {
			t.Errorf("%s: experts in %v, attention in %v", name, a.Native, a.Details.AttentionFormats)
		}
	}
	pro := deploy(t, "DeepSeek-V4-Pro", "B300 SXM", 8)
	inBF16 := pro.Arch.KVBytesPerToken(KVAuto) + 30*(2*128-132)/4
	if got := inBF16 * (1 << 20) / gib; math.Abs(got/9.62-1) > 0.005 {
		t.Errorf("DeepSeek-V4-Pro: %.2f GiB of a million tokens", got)
	}
}

// TestCompressedCacheGrowsSlowly compares contexts of 1,000 and 100,000 tokens: DeepSeek-V4's cache, and what a step reads
// of it, grow a tenth as fast as those of DeepSeek-V3.2 (its report: 10 % of the cache at a million tokens).
func TestCompressedCacheGrowsSlowly(t *testing.T) {
	args := EngineArgs{MaxNumSeqs: 64, MaxModelLen: 200_000}
	grown := func(name string) float64 {
		dep := deploy(t, name, "B200 SXM", 8)
		dep.Precision.KV = KVFP8
		r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
		at := func(context int) float64 {
			return r.Step(Batch{Decodes: 32, Context: 32 * context, Longest: context, Windowed: 32 * min(context, r.Window()), Sampled: 32}).Total
		}
		return (at(100_000) - at(10_000)) / float64(dep.Arch.Layers)
	}
	if v4, v3 := grown("DeepSeek-V4-Pro"), grown("DeepSeek-V3.2"); v4 > v3/3 || v4 <= 0 {
		t.Errorf("a layer takes %.2g s more behind 90,000 tokens, of DeepSeek-V3.2 %.2g", v4, v3)
	}
	m := must.Get(MemoryPlan(deploy(t, "DeepSeek-V4-Flash", "B200 SXM", 4), EngineArgs{MaxModelLen: 8192}))
	if draft := must.Get(MemoryPlan(deploy(t, "DeepSeek-V4-Flash", "B200 SXM", 4), EngineArgs{MaxModelLen: 8192, EngineFeatures: EngineFeatures{Speculation: Speculation{Method: DraftEagle, Tokens: 3, Accepted: []float64{0.8, 0.6, 0.5}}}})); draft.Blocks < m.Blocks*8/10 {
		t.Errorf("%d blocks beside a draft, %d without", draft.Blocks, m.Blocks)
	}
	if m.Layout.StateGroups < 5 || m.Layout.StateGroups > 40 {
		t.Errorf("a request holds %d blocks besides its context", m.Layout.StateGroups)
	}
}

// What proposed tokens of speculative decoding add does not grow with a context of which an index selects a part.
func TestDraftsReadWhatTheIndexSelects(t *testing.T) {
	args := EngineArgs{MaxNumSeqs: 64, MaxModelLen: 200_000}
	for _, name := range []string{"DeepSeek-V3.2", "DeepSeek-V4-Pro", "MiniMax-M3"} {
		dep := deploy(t, name, "H200 SXM", 8)
		r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
		more := func(context int) float64 {
			b := Batch{Decodes: 32, Context: 32 * context, Longest: context, Windowed: 32 * r.Window(), Sampled: 32}
			alone := r.Step(b).DecodeAttention
			b.Drafted, b.Sampled = 96, 128
			return r.Step(b).DecodeAttention - alone
		}
		if short, long := more(8_000), more(64_000); math.Abs(long/short-1) > 1e-6 || short <= 0 {
			t.Errorf("%s: drafts add %.3g s behind 8,000 tokens and %.3g behind 64,000", name, short, long)
		}
	}
}

// Attention that is not modelled is refused, not taken for another.
func TestCompressedAttentionOfOthersIsRefused(t *testing.T) {
	const m3 = `{"architectures":["MiniMaxM3ForCausalLM"],"hidden_size":4096,"num_attention_heads":64,"num_key_value_heads":4,"num_hidden_layers":2,"vocab_size":200064,` +
		`"intermediate_size":2048,"sparse_attention_config":{"sparse_block_size":128,"sparse_topk_blocks":16,"sparse_num_index_heads":4,"sparse_index_dim":128`
	const v4 = `"hidden_size":4096,"num_attention_heads":64,"head_dim":512,"num_hidden_layers":3,"vocab_size":129280,"q_lora_rank":1024,"sliding_window":128,` +
		`"qk_rope_head_dim":64,"o_groups":8,"o_lora_rank":1024,"intermediate_size":2048,"index_topk":512,"index_n_heads":64,"index_head_dim":128`
	for text, ok := range map[string]bool{
		`{"architectures":["DeepseekV4ForCausalLM"],` + v4 + `,"compress_ratios":[0,4,128]}`:                          true,
		`{"architectures":["DeepseekV4ForCausalLM"],` + v4 + `,"compress_ratios":[0,4,64]}`:                           false,
		`{"architectures":["DeepseekV4ForCausalLM"],` + v4 + `,"compress_ratios":[0,0,0]}`:                            false,
		m3 + `,"sparse_attention_freq":[0,1]}}`:                                                                       true,
		m3 + `}}`:                                                                                                     false,
		`{"architectures":["DeepseekV4ForCausalLM"],` + v4 + `,"compress_ratios":[0,4,128],"engram_layer_ids":[1,2]}`: false,
		`{"architectures":["LlamaForCausalLM"],` + v4 + `,"compress_ratios":[0,4,128]}`:                               false,
	} {
		if a, err := ParseConfig(strings.NewReader(text)); (err == nil) != ok {
			t.Errorf("%s: %v, taken as %+v", text, err, a)
		}
	}
}
