package config

import (
	"os"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
)

const userCatalog = `
# a card that the catalog does not have, and a price that it has
[[gpu]]
name = "Example X1"
vendor = "Example"
generation = "hopper"
memory_gb = 64
mem_bandwidth_gbs = 2500.5
bf16_dense_tflops = 500
scaleup_link = "NVLink4"
scaleup_gbs_per_direction = 300
source = "data sheet"

[[gpu]]
name = "h100 sxm"
list_price_usd_per_gpu_hour = 1.99
price_date = "2026-08-01"

[[model]]
model = "Tiny"
arch = "Qwen3ForCausalLM"
layers = 2
hidden = 64
heads = 4
kv_heads = 2
head_dim = 16
intermediate = 128
vocab = 100
tied_embeddings = true
max_position = 512
native_dtype = "bfloat16"
`

// builtIn is the catalog without a user's file.
func builtIn() *model.Catalog {
	return must.Get(ReadCatalog(""))
}

func TestCatalogAddsAndOverrides(t *testing.T) {
	c := must.Get(ReadCatalog(write(t, userCatalog)))
	x, err := c.GPU("example x1")
	if err != nil || x.Memory != 64<<30 || x.Bandwidth != 2500.5e9 || x.Generation != model.GenerationHopper || x.Link.Kind != model.LinkNVLink {
		t.Errorf("%+v, %v", x, err)
	}
	h, err := c.GPU("H100 SXM")
	if err != nil || h.Price.USDPerHour != 1.99 || h.Bandwidth != 3350e9 {
		t.Errorf("%+v, %v", h, err)
	}
	if of := h.Price.String(); of != "the user's catalog (2026-08-01)" || h.Price.Low != 0 || h.Memory != 80<<30 {
		t.Errorf("a price of one's own is said to be that of %s, from %g on, and memory to be %g", of, h.Price.Low, h.Memory)
	}
	if n, before := len(c.GPUs()), len(builtIn().GPUs()); n != before+1 {
		t.Errorf("%d GPUs, want one more than %d", n, before)
	}
	a, err := c.Model("tiny")
	if err != nil || a.Check() != nil || !a.Tied || !a.Details.QKNorm {
		t.Errorf("%+v, %v", a, err)
	}
	if h, _ := builtIn().GPU("H100 SXM"); h.Price.USDPerHour != 3.9 {
		t.Error("the embedded catalog changed")
	}
}

// TestCatalogForgetsWhatWasReplaced: a figure of the user's own counts, and not what the built-in
// entry says more exactly of the one that it replaces.
func TestCatalogForgetsWhatWasReplaced(t *testing.T) {
	c := must.Get(ReadCatalog(write(t, "[[gpu]]\nname = \"H100 SXM\"\nmemory_gb = 64\nscaleup_link = \"none\"\n[[gpu]]\nname = \"MI300X\"\nbf16_dense_tflops = 1000\n")))
	h := must.Get(c.GPU("H100 SXM"))
	if h.Memory != 64<<30 || h.Link.Kind != model.LinkPCIe || h.Link.Rate != 0 || h.Price.USDPerHour != 3.9 || h.Price.Low != 2.95 {
		t.Errorf("%g bytes, joined by %+v, price %+v", h.Memory, h.Link, h.Price)
	}
	if m := must.Get(c.GPU("MI300X")); m.Flops.BF16 != 1000e12 || m.Flops.MeasuredBF16 != 0 {
		t.Errorf("%+v", m.Flops)
	}
}

func TestCatalogRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"[[gpu]]\nname = \"X\"\n\nmemry_gb = 3\n":                                      `mine.toml:4: gpu.memry_gb: is no key, the nearest valid key is gpu.memory_gb`,
		"[[gpu]]\nname = \"X\"\n[[gpu]]\nname = \"Y\"\ntdp_w = \"a\"\n":                `mine.toml:5: gpu.tdp_w: is "a", want a number`,
		"[[gpu]]\nname = \"X\"\ntdp_w = -1\n":                                          `mine.toml:3: gpu.tdp_w: "-1" is not a number of at least 0`,
		"[[model]]\nmodel = \"X\"\nlayers = 2.5\n":                                     `mine.toml:3: model.layers: "2.5" is not a whole number`,
		"[[model]]\nlayers = 2\n":                                                      `mine.toml:1: model: lacks the key model, which it needs`,
		"[[gpu]]\nname = \"X\"\ngeneration = \"volta\"\n":                              `mine.toml:3: gpu.generation: "volta", allowed are ampere`,
		"[[model]]\nmodel = \"X\"\ntrust_remote_code = \"yes\"\n":                      `mine.toml:3: model.trust_remote_code: "yes", want a release such as 0.24, or always`,
		"[[model]]\nmodel = \"X\"\nnative_dtype = \"fp6\"\n":                           `mine.toml:3: model.native_dtype: "fp6": allowed are bf16`,
		"[[gpus]]\nname = \"X\"\n":                                                     `mine.toml:1: gpus: unknown table`,
		"[gpu]\nname = \"X\"\n":                                                        `mine.toml:1: gpu: want tables written [[gpu]]`,
		"[[gpu]]\nname = \n":                                                           `mine.toml:2: `,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 96e9\n":                                    `mine.toml:3: gpu.memory_gb: no GPU has 9.6e+10 GB (allowed: 1 to 4096); if these are bytes, write 96`,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 98304\n":                                   `if these are MB or MiB, write 98.304`,
		"[[gpu]]\nname = \"X\"\nmemory_bytes_reported = 143771\n":                      `mine.toml:3: gpu.memory_bytes_reported: no GPU has 143771 bytes (allowed: 1e+09 to 4e+12); if these are MiB, write 1.50755e+11`,
		"[[gpu]]\nname = \"X\"\nmem_bandwidth_gbs = 3.35\n":                            `if these are TB/s, write 3350`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989e12\n":                          `if these are FLOP/s, write 989`,
		"[[gpu]]\nname = \"X\"\nmem_bandwidth_gbs = 3350\nbf16_dense_tflops = 0.989\n": `mine.toml:4: gpu.bf16_dense_tflops: 0.989 TFLOP/s are less than one operation for each byte of 3350 GB/s; if these are PFLOP/s, write 989`,
		"[[gpu]]\nname = \"X\"\ntdp_w = 0.7\n":                                         `if these are kW, write 700`,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 1e99\n":                                    `mine.toml:3: gpu.memory_gb: no GPU has 1e+99 GB (allowed: 1 to 4096)`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989\nfp8_dense_tflops = 197.9\n":   `mine.toml:4: gpu.fp8_dense_tflops: 197.9 is below bf16_dense_tflops = 989`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989\nfp4_dense_tflops = 500\n":     `mine.toml:4: gpu.fp4_dense_tflops: 500 is below bf16_dense_tflops = 989`,
		"[[gpu]]\nname = \"H100 SXM\"\nbf16_dense_tflops = 1980\n":                     `mine.toml:3: gpu.bf16_dense_tflops: 1980 is above fp8_dense_tflops = 1979`,
		"[[model]]\nmodel = \"Qwen3.5-27B\"\nlayers = 40\n":                            `mine.toml:3: model.layers: the shape of Qwen3.5-27B is that of its published config.json`,
		"[[gpu]]\nname = \"X\"\ntdp_w = nan\n":                                         `mine.toml:3: gpu.tdp_w`,
	} {
		must.OK(os.WriteFile("mine.toml", []byte(text), 0o600))
		if _, err := ReadCatalog("mine.toml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	_, err := ReadCatalog(write(t, "[[gpu]]\nname=\"X\"\na = 1\nb = 2\n"))
	if n := len(strings.Split(err.Error(), "\n")); n != 2 {
		t.Errorf("%d problems reported at once, want 2: %v", n, err)
	}
}

// A figure of 0 is one that is not known, and no slip of a unit.
func TestCatalogTakesUnknownFigures(t *testing.T) {
	text := "[[gpu]]\nname = \"X\"\nmemory_gb = 24\nmemory_bytes_reported = 0\nmem_bandwidth_gbs = 300\nbf16_dense_tflops = 121\nfp8_dense_tflops = 0\ntdp_w = 0\n"
	if _, err := ReadCatalog(write(t, text)); err != nil {
		t.Error(err)
	}
}

// A catalog of the user's own may hold a processor, of which a core computes a third of a
// TFLOP/s.
func TestCatalogTakesProcessors(t *testing.T) {
	if _, err := ReadCatalog(write(t, "[[gpu]]\nname = \"two processors\"\nmemory_gb = 16\nmem_bandwidth_gbs = 20\nbf16_dense_tflops = 0.35\n")); err != nil {
		t.Error(err)
	}
}

func FuzzCatalog(f *testing.F) {
	f.Add(userCatalog)
	f.Add("[[gpu]]\nname = \"X\"\ntdp_w = 1e400\n")
	f.Add("gpu = 3\n[model]\n")
	catalog := must.Get(model.NewCatalog())
	f.Fuzz(func(t *testing.T, text string) {
		r := newReader("f.toml", catalog.Clone())
		if r.parse(text) {
			r.putCatalog(input{r: r, value: r.tree})
		}
		if len(r.problems) > 0 {
			wellFormed(t, r.problems.sorted())
		}
	})
}
