package model

import (
	"strings"
	"testing"
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

func TestMergeAddsAndOverrides(t *testing.T) {
	c := catalog(t)
	before := len(c.GPUs())
	if err := c.Merge(strings.NewReader(userCatalog), "mine.toml"); err != nil {
		t.Fatal(err)
	}
	x, err := c.GPU("example x1")
	if err != nil || x.Memory != 64*gib || x.Bandwidth != 2500.5e9 || x.Generation != GenerationHopper || x.Link.Kind != LinkNVLink {
		t.Errorf("%+v, %v", x, err)
	}
	h, err := c.GPU("H100 SXM")
	if err != nil || h.Price.USDPerHour != 1.99 || h.Bandwidth != 3350e9 {
		t.Errorf("%+v, %v", h, err)
	}
	if n := len(c.GPUs()); n != before+1 {
		t.Errorf("%d GPUs, want one more than %d", n, before)
	}
	a, err := c.Model("tiny")
	if err != nil || a.Check() != nil || !a.Tied || !a.Details.QKNorm {
		t.Errorf("%+v, %v", a, err)
	}
	if h, _ := catalog(t).GPU("H100 SXM"); h.Price.USDPerHour != 3.9 {
		t.Error("the embedded catalog changed")
	}
}

func TestMergeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[[gpu]]\nname = \"X\"\n\nmemry_gb = 3\n":                                    `mine.toml:4: gpu.memry_gb: unknown key, the nearest is "memory_gb"`,
		"[[gpu]]\nname = \"X\"\n[[gpu]]\nname = \"Y\"\ntdp_w = \"a\"\n":              `mine.toml:5: gpu.tdp_w: want a number`,
		"[[gpu]]\nname = \"X\"\ntdp_w = -1\n":                                        `mine.toml:3: gpu.tdp_w: "-1" is not a number of at least 0`,
		"[[model]]\nmodel = \"X\"\nlayers = 2.5\n":                                   `mine.toml:3: model.layers: "2.5" is not a whole number`,
		"[[model]]\nlayers = 2\n":                                                    `mine.toml:1: model.model: missing`,
		"[[gpu]]\nname = \"X\"\ngeneration = \"volta\"\n":                            `mine.toml:3: gpu.generation: "volta", allowed are ampere`,
		"[[model]]\nmodel = \"X\"\nnative_dtype = \"fp6\"\n":                         `mine.toml:3: model.native_dtype: weights "fp6"`,
		"[[gpus]]\nname = \"X\"\n":                                                   `mine.toml:1: gpus: unknown table`,
		"[gpu]\nname = \"X\"\n":                                                      `mine.toml:1: gpu: want tables written [[gpu]]`,
		"[[gpu]]\nname = \n":                                                         `mine.toml:2: `,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 96e9\n":                                  `mine.toml:3: gpu.memory_gb: no GPU has 9.6e+10 GB (allowed: 1 to 4096); if these are bytes, write 96`,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 98304\n":                                 `if these are MB or MiB, write 98.304`,
		"[[gpu]]\nname = \"X\"\nmemory_bytes_reported = 143771\n":                    `mine.toml:3: gpu.memory_bytes_reported: no GPU has 143771 bytes (allowed: 1e+09 to 4e+12); if these are MiB, write 1.50755e+11`,
		"[[gpu]]\nname = \"X\"\nmem_bandwidth_gbs = 3.35\n":                          `if these are TB/s, write 3350`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989e12\n":                        `if these are FLOP/s, write 989`,
		"[[gpu]]\nname = \"X\"\ntdp_w = 0.7\n":                                       `if these are kW, write 700`,
		"[[gpu]]\nname = \"X\"\nmemory_gb = 1e99\n":                                  `mine.toml:3: gpu.memory_gb: no GPU has 1e+99 GB (allowed: 1 to 4096)`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989\nfp8_dense_tflops = 197.9\n": `mine.toml:4: gpu.fp8_dense_tflops: 197.9 is below bf16_dense_tflops = 989`,
		"[[gpu]]\nname = \"X\"\nbf16_dense_tflops = 989\nfp4_dense_tflops = 500\n":   `mine.toml:4: gpu.fp4_dense_tflops: 500 is below bf16_dense_tflops = 989`,
		"[[gpu]]\nname = \"H100 SXM\"\nbf16_dense_tflops = 1980\n":                   `mine.toml:3: gpu.bf16_dense_tflops: 1980 is above fp8_dense_tflops = 1979`,
		"[[gpu]]\nname = \"X\"\ntdp_w = nan\n":                                       `mine.toml:3: gpu.tdp_w`,
	} {
		c := catalog(t)
		err := c.Merge(strings.NewReader(text), "mine.toml")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if len(c.GPUs()) != len(catalog(t).GPUs()) {
			t.Errorf("%q: taken in part", text)
		}
	}
	err := catalog(t).Merge(strings.NewReader("[[gpu]]\nname=\"X\"\na = 1\nb = 2\n"), "f")
	if n := len(strings.Split(err.Error(), "\n")); n != 2 {
		t.Errorf("%d problems reported at once, want 2: %v", n, err)
	}
}

// A figure of 0 is one that is not known, and no slip of a unit.
func TestMergeTakesUnknownFigures(t *testing.T) {
	c := catalog(t)
	text := "[[gpu]]\nname = \"X\"\nmemory_gb = 24\nmemory_bytes_reported = 0\nmem_bandwidth_gbs = 300\nbf16_dense_tflops = 121\nfp8_dense_tflops = 0\ntdp_w = 0\n"
	if err := c.Merge(strings.NewReader(text), "mine.toml"); err != nil {
		t.Error(err)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(userCatalog)
	f.Add("[[gpu]]\nname = \"X\"\ntdp_w = 1e400\n")
	f.Add("gpu = 3\n[model]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := NewCatalog()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Merge(strings.NewReader(text), "f"); err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}
