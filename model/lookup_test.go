package model

import (
	"errors"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

func TestLookUpGPUs(t *testing.T) {
	c := catalog()
	for name, want := range map[string]string{
		"H100 SXM": "H100 SXM", "h100 sxm": "H100 SXM", "h100-sxm": "H100 SXM", "L4": "L4", "l40s": "L40S", "A10": "A10",
		"MI300": "MI300X", "RTX PRO 6000": "RTX PRO 6000 Blackwell Server", "B200": "B200 SXM", "h200": "H200 SXM",
	} {
		h, err := c.GPU(name)
		if err != nil || h.Name != want {
			t.Errorf("%q: %q, %v, want %q", name, h.Name, err, want)
		}
	}
	_, err := c.GPU("H100")
	if err == nil || !strings.Contains(err.Error(), `fits several in the catalog: "H100 SXM", "H100 PCIe", "H100 NVL"`) {
		t.Errorf("H100: %v", err)
	}
	_, err = c.GPU("H300 SXM")
	if err == nil || !strings.Contains(err.Error(), `the nearest are`) || !strings.Contains(err.Error(), `"H100 SXM"`) {
		t.Errorf("H300 SXM: %v", err)
	}
	if _, err := c.GPU(" "); err == nil {
		t.Error("an empty name found something")
	}
}

func TestLookUpModels(t *testing.T) {
	c := catalog()
	for name, want := range map[string]struct {
		name   string
		native WeightFormat
	}{
		"llama-3.1-70b":                                       {"Llama-3.1-70B", BF16},
		"meta-llama/Meta-Llama-3.1-8B":                        {"Llama-3.1-8B", BF16},
		"meta-llama/Llama-3.1-8B-Instruct":                    {"Llama-3.1-8B", BF16},
		"openai/gpt-oss-120b":                                 {"gpt-oss-120b", MXFP4},
		"Qwen/Qwen3-235B-A22B-FP8":                            {"Qwen3-235B-A22B", FP8},
		"RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8":            {"Llama-3.1-70B", FP8},
		"RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic": {"Llama-4-Scout", FP8},
		"Qwen/Qwen2.5-72B-Instruct-AWQ":                       {"Qwen2.5-72B", INT4},
		"deepseek-ai/DeepSeek-V3":                             {"DeepSeek-V3", FP8},
		"deepseek-ai/DeepSeek-R1-0528":                        {"DeepSeek-R1", FP8},
		"mistralai/Mixtral-8x7B-Instruct-v0.1":                {"Mixtral-8x7B", BF16},
		"Qwen/Qwen3-235B-A22B-Thinking-2507-FP8":              {"Qwen3-235B-A22B-2507", FP8},
		"hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4": {"Llama-3.1-70B", INT4},
		"RedHatAI/gemma-3-27b-it-quantized.w4a16":             {"Gemma-3-27B", INT4},
		"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4":         {"Nemotron-3-Nano-30B-A3B", NVFP4},
		"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8":        {"Nemotron-3-Super-120B-A12B", FP8},
		"MiniMaxAI/MiniMax-M2":                                {"MiniMax-M2.5", FP8},
		"gemma-3-27b-it":                                      {"Gemma-3-27B", FormatUnset},
		"mixtral-8x7b":                                        {"Mixtral-8x7B", BF16},
		"Llama-2-7B":                                          {"Llama-2-7B", FP16},
	} {
		a, err := c.Model(name)
		if err != nil || a.Name != want.name || a.Native != want.native {
			t.Errorf("%q: %q %q, %v, want %q %q", name, a.Name, a.Native, err, want.name, want.native)
		}
	}
	for name, repo := range map[string]string{
		"llama-3.1-70b":                            "meta-llama/Meta-Llama-3.1-70B",
		"META-LLAMA/meta_llama-3.1-70b":            "meta-llama/Meta-Llama-3.1-70B",
		"meta-llama/Llama-3.1-8B-Instruct":         "meta-llama/Llama-3.1-8B-Instruct",
		"RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8": "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8",
		"llama-3.1-70b-instruct":                   "meta-llama/Llama-3.1-70B-Instruct",
		"deepseek-ai/DeepSeek-R1-0528":             "deepseek-ai/DeepSeek-R1-0528",
		"qwen3-coder-30b-a3b":                      "Qwen/Qwen3-Coder-30B-A3B-Instruct",
		"deepseek-r1-distill-llama-8b":             "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
	} {
		if a, err := c.Model(name); err != nil || a.Repo != repo {
			t.Errorf("%q is to be served as %q, %v, want %q", name, a.Repo, err, repo)
		}
	}
	for name, block := range map[string]bool{
		"Qwen/Qwen3-235B-A22B-FP8": true, "qwen3-235b-a22b-fp8": true, "Qwen/Qwen3-4B-FP8": true, "stepfun-ai/Step-3.5-Flash-FP8": true, "nvidia/Qwen3-235B-A22B-FP8": false, "RedHatAI/Qwen3-30B-A3B-FP8-dynamic": false,
	} {
		if a, err := c.Model(name); err != nil || a.Details.BlockFP8 != block {
			t.Errorf("%q: blocks %v, %v", name, a.Details.BlockFP8, err)
		}
	}
	// A row of one's own that names the same checkpoint keeps the one to converse with.
	for repo, chat := range map[string]string{"meta-llama/meta-llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct", "ours/llama": "ours/llama"} {
		own := catalog()
		must.OK(own.Put(ModelTable, Row{"model": "Llama-3.1-8B", "hf_repo": repo}))
		if a, err := own.Model("llama-3.1-8b"); err != nil || a.ChatCheckpoint() != chat {
			t.Errorf("%s: conversations with %q, %v, want %q", repo, a.ChatCheckpoint(), err, chat)
		}
	}
	if a := must.Get(c.Model("gemma-4-31b")); a.ChatCheckpoint() != "google/gemma-4-31B-it" {
		t.Errorf("conversations with %q", a.ChatCheckpoint())
	}
	if a := must.Get(c.Model("moonshotai/Kimi-K2-Thinking")); a.Native != INT4 || a.Details.Group != 32 || a.Details.AttentionFormats[BF16] != 1 {
		t.Errorf("Kimi-K2-Thinking, in int4, is taken for %q in %v", a.Name, a.Native)
	}
	if err := catalog().Put(ModelTable, Row{"model": "own", "arch": "Qwen3NextForCausalLM", "layers": "48", "hidden": "2048", "heads": "16"}); err == nil {
		t.Error("a row of a class with states, which no column holds, is taken without them")
	}
	if _, err := c.Model("llama-3.1"); err == nil || !strings.Contains(err.Error(), `fits several`) {
		t.Errorf("llama-3.1: %v", err)
	}
	if _, err := c.Model("lamma-3.1-70b"); err == nil || !strings.Contains(err.Error(), `"Llama-3.1-70B"`) {
		t.Errorf("lamma-3.1-70b: %v", err)
	}
}

// A row that lacks a figure is listed; using it says which figure.
func TestIncompleteRowSaysWhatIsMissing(t *testing.T) {
	d := deploy(t, "Llama-3.1-8B", "H100 NVL", 1)
	d.Hardware.Flops = Flops{}
	_, err := NewRoofline(d, ConstantsFor(d.Hardware, EngineArgs{}), EngineArgs{})
	if !errors.Is(err, ErrNoFigure) || !strings.Contains(err.Error(), `"H100 NVL": dense bf16 compute`) {
		t.Errorf("roofline without compute: %v", err)
	}
	if _, err = MemoryPlan(d, EngineArgs{}); !errors.Is(err, ErrNoFigure) {
		t.Errorf("memory without compute: %v", err)
	}
}

func TestCatalogGolden(t *testing.T) {
	c := catalog()
	if n, m := len(c.GPUs()), len(c.Models()); n != 37 || m != 108 {
		t.Errorf("%d GPUs and %d models", n, m)
	}
	h := must.Get(c.GPU("H100 SXM"))
	if h.Memory != 80*gib || h.Bandwidth != 3350e9 || h.Flops.BF16 != 989e12 || h.Flops.FP8 != 1979e12 ||
		h.Link != (Link{LinkNVLink, 450e9}) || h.TDP != 700 || h.Price.USDPerHour != 3.9 ||
		h.Price.Date != "2026-03-03" || strings.Count(h.Price.String(), h.Price.Date) != 1 || h.Generation != GenerationHopper {
		t.Errorf("%+v", h)
	}
	for name, want := range map[string]Generation{
		"A100 PCIe 80GB": GenerationAmpere, "A10G": GenerationAmpere, "L4": GenerationAda, "RTX 4090": GenerationAda, "RTX 5090": GenerationBlackwellRTX,
		"RTX PRO 6000 Blackwell Server": GenerationBlackwellRTX, "GB300 (per GPU)": GenerationBlackwell, "GH200 96GB": GenerationHopper,
		"MI325X": GenerationCDNA3, "MI355X": GenerationCDNA4, "Gaudi3": GenerationUnknown, "TPU v6e (per chip)": GenerationUnknown,
	} {
		if h, err := c.GPU(name); err != nil || h.Generation != want {
			t.Errorf("%s: generation %q, %v, want %q", name, h.Generation, err, want)
		}
	}
	// Data sheets, where other sources have the Workstation Edition's 1792 GB/s and a rounded link.
	if pro, mi := must.Get(c.GPU("RTX PRO 6000")), must.Get(c.GPU("MI355X")); pro.Bandwidth != 1597e9 || mi.Link.Rate != 7*76.8e9 || must.Get(c.GPU("MI350X")).Link != mi.Link {
		t.Errorf("RTX PRO 6000 Server %v B/s, link of MI355X %v", pro.Bandwidth, mi.Link)
	}
	if h, _ := c.GPU("MI300X"); h.Link.Kind != LinkInfinityFabric {
		t.Errorf("MI300X: %v", h.Link)
	}
	if h, _ := c.GPU("L40S"); h.Link.Kind != LinkPCIe {
		t.Errorf("L40S: %v", h.Link)
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Deployment){
		"tensor_parallel 3 does not divide the 32 attention heads": func(d *Deployment) { d.TP = 3 },
		"must not be negative":                       func(d *Deployment) { d.TP = -1 },
		"pipeline_parallel 33 exceeds the 32 layers": func(d *Deployment) { d.PP = 33 },
		"Llama-3.1-8B has no experts":                func(d *Deployment) { d.EP = true },
		"neither divides the 6 KV heads":             func(d *Deployment) { d.TP, d.Arch.Attention.Heads, d.Arch.Attention.KVHeads = 4, 24, 6 },
		"16 GPUs cut the 1536 columns": func(d *Deployment) {
			d.TP, d.Arch.Native, d.Arch.Details.BlockFP8, d.Arch.Intermediate = 16, FP8, true, 1536
		},
		"5 GPUs do not divide the 128256 rows of the vocabulary": func(d *Deployment) { d.TP, d.Arch.Attention.Heads, d.Arch.Attention.KVHeads = 5, 40, 10 },
		"5 GPUs do not divide the 14336 columns of an MLP": func(d *Deployment) {
			d.TP, d.Arch.Attention.Heads, d.Arch.Attention.KVHeads, d.Arch.Vocab = 5, 40, 10, 31999
		},
		"6 GPUs do not divide the 14336 columns of an expert": func(d *Deployment) {
			d.TP, d.DP, d.Arch.MoE = 2, 3, MoE{Experts: 12, Active: 2, Intermediate: 14336, Layers: d.Arch.Layers}
		},
		"does not divide the 8 heads of the states": func(d *Deployment) {
			d.TP, d.Arch.State = 16, RecurrentState{Layers: 1, Heads: 64, HeadDim: 64, KeyHeads: 8, KeyDim: 128, Conv: 4}
		},
		"hidden size: no figure known":      func(d *Deployment) { d.Arch.Hidden = 0 },
		"memory bandwidth: no figure known": func(d *Deployment) { d.Hardware.Bandwidth = 0 },
	} {
		d := deploy(t, "Llama-3.1-8B", "H100 SXM", 1)
		change(&d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Shared experts are cut by tensor parallelism alone, and only where they are in fp8 may they
// not be.
func TestSharedExpertsCut(t *testing.T) {
	d := deploy(t, "DeepSeek-V3", "B200 SXM", 8).Normal()
	d.DP, d.EP, d.Arch.MoE.SharedIntermediate = 2, true, 512
	if gpus, width := d.cutBlocks(); gpus != 8 || width != 512 {
		t.Errorf("%d GPUs cut %d columns", gpus, width)
	}
	d.Arch.Details.SharedFormats = Mix{BF16: 1}
	if gpus, width := d.cutBlocks(); gpus != 0 || width != 0 {
		t.Errorf("in bf16 %d GPUs cut %d columns", gpus, width)
	}
}

// What vLLM's sources and trackers say that it does not run is refused, and its neighbours are not.
func TestUnserved(t *testing.T) {
	for _, c := range []struct {
		model, gpu string
		weights    WeightFormat
		kv         KVFormat
		want       string
	}{
		{"Llama-3.1-8B", "B200 SXM", INT8, KVAuto, "int8"},
		{"Llama-3.1-8B", "RTX 5090", INT8, KVAuto, "int8"},
		{"Llama-3.1-8B", "H100 SXM", INT8, KVAuto, ""},
		{"DeepSeek-V3.2", "A100 SXM 80GB", FP8, KVAuto, "sparse latent attention"},
		{"DeepSeek-V4-Flash", "L40S", MXFP4, KVFP8, "sparse latent attention"},
		{"DeepSeek-V3.2", "H20", FP8, KVAuto, ""},
		{"MiniMax-M3", "A100 SXM 80GB", BF16, KVAuto, ""},
		{"MiniMax-M3", "A100 SXM 80GB", BF16, KVFP8, "fp8"},
		{"DeepSeek-V3", "A100 SXM 80GB", FP8, KVFP8, "fp8"},
		{"gpt-oss-20b", "A10G", MXFP4, KVFP8, "fp8"},
		{"gpt-oss-20b", "L4", MXFP4, KVFP8, ""},
		{"Llama-3.1-8B", "A10G", BF16, KVFP8, ""},
		{"Llama-3.1-8B", "MI355X", NVFP4, KVAuto, "nvfp4"},
		{"Llama-3.1-8B", "A100 SXM 80GB", NVFP4, KVAuto, ""},
	} {
		d := deploy(t, c.model, c.gpu, 1)
		d.Precision = Precision{Weights: c.weights, KV: c.kv}
		if got := d.Unserved(EngineArgs{}); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s on %s: %q, want %q", c.model, c.gpu, got, c.want)
		}
	}
	d := deploy(t, "Llama-3.1-8B", "B200 SXM", 1)
	d.Arch.Native, d.Arch.Details.WeightOnly = INT8, true
	if got := d.Unserved(EngineArgs{}); got != "" {
		t.Errorf("8-bit integers of weights alone are unpacked: %q", got)
	}
}

func TestCutGroups(t *testing.T) {
	for _, c := range []struct {
		model   string
		tp      int
		weights WeightFormat
		want    int
	}{
		{"Qwen2.5-14B", 8, INT4, 13824}, {"Qwen2.5-14B", 4, INT4, 0}, {"Qwen2.5-14B", 8, FP8, 0},
		{"Qwen2.5-72B", 1, INT4, 0}, {"Qwen2.5-72B", 2, INT4, 29568},
		{"Qwen3-30B-A3B", 4, INT4, 0}, // experts take groups of 64
	} {
		d := deploy(t, c.model, "A100 SXM 80GB", c.tp)
		d.Precision.Weights = c.weights
		if got := d.CutGroups(); got != c.want {
			t.Errorf("%s in %v on %d: %d, want %d", c.model, c.weights, c.tp, got, c.want)
		}
	}
}

func TestBlockSize(t *testing.T) {
	for model, want := range map[string]int{"MiniMax-M3": 128, "DeepSeek-V4-Flash": 256, "DeepSeek-V3.2": 0, "Llama-3.1-8B": 0} {
		d := deploy(t, model, "B300 SXM", 8)
		m, _ := MemoryPlan(d, EngineArgs{MaxModelLen: 4096})
		if got := d.Arch.BlockSize(); got != want || m.Layout.BlockTokens != max(want, blockTokens) {
			t.Errorf("%s: %d, blocks of %d", model, got, m.Layout.BlockTokens)
		}
	}
}

func TestParseNames(t *testing.T) {
	for _, name := range WeightFormat(0).names()[1:] {
		f, err := Parse[WeightFormat](strings.ToUpper(name))
		if err != nil || f.String() != name {
			t.Errorf("%q: %v, %v", name, f, err)
		}
	}
	if _, err := Parse[WeightFormat]("fp6"); err == nil || !strings.Contains(err.Error(), "bf16 fp16 fp8 int8 int4 nvfp4 mxfp4") {
		t.Errorf("fp6: %v", err)
	}
	if _, err := Parse[KVFormat]("int4"); err == nil || !strings.Contains(err.Error(), "auto fp8") {
		t.Errorf("int4: %v", err)
	}
	for text, want := range map[string]Version{"": {}, "0.15.1": {0, 15}, "v0.11.0+cu128": {0, 11}, "0.20rc1": {0, 20}, "1.0": {1, 0}} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("version %q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "0", "0.x", "a.b", "-1.2"} {
		if got, err := ParseVersion(text); err == nil {
			t.Errorf("version %q: %v", text, got)
		}
	}
	for _, c := range []struct {
		version string
		draft   DraftMethod
		stages  int
		want    bool
	}{
		{"0.13.2", NoDraft, 1, false}, {"0.14.0", NoDraft, 1, true}, {"", NoDraft, 1, true}, {"0.14.1", NoDraft, 2, false}, {"0.15.0", NoDraft, 2, true},
		{"0.14.0", DraftEagle, 1, true}, {"0.25.0", DraftModel, 1, false}, {"0.26.0", DraftModel, 1, true}, {"", DraftNGram, 1, false},
	} {
		args := EngineArgs{EngineVersion: c.version}
		args.Speculation.Method = c.draft
		if got := args.Async(GenerationHopper, c.stages); got != c.want {
			t.Errorf("asynchronous scheduling of %+v: %v", c, got)
		}
	}
}
