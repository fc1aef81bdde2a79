package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/sweep/measure"
)

func TestCandidatesCrossEverything(t *testing.T) {
	c := mustLoad(t, strings.Replace(minimal, `"H100 SXM"`, `["H100 SXM", "H200 SXM"]`, 1)+`
[engine]
tensor_parallel = [1, 2]
pipeline_parallel = 2
[knobs]
max_num_seqs = [256, 1024]
max_num_batched_tokens = [512, 2048]
gpu_memory_utilization = [0.8, 0.9]
prefix_caching = [true, false]
kv_blocks = 100
`, For("plan"))
	runnable, rejected := c.Candidates()
	if len(runnable) != 48 || len(rejected) != 16 {
		t.Fatalf("%d runnable and %d rejected, want 3/4 and 1/4 of 64", len(runnable), len(rejected))
	}
	seen := map[measure.Knobs]bool{}
	for _, k := range runnable {
		if seen[k] {
			t.Errorf("twice: %+v", k)
		}
		seen[k] = true
		if k.MaxNumBatchedTokens < k.MaxNumSeqs {
			t.Errorf("cannot run: %+v", k)
		}
	}
	for _, r := range rejected {
		if seen[r.Knobs] || r.Reason.Text != "max_num_batched_tokens 512 is below max_num_seqs 1024" {
			t.Errorf("rejected %+v: %s", r.Knobs, r.Reason.Text)
		}
	}
	want := measure.Knobs{
		MaxNumSeqs: 256, MaxNumBatchedTokens: 512, GPUMemoryUtilization: 0.8, PrefixCaching: true, MaxModelLen: 6000,
		KVBlocks: 100, GPU: "H100 SXM", TensorParallel: 1, PipelineParallel: 2, DataParallel: 1,
	}
	if runnable[0] != want {
		t.Errorf("first %+v, want %+v", runnable[0], want)
	}
	want.PrefixCaching = false
	if runnable[1] != want {
		t.Errorf("second %+v, want %+v", runnable[1], want)
	}
	if last := runnable[len(runnable)-1]; last.GPU != "H200 SXM" || last.TensorParallel != 2 || last.MaxNumSeqs != 1024 {
		t.Errorf("last %+v", last)
	}
}

func TestCandidatesWithoutFiguresAreRejectedBesideOthers(t *testing.T) {
	catalog := must.Get(model.NewCatalog())
	must.OK(catalog.Put(model.GPUTable, model.Row{"name": "Own", "memory_gb": "94", "mem_bandwidth_gbs": "3900"}))
	c := must.Get(LoadWith(catalog, write(t, strings.Replace(minimal, `"H100 SXM"`, `["Own", "H100 SXM"]`, 1)), nil, For("plan")))
	runnable, rejected := c.Candidates()
	if len(runnable) != 48 || len(rejected) != 48 || rejected[0].Knobs.GPU != "Own" || !strings.Contains(rejected[0].Reason.Text, "bf16") {
		t.Errorf("%d runnable, %d rejected: %+v", len(runnable), len(rejected), rejected[0])
	}
}

func TestGPUsWithoutKernelsAreRejectedBesideOthers(t *testing.T) {
	both := strings.Replace(minimal, `"H100 SXM"`, `["B200 SXM", "H100 SXM"]`, 1)
	c := mustLoad(t, both, For("plan"), Override{Key: "model.weights", Value: "int8"})
	runnable, rejected := c.Candidates()
	if len(runnable) != 48 || len(rejected) != 48 || !strings.HasPrefix(rejected[0].Reason.Text, "vLLM has no kernels on B200 SXM for matrix products in int8 (W8A8)") {
		t.Errorf("%d runnable, %d rejected: %+v", len(runnable), len(rejected), rejected[:min(1, len(rejected))])
	}
	c = mustLoad(t, both, For("plan"), Override{Key: "model.weights", Value: "int8"}, Override{Key: "engine.kind", Value: "sglang"})
	if _, rejected := c.Candidates(); len(rejected) > 0 {
		t.Errorf("SGLang: %+v", rejected[0])
	}
}

func TestExpertsThatDoNotDivideAreRejected(t *testing.T) {
	c := mustLoad(t, strings.Replace(minimal, "llama-3.1-8b", "gpt-oss-120b", 1)+`
[engine]
tensor_parallel = [1, 8]
data_parallel = 3
expert_parallel = true
[knobs]
max_num_seqs = 64
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.9
`, Need{Engine: true, Simulated: true, Lists: true}, Override{Key: "engine.data_parallel", Value: "16"}, Override{Key: "hardware.node_gpus", Value: "128"})
	runnable, rejected := c.Candidates()
	if len(runnable) != 2 || len(rejected) != 0 { // 128 experts over 16 and 128 GPUs
		t.Errorf("%d runnable, %d rejected: %+v", len(runnable), len(rejected), rejected)
	}
}

// TestKnobsNotGiven is the rule of who fills in what.
func TestKnobsNotGiven(t *testing.T) {
	kind := func(k string) string { return minimal + "[engine]\nkind = \"" + k + "\"\n" }
	catalog := must.Get(model.NewCatalog())
	h100 := must.Get(catalog.GPU("H100 SXM"))
	own := model.DefaultArgs(h100, "")
	with := func(base, more map[string][]any) map[string][]any {
		out := maps.Clone(base)
		maps.Copy(out, more)
		return out
	}
	open := map[string][]any{"tensor_parallel": {1}, "pipeline_parallel": {1}, "data_parallel": {1}, "expert_parallel": {false},
		"prefix_caching": {true}, "max_model_len": {6000}}
	engine := with(open, map[string][]any{"max_num_seqs": {own.MaxNumSeqs}, "max_num_batched_tokens": {own.MaxNumBatchedTokens},
		"gpu_memory_utilization": {own.Utilization}})
	lists := with(open, map[string][]any{"max_num_seqs": {64, 128, 256, 512}, "max_num_batched_tokens": {2048, 4096, 8192, 16384},
		"gpu_memory_utilization": {0.85, 0.90, 0.95}, "extra_args": {""}})
	off := with(open, map[string][]any{"prefix_caching": {false}})
	clamped := with(engine, map[string][]any{"max_num_seqs": {100}, "max_num_batched_tokens": {100}})
	for _, c := range []struct {
		name, text, command string
		want                map[string][]any
	}{
		{"plan searches the lists", minimal, "plan", lists},
		{"also on a real engine", kind("vllm"), "plan", lists},
		{"estimate is always simulated", kind("attach") + "url = \"http://h\"\n", "estimate", lists},
		{"an attached engine keeps its own", kind("attach") + "url = \"http://h\"\n", "plan", open},
		{"simulate takes the engine's", minimal, "simulate", engine},
		{"also search", minimal, "search", engine},
		{"a real engine chooses itself", kind("sglang"), "search", open},
		{"lmdeploy has its prefix cache off", kind("lmdeploy"), "bench", off},
		{"the engine's requests do not exceed a step", minimal + "[knobs]\nmax_num_batched_tokens = 100\n", "simulate", clamped},
	} {
		if got := mustLoad(t, c.text, For(c.command)).Space; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A list that a user gave is not gone beyond, also where it is the one that is searched
// anyway; a run folder's configuration keeps who gave it.
func TestOpenKnobs(t *testing.T) {
	given := minimal + "[knobs]\nmax_num_seqs = [64, 128, 256, 512]\nprefix_caching = true\n"
	first := mustLoad(t, given, For("plan"))
	again := mustLoad(t, string(first.TOML()), For("plan"))
	attached := mustLoad(t, minimal+"[engine]\nkind = \"attach\"\nurl = \"http://h\"\n", For("plan"))
	for _, n := range measure.KnobTable {
		want := n.Name == "max_num_batched_tokens" || n.Name == "gpu_memory_utilization" || n.Name == "extra_args"
		if first.Open(n) != want || again.Open(n) != want || attached.Open(n) {
			t.Errorf("%s is open: %v, read again %v, on an attached engine %v", n.Name, first.Open(n), again.Open(n), attached.Open(n))
		}
	}
}

func TestEngineDefaultsDependOnTheGPU(t *testing.T) {
	c := mustLoad(t, strings.Replace(minimal, `"H100 SXM"`, `["H100 SXM", "L4"]`, 1)+"[engine]\nversion = \"0.15.1\"\n", For("plan"))
	for _, want := range []measure.Knobs{
		{GPU: "H100 SXM", MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192, GPUMemoryUtilization: 0.90},
		{GPU: "L4", MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, GPUMemoryUtilization: 0.90},
	} {
		if got := c.EngineDefaults(measure.Knobs{GPU: want.GPU, MaxNumSeqs: 7, MaxNumBatchedTokens: 7, GPUMemoryUtilization: 0.1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestLongestRequest(t *testing.T) {
	unbounded := minimal + `
[workload]
prompt = { dist = "fixed", value = 100 }
output = { dist = "lognormal", median = 50, sigma = 1 }
`
	for _, c := range []struct {
		name, text string
		want       int
		warning    string
	}{
		{"smallest that holds the longest", minimal, 6000, ""},
		{"the model's own without an end", unbounded, 131072, "give prompt and output a max, or knobs.max_model_len"},
		{"pinned, and cut there", unbounded + "[knobs]\nmax_model_len = 300\n", 300, ""},
		{"with its prefix", minimal + "[workload]\nprefix = { groups = 1, tokens = 11 }\n", 6011, ""},
		{"a whole conversation", minimal + "[workload]\nturns = 4\n", 24000, ""},
		{"a conversation up to the model's own", minimal + "[workload]\nturns = 100\n", 131072, "600000"},
		{"a conversation cut where asked", minimal + "[workload]\nturns = 4\n[knobs]\nmax_model_len = 7000\n", 7000, "24000"},
	} {
		got := mustLoad(t, c.text, For("plan"))
		if runnableLength(got) != c.want || got.Workload.MaxLen != c.want {
			t.Errorf("%s: %d and %d, want %d", c.name, runnableLength(got), got.Workload.MaxLen, c.want)
		}
		if warned := strings.Join(got.Warnings, "\n"); (warned != "") != (c.warning != "") || !strings.Contains(warned, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.name, warned, c.warning)
		}
	}
}

// runnableLength is the max_model_len of what can run.
func runnableLength(c *Config) int {
	runnable, _ := c.Candidates()
	return runnable[0].MaxModelLen
}

func TestPrices(t *testing.T) {
	both := strings.Replace(minimal, `"H100 SXM"`, `["H100 SXM", "Gaudi3"]`, 1)
	for _, c := range []struct {
		price string
		want  []float64
		known []bool
	}{
		{"", []float64{3.9, 0}, []bool{true, false}},
		{"price_per_gpu_hour = 2\n", []float64{2, 2}, []bool{true, true}},
		{"price_per_gpu_hour = 0\n", []float64{0, 0}, []bool{true, true}},
		{"price_per_gpu_hour = { gaudi3 = 1.5 }\n", []float64{3.9, 1.5}, []bool{true, true}},
	} {
		got := mustLoad(t, both+c.price, For("sweep"))
		for i, g := range got.GPUs {
			if g.PricePerGPUHour != c.want[i] || g.Priced() != c.known[i] {
				t.Errorf("%q: %s costs %v (%v, %q), want %v (%v)", c.price, g.Hardware.Name, g.PricePerGPUHour, g.Priced(), g.PricedBy, c.want[i], c.known[i])
			}
		}
		if warned := slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "Gaudi3") }); warned == c.known[1] {
			t.Errorf("%q: warnings %q", c.price, got.Warnings)
		}
	}
}
