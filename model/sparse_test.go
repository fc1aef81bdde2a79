package model

import (
	"os"
	"path/filepath"
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
		return r.Step(Batch{Chunks: []Chunk{{Tokens: prompt}}, Sampled: 1}).PrefillAttention / float64(prompt)
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

// Attention that is not modelled is refused, not taken for another.
func TestCompressedAttentionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	text := `{"architectures":["DeepseekV4ForCausalLM"],"hidden_size":4096,"num_attention_heads":64,"num_hidden_layers":43,"vocab_size":129280,` +
		`"index_topk":512,"index_n_heads":64,"index_head_dim":128,"compress_ratios":[0,4,128]}`
	must.OK(os.WriteFile(path, []byte(text), 0o600))
	f := must.Get(os.Open(path))
	defer f.Close()
	if a, err := ParseConfig(f); err == nil {
		t.Errorf("taken as %+v", a)
	}
}
