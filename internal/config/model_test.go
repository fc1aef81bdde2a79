package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
)

// tiny is the config.json of a model that no catalog knows.
const tiny = `{"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "intermediate_size": 688,
"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
"vocab_size": 32000, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`

func TestModelOfAConfigFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tiny-model")
	must.OK(os.MkdirAll(folder, 0o700))
	// Published ones that list every module take up to 3 MiB.
	must.OK(os.WriteFile(filepath.Join(folder, "config.json"), []byte(tiny+strings.Repeat(" ", 3<<20)), 0o600))
	at := Override{Key: "model.config", Value: filepath.Join(folder, "config.json")}
	c := mustLoad(t, minimal, For("plan"), at, Override{Key: "model.name", Value: ""})
	if m := c.Model; !m.Known || m.Arch.Layers != 4 || m.Name == "" || m.Precision.Weights != model.BF16 {
		t.Errorf("got %+v", m)
	}
	c = mustLoad(t, minimal, For("plan"), at, Override{Key: "model.name", Value: "mine"})
	if c.Model.Name != "mine" || c.Model.Arch.Name != "mine" || len(c.Warnings) > 0 {
		t.Errorf("the given name is lost: %+v, or it warns: %q", c.Model, c.Warnings)
	}
	// A name that says how weights are stored, where nothing else does.
	for name, warned := range map[string]bool{"mine-NVFP4": true, "mine.Q4_1.gguf": true, "mine-w4a16": true, "mine-4b": false} {
		said := strings.Join(mustLoad(t, minimal, For("plan"), at, Override{Key: "model.name", Value: name}).Warnings, "\n")
		if strings.Contains(said, "weights are taken as bf16") != warned {
			t.Errorf("%s: warnings %q", name, said)
		}
	}
	if c := mustLoad(t, minimal, For("plan"), at, Override{Key: "model.name", Value: "mine-NVFP4"}, Override{Key: "model.weights", Value: "nvfp4"}); len(c.Warnings) > 0 {
		t.Errorf("with weights that are given: %q", c.Warnings)
	}
	if _, err := Load(write(t, minimal), []Override{{Key: "model.config", Value: folder}}, For("plan")); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder gives %v", err)
	}
}

// TestRealEnginesNeedNoShape: what cannot be computed is a warning where nothing
// depends on it, and a problem where the simulation does.
func TestRealEnginesNeedNoShape(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		ok, known  bool
		warning    string
	}{
		{"llama-3.1-8b", "vllm", true, true, ""},
		{"someone/new-model", "vllm", true, false, "no roofline"},
		{"someone/new-model", "simulated", false, false, ""},
		{"lamma", "vllm", false, false, ""},
		{"qwen", "attach", true, false, "engine.served_name"}, // its server has it loaded, whatever it is called here
		{"", "vllm", true, false, "no roofline"},
		{"", "simulated", false, false, ""},
	} {
		text := strings.Replace(minimal, "llama-3.1-8b", c.name, 1)
		over := []Override{{Key: "engine.kind", Value: c.kind}}
		if c.kind == "attach" {
			over = append(over, Override{Key: "engine.url", Value: "http://127.0.0.1:1"})
		}
		got, err := Load(write(t, text), over, For("plan"))
		if (err == nil) != c.ok {
			t.Errorf("%q on %s: %v", c.name, c.kind, err)
			continue
		}
		if err != nil {
			continue
		}
		if warned := strings.Join(got.Warnings, "\n"); got.Model.Known != c.known || !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
			t.Errorf("%q on %s: known %v, warnings %q", c.name, c.kind, got.Model.Known, warned)
		}
	}
}

func TestWeightsAreTheModelsOwnByDefault(t *testing.T) {
	for name, want := range map[string]model.WeightFormat{"llama-3.1-8b": model.BF16, "gpt-oss-120b": model.MXFP4, "deepseek-v3": model.FP8} {
		c := mustLoad(t, strings.Replace(minimal, "llama-3.1-8b", name, 1), For("plan"))
		if got := c.Model.Precision.Weights; got != want || !strings.Contains(string(c.TOML()), "weights = \""+want.String()+"\"") {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// What a checkpoint holds is kept apart from what it is to be served in; of a
// model that nobody knows its name says so.
func TestStoredFormat(t *testing.T) {
	for _, c := range []struct {
		name, weights  string
		stored, served model.WeightFormat
	}{
		{"llama-3.1-8b", "fp8", model.BF16, model.FP8},
		{"gpt-oss-120b", "", model.MXFP4, model.MXFP4},
		{"nvidia/Llama-3.1-8B-Instruct-FP8", "", model.FP8, model.FP8},
		{"someone/new-model", "fp8", model.FormatUnset, model.FP8},
		{"someone/new-model-AWQ", "", model.INT4, model.FormatUnset},
	} {
		got := mustLoad(t, strings.Replace(minimal, "llama-3.1-8b", c.name, 1), For("plan"), Override{Key: "engine.kind", Value: "vllm"},
			Override{Key: "model.weights", Value: c.weights}, Override{Key: "model.kv_cache", Value: "fp8"}).Model
		if got.Stored != c.stored || got.Precision != (model.Precision{Weights: c.served, KV: model.KVFP8}) {
			t.Errorf("%s in %q: stored in %v, served in %+v", c.name, c.weights, got.Stored, got.Precision)
		}
	}
}

// Settings that choose kernels are read and printed as they were given; what is left open
// stays the engine's.
func TestKernels(t *testing.T) {
	c := mustLoad(t, minimal, For("estimate"))
	if c.Engine.Kernels != (model.Kernels{}) {
		t.Errorf("nothing given: %+v", c.Engine.Kernels)
	}
	c = mustLoad(t, minimal, For("estimate"),
		Override{Key: "engine.async_scheduling", Value: "false"},
		Override{Key: "engine.allreduce_fusion", Value: "true"},
		Override{Key: "engine.graphs", Value: "decode-only"},
		Override{Key: "engine.graph_tokens", Value: "2048"},
		Override{Key: "engine.moe_backend", Value: "marlin"},
		Override{Key: "engine.sampler", Value: "greedy"})
	want := model.Kernels{Async: model.Off, FusedReduce: model.On, Graphs: model.GraphsDecodeOnly, GraphTokens: 2048,
		Experts: model.ExpertsMarlin, Sampler: model.SamplerGreedy}
	if c.Engine.Kernels != want {
		t.Errorf("got %+v, want %+v", c.Engine.Kernels, want)
	}
	for _, wrong := range []Override{{Key: "engine.async_scheduling", Value: "1"}, {Key: "engine.graphs", Value: "partial"}} {
		if _, err := Load(write(t, minimal), []Override{wrong}, For("estimate")); err == nil {
			t.Errorf("%s = %s is taken", wrong.Key, wrong.Value)
		}
	}
}

// TestUnusedKernels: settings of kernels that never run are named, also once they were printed.
func TestUnusedKernels(t *testing.T) {
	for text, want := range map[string]int{"": 0, `moe_backend = "triton"`: 1, "allreduce_fusion = true": 1, "allreduce_fusion = true\ntensor_parallel = [1, 2]": 0, "eplb = true": 1} {
		got := mustLoad(t, minimal+"[engine]\n"+text+"\n", For("estimate"))
		if again := mustLoad(t, string(got.TOML()), For("estimate")); len(got.Warnings) != want || len(again.Warnings) != want {
			t.Errorf("%s: warnings %q, and %q when read again", text, got.Warnings, again.Warnings)
		}
	}
}

// Ways to the experts that vLLM refuses, lacks in the release or that reach no other GPU are refused where they would be
// simulated; others of some combinations reject these alone.
func TestExchangeWithExperts(t *testing.T) {
	const wide = "[demand]\nrate = 1\n[slo]\ntpot = { p99 = \"1s\" }\n[model]\nname = \"deepseek-v3\"\n[hardware]\ngpu = %s\n[engine]\ndata_parallel = 16\nexpert_parallel = true\n%s\n"
	for _, c := range []struct{ gpu, engine, want string }{
		{`"H200 SXM"`, `all2all_backend = "deepep_low_latency"`, ""}, {`"H200 SXM"`, "all2all_backend = \"deepep_high_throughput\"\ndbo = true\neplb = true", ""},
		{`"H200 SXM"`, `extra_args = ["--all2all-backend", "deepep_low_latency", "--enable-dbo"]`, ""},
		{`"H200 SXM"`, `all2all_backend = "deepep"`, "deepep_low_latency"}, {`"H200 SXM"`, `dbo = true`, "overlaps no batches"},
		{`"H200 SXM"`, `all2all_backend = "pplx"`, "no pplx"}, {`"H200 SXM"`, "all2all_backend = \"pplx\"\nversion = \"0.12.0\"", ""},
		{`"H200 SXM"`, `all2all_backend = "flashinfer_all2allv"`, "2 nodes"}, {`"MI300X"`, `all2all_backend = "pplx"`, "no pplx"},
		{`["MI300X", "H200 SXM"]`, `all2all_backend = "deepep_low_latency"`, ""},
		{`"H200 SXM"`, "kind = \"sglang\"\nall2all_backend = \"naive\"", "SGLang lacks"}, {`"H200 SXM"`, "kind = \"vllm\"\nall2all_backend = \"naive\"", ""},
	} {
		_, err := Load(write(t, fmt.Sprintf(wide, c.gpu, c.engine)), nil, For("plan"))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.gpu, c.engine, err, c.want)
		}
	}
	if got := KeyOfOption("--all2all-backend"); got != "engine.all2all_backend" {
		t.Errorf("--all2all-backend is %q", got)
	}
}

// TestUnusedWorkload: what is given of a workload and does nothing is named.
func TestUnusedWorkload(t *testing.T) {
	const columns = "arrival_s,input_tokens,output_tokens\n"
	rows := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("%d,5,5\n", i)
		}
		return text
	}
	trace, few, atOnce := write(t, columns+rows(100)), write(t, columns+rows(99)), write(t, columns+strings.Repeat("7,5,5\n", 300))
	for text, want := range map[string]string{
		"burstiness = 0.2":                                                                    `burstiness is 0.2, which has no effect without arrivals = "gamma"`,
		"arrivals = \"constant\"\nburstiness = 4":                                             `burstiness is 4, which has no effect without arrivals = "gamma"`,
		"arrivals = \"gamma\"\nburstiness = 0.2":                                              "",
		"think_time = \"10s\"":                                                                "think_time is 10s, which has no effect without turns above 1",
		"think_time = \"10s\"\nturns = 2":                                                     "",
		"prefix = { groups = 4, tokens = 99, prompts = 3 }":                                   "the lengths of the 12 texts that prefix.prompts repeats are drawn once, by seed",
		"prefix = { groups = 400, tokens = 99, prompts = 3 }":                                 "",
		"class = \"code\"":                                                                    "",
		"mix = [{ class = \"chat\", weight = 1 }, { class = \"code\", weight = 1 }]":          "",
		"prompt = { dist = \"fixed\", value = 90 }\nmix = [{ class = \"chat\", weight = 1 }]": "prompt, of 90 tokens, has no effect",
		"output = { dist = \"fixed\", value = 9 }\nmix = [{ class = \"chat\", weight = 1 }, { name = \"a\", weight = 1 }]": "",
		"trace = \"" + few + "\"":                                        "has 99 requests, played over and over",
		"trace = \"" + atOnce + "\"":                                     "all 300 requests come at the same moment",
		"class = \"chat\"\ntrace = \"" + trace + "\"":                    "",
		"class = \"code\"\ntrace = \"" + trace + "\"":                    "prompt, output and prefix have no effect: the trace gives the lengths",
		"prefix = { groups = 2, tokens = 9 }\ntrace = \"" + trace + "\"": "prompt, output and prefix have no effect: the trace gives the lengths",
		"mix = [{ name = \"a\", weight = 1, slo = { ttft = { p99 = \"1s\" } } }, { name = \"b\", weight = 1, slo = { ttft = {} } }]":               "slo.ttft has no effect: each class",
		"mix = [{ name = \"a\", weight = 1, slo = { ttft = { p99 = \"1s\" } } }, { name = \"b\", weight = 1, slo = { tpot = { p99 = \"1s\" } } }]": "",
	} {
		got := mustLoad(t, minimal+"[workload]\n"+text+"\n", For("estimate"))
		if said := strings.Join(got.Warnings, "\n"); (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: warnings %q, want %q", text, said, want)
		}
		again := mustLoad(t, string(got.TOML()), For("estimate"))
		if len(again.Warnings) != len(got.Warnings) {
			t.Errorf("%s: printed and read again, warnings %q, want %q", text, again.Warnings, got.Warnings)
		}
	}
}

// TestUnknownRelease: a release that is simulated as another one is named.
func TestUnknownRelease(t *testing.T) {
	for version, want := range map[string]string{
		"": "", "0.10": "", "v0.10.2": "", "0.33.1": "",
		"0.9.2": "vLLM 0.9 is older than 0.10, the oldest that is known, and simulated as that",
		"0.34":  "vLLM 0.34 is newer than 0.33, the newest that is known, and simulated as that",
		"1.9.0": "vLLM 1.9 is newer than 0.33, the newest that is known, and simulated as that",
	} {
		said := strings.Join(mustLoad(t, minimal+"[engine]\nversion = \""+version+"\"\n", For("plan")).Warnings, "\n")
		if (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: warnings %q, want %q", version, said, want)
		}
	}
}

// TestModelOfALaterRelease: a release from before a model is named.
func TestModelOfALaterRelease(t *testing.T) {
	for version, want := range map[string]bool{"0.16.1": true, "0.17.0": false, "": false} {
		text := strings.Replace(minimal, "llama-3.1-8b", "qwen3.5-9b", 1) + "[engine]\nversion = \"" + version + "\"\n"
		said := strings.Join(mustLoad(t, text, For("plan")).Warnings, "\n")
		if strings.Contains(said, "does not serve Qwen3.5-9B, which came with 0.17") != want {
			t.Errorf("%s: warnings %q", version, said)
		}
	}
}

// TestUnusedEngine: a server or a program that nothing measures is named.
func TestUnusedEngine(t *testing.T) {
	for text, want := range map[string]string{
		`url = "http://127.0.0.1:8000"`:                         `url is given, and kind is "simulated"`,
		"url = \"http://127.0.0.1:8000\"\nkind = \"attach\"":    "",
		`command = ["serve", "{port}"]`:                         `command is given, and kind is "simulated"`,
		"command = [\"serve\", \"{port}\"]\nkind = \"command\"": "",
	} {
		said := strings.Join(mustLoad(t, minimal+"[engine]\n"+text+"\n", For("plan")).Warnings, "\n")
		if strings.Contains(said, "is given, and kind is") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("%s: warnings %q, want %q", text, said, want)
		}
	}
}

// TestUnusedPrice: a price of a GPU that nobody names is said to have no effect.
func TestUnusedPrice(t *testing.T) {
	const attached = "demand.rate = 1\nslo.ttft = { p90 = \"1s\" }\nengine = { kind = \"attach\", url = \"http://127.0.0.1:8000\" }\n"
	for text, want := range map[string]bool{
		"":                                  false,
		"hardware.price_per_gpu_hour = 1.0": true,
		"hardware.price.on_demand = 1.0":    true,
		"hardware.price.on_demand = 1.0\nhardware.gpu = \"L40S\"": false,
	} {
		said := strings.Join(mustLoad(t, attached+text+"\n", For("plan")).Warnings, "\n")
		if got := strings.Contains(said, "the price that is given has no effect"); got != want {
			t.Errorf("%q: warnings %q", text, said)
		}
	}
}
