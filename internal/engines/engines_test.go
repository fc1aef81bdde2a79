package engines

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/model"
	"planner/plan"
	"planner/plan/decide"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// configured is a configuration of a plan, given as pairs of keys and values.
func configured(pairs ...string) *config.Config {
	usual := []string{"demand.rate", "10", "slo.ttft.p99", "1s", "hardware.gpu", "H100 SXM", "engine.tensor_parallel", "2"}
	return configtest.Load("plan", append(usual, pairs...)...)
}

// knobs are the first of those that a configuration searches.
func knobs(cfg *config.Config) measure.Knobs {
	runnable, _ := cfg.Candidates()
	return runnable[0]
}

// TestServedModel: an engine is told the checkpoint that fits the traffic.
func TestServedModel(t *testing.T) {
	for _, c := range []struct {
		pairs []string
		want  string
	}{
		{[]string{"model.name", "llama-3.1-8b", "workload.class", "code"}, "meta-llama/Meta-Llama-3.1-8B"},
		{[]string{"model.name", "llama-3.1-8b", "workload.class", "chat"}, "meta-llama/Llama-3.1-8B-Instruct"},
		{[]string{"model.name", "llama-3.1-8b", "workload.class", "code", "engine.api", "chat"}, "meta-llama/Llama-3.1-8B-Instruct"},
		{[]string{"model.name", "llama-3.1-8b", "workload.mix", `[{ class = "code", weight = 1 }, { class = "chat", name = "support", weight = 1 }]`}, "meta-llama/Llama-3.1-8B-Instruct"},
		{[]string{"model.name", "llama-3.1-8b", "workload.class", "code", "workload.turns", "4"}, "meta-llama/Llama-3.1-8B-Instruct"},
		{[]string{"model.name", "meta-llama/Llama-3.1-8B", "workload.class", "chat"}, "meta-llama/Llama-3.1-8B"},
	} {
		if got := ServedModel(configured(c.pairs...)); got != c.want {
			t.Errorf("%q: %s, want %s", c.pairs, got, c.want)
		}
	}
}

// TestSimulatedFollowsItsCalibration: constants of a llama-server are for its steps.
func TestSimulatedFollowsItsCalibration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "llama.calibration")
	must.OK(os.WriteFile(file, []byte("[fitted_to]\ngpu = \"H100 SXM\"\nengine = \"llama-server\"\nengine_version = \"0.33.0\"\n"), 0o644))
	s := must.Get(Simulated(configured("model.name", "llama-3.1-8b", "engine.version", "0.33.0", "engine.calibration", file)))
	if f := s.Settings; f.Streams != model.On || f.Kernels.Async != model.Off {
		t.Errorf("settings %+v", f)
	}
}

// TestLaunchable: what cannot be loaded is refused with the key that says what to load. Whether
// a file is there is asked where an engine is started, and not where its results are read.
func TestLaunchable(t *testing.T) {
	for _, c := range []struct{ kind, name, want string }{
		{"simulated", "llama-3.1-8b", "give --url"},
		{"vllm", "llama-3.1-8b", ""},
		{"llama-server", "elsewhere/m.gguf", ""},
	} {
		err := Launchable(configured("engine.kind", c.kind, "model.name", c.name))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
	for kind, refused := range map[string]bool{"tgi": true, "trtllm": true, "vllm": false, "sglang": false} {
		err := Launchable(configured("engine.kind", kind, "model.name", "llama-3.1-8b", "engine.data_parallel", "2"))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "engine.data_parallel") {
			t.Errorf("two replicas in %s: %v", kind, err)
		}
	}
}

// TestOptions: drafts and adapters are told in vLLM's words.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ speculative, lora, want string }{
		{"", "", ""},
		{`{ method = "mtp", tokens = 3, acceptance = 0.7 }`, "", `--speculative-config {"method":"mtp","num_speculative_tokens":3}`},
		{`{ method = "ngram", tokens = 4, acceptance = 0.3 }`, "", `--speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}`},
		{"", `{ adapters = 32, slots = 8, rank = 16 }`, "--enable-lora --max-loras 8 --max-cpu-loras 32 --max-lora-rank 16"},
	} {
		pairs := []string{"engine.kind", "vllm", "model.name", "deepseek-v3", "engine.tensor_parallel", "8"}
		for key, value := range map[string]string{"engine.speculative": c.speculative, "engine.lora": c.lora} {
			if value != "" {
				pairs = append(pairs, key, value)
			}
		}
		cfg := configured(pairs...)
		settings := Settings(cfg)
		args := strings.Join(must.Get(settings.Command(knobs(cfg), engine.AnyPort)).Args, " ")
		if c.want == "" && (strings.Contains(args, "speculative") || strings.Contains(args, "lora")) || !strings.Contains(args, c.want) {
			t.Errorf("%s%s: %s", c.speculative, c.lora, args)
		}
	}
}

// The way to the experts reaches the command that a plan recommends, of a simulated engine too.
func TestExchangeIsHandedOver(t *testing.T) {
	for _, kind := range []string{"simulated", "vllm"} {
		cfg := configured("engine.kind", kind, "model.name", "deepseek-v3", "hardware.gpu", "H200 SXM", "engine.data_parallel", "16", "engine.expert_parallel", "true",
			"engine.all2all_backend", "deepep_low_latency", "engine.dbo", "true", "engine.eplb", "true")
		settings := recommended(cfg)
		args := strings.Join(must.Get(settings.Command(knobs(cfg), engine.AnyPort)).Args, " ")
		if !strings.Contains(args, "--all2all-backend deepep_low_latency --enable-dbo --enable-eplb") {
			t.Errorf("%s: %s", kind, args)
		}
	}
}

// TestHandOver: what serves others is what was measured, on all addresses, without keys,
// and with what the servers of its trials said of themselves.
func TestHandOver(t *testing.T) {
	t.Setenv("PLANNER_TEST_TOKEN", "hunter2")
	cfg := configured("engine.kind", "vllm", "model.name", "llama-3.1-8b", "engine.api_key_env", "SERVE_KEY",
		"engine.extra_args", `["--api-key", "{env:PLANNER_TEST_TOKEN}"]`, "engine.env", `{ HF_HOME = "/models", ALSO = "{env:OTHER_KEY}" }`)
	k := knobs(cfg)
	blocks, size := 1000, 16
	p := &decide.Planned{Plan: &plan.Plan{Fleet: plan.Fleet{Instances: 3, GPUsPerInstance: 2}}}
	p.Offer.Knobs = k
	p.Background.Trials = []measure.Measurement{{Trial: measure.Trial{Knobs: k},
		Server: measure.Server{Engine: measure.Software{Version: "0.12.0"}, KVBlocks: &blocks, BlockTokens: &size}}}
	HandOver(cfg, p)
	e := p.Handover.Engine
	if e == nil {
		t.Fatal("nothing is handed over")
	}
	argv := strings.Join(e.Argv, " ")
	if !strings.Contains(argv, "--host 0.0.0.0 --port 8000") || strings.Contains(argv, "hunter2") || !strings.Contains(argv, "--tensor-parallel-size 2") {
		t.Errorf("argv %s", argv)
	}
	if e.Version != "0.12.0" || e.Limits.KVTokens != 16000 || e.Limits.ModelLen != k.MaxModelLen || e.Replicas != 3 || e.GPUs != 2 || e.HealthPath != "/health" {
		t.Errorf("%+v", e)
	}
	if want := []string{"ALSO", "HF_HOME", "HF_TOKEN", "OTHER_KEY", "PLANNER_TEST_TOKEN", "SERVE_KEY"}; !slices.Equal(e.Env, want) {
		t.Errorf("names of the environment %q, want %q", e.Env, want)
	}
	if p.Handover.Model.Checkpoint != "meta-llama/Llama-3.1-8B-Instruct" {
		t.Errorf("%+v", p.Handover.Model)
	}
}

// TestHandedOver: what the environment or a name not given decides stands in the command, or is told beside it.
func TestHandedOver(t *testing.T) {
	for _, c := range []struct {
		cfg        *config.Config
		argv, note string
	}{
		{configured("engine.kind", "tgi", "model.name", "llama-3.1-8b", "knobs.prefix_caching", "false"), "env PREFIX_CACHING=0 text-generation-launcher --model-id", ""},
		{configured("model.name", "llama-3.1-8b", "engine.speculative", `{ method = "eagle", tokens = 3, acceptance = 0.7 }`), `"model":"HEAD"`, "HEAD"},
		{configured("model.name", "kimi-k3", "hardware.gpu", "B300 SXM", "engine.tensor_parallel", "8"), "vllm serve moonshotai/Kimi-K3", ""},
		{configured("model.name", "llama-3.1-405b", "engine.tensor_parallel", "16"), "--tensor-parallel-size 16", "2 nodes of 8 GPUs"},
		{configured("model.name", "llama-3.1-8b-fp8"), "vllm serve llama-3.1-8b-fp8", "no checkpoint"},
		{configured("model.config", "../../model/catalog/configs/mistral-nemo-12b.json"), "vllm serve /", "the folder of model.config"},
	} {
		p := &decide.Planned{Plan: &plan.Plan{}}
		p.Offer.Knobs = knobs(c.cfg)
		HandOver(c.cfg, p)
		e := p.Handover.Engine
		if argv := strings.Join(e.Argv, " "); !strings.Contains(argv, c.argv) || (c.note == "") != (e.Notes == nil) || !strings.Contains(strings.Join(e.Notes, " "), c.note) {
			t.Errorf("%s, notes %q", argv, e.Notes)
		}
		if start := Start(c.cfg, p.Offer.Knobs); !strings.Contains(strings.Join(start.Notes, " "), c.note) {
			t.Errorf("notes %q", start.Notes)
		}
	}
}

// TestPoolsServeOneModel: a class with instances of its own is served the checkpoint of all, and its own lengths.
func TestPoolsServeOneModel(t *testing.T) {
	cfg := configured("model.name", "llama-3.1-8b", "workload.mix", `[{ class = "chat", weight = 1, slo = { ttft = { p99 = "1s" } } }, { class = "code", weight = 1 }]`)
	for _, class := range cfg.Pools() {
		p := &decide.Planned{Plan: &plan.Plan{}, Class: class}
		p.Offer.Knobs = knobs(cfg.Pool(class))
		HandOver(cfg, p)
		if got := p.Handover.Model.Checkpoint; got != "meta-llama/Llama-3.1-8B-Instruct" || !slices.Contains(p.Handover.Engine.Argv, got) {
			t.Errorf("%s is served by %s", class, got)
		}
	}
}

// TestRoomForSamples: where the longest request is one of a sample, twice as much room is
// left, as far as the cache holds it, unless the length was chosen.
func TestRoomForSamples(t *testing.T) {
	trace := must.File(t, "t.csv", "arrival_s,input_tokens,output_tokens\n0,1000,200\n1,3000,100\n2,10,10\n")
	sampled := []string{"engine.kind", "vllm", "model.name", "llama-3.1-8b", "workload.trace", trace, "workload.arrivals", "trace"}
	cfg := configured(sampled...)
	k := knobs(cfg)
	if got := roomForSamples(cfg, k, 0); k.MaxModelLen < 3100 || got != 2*k.MaxModelLen {
		t.Errorf("room %d beside %d", got, k.MaxModelLen)
	}
	if got := roomForSamples(cfg, k, k.MaxModelLen+500); got != k.MaxModelLen+500 {
		t.Errorf("room %d in a cache of %d", got, k.MaxModelLen+500)
	}
	chosen := configured(append(sampled, "knobs.max_model_len", "8000")...)
	known := configured("engine.kind", "vllm", "model.name", "llama-3.1-8b")
	for _, cfg := range []*config.Config{chosen, known} {
		if got := roomForSamples(cfg, knobs(cfg), 0); got != 0 {
			t.Errorf("room %d", got)
		}
	}
}

// TestStart: the simulated engine's start is vLLM's, with the settings that were simulated;
// a server that runs is not started.
func TestStart(t *testing.T) {
	cfg := configured("model.name", "llama-3.1-8b", "engine.async_scheduling", "false", "engine.graphs", "eager")
	if line := Start(cfg, knobs(cfg)).Line; !strings.HasPrefix(line, "vllm serve meta-llama/Llama-3.1-8B-Instruct ") ||
		!strings.HasSuffix(line, "--no-async-scheduling --enforce-eager") {
		t.Error(line)
	}
	for model, want := range map[string]string{"minimax-m3": "--block-size 128", "deepseek-v4-flash": "--block-size 256"} {
		for _, kind := range []string{"simulated", "vllm"} {
			cfg = configured("model.name", model, "engine.kind", kind, "engine.tensor_parallel", "8", "hardware.gpu", "B300 SXM")
			if line := Start(cfg, knobs(cfg)).Line; !strings.Contains(line, want) {
				t.Error(line)
			}
		}
	}
	for _, c := range []struct {
		model, kind, version string
		trusts               bool
	}{
		{"kimi-k2", "simulated", "", true}, {"kimi-k2.5", "simulated", "0.33.0", true}, {"kimi-k2.5", "vllm", "0.33.0", false}, {"nvidia/Kimi-K2.5-NVFP4", "simulated", "", true},
		{"minimax-m2.5", "simulated", "", false}, {"minimax-m2.5", "simulated", "0.23.0", true}, {"minimax-m2.5", "sglang", "", false},
		{"nemotron-h-56b", "simulated", "", true}, {"deepseek-v2-lite", "simulated", "0.10.2", true}, {"deepseek-v2-lite", "simulated", "0.11.0", false},
		{"deepseek-v3", "vllm", "", false}, {"qwen3-8b", "vllm", "0.10.0", false}, {"kimi-k2", "lmdeploy", "", false},
	} {
		cfg = configured("model.name", c.model, "engine.kind", c.kind, "engine.version", c.version, "engine.tensor_parallel", "4", "hardware.gpu", "B300 SXM")
		if line := Start(cfg, knobs(cfg)).Line; strings.Contains(line, "--trust-remote-code") != c.trusts {
			t.Errorf("%+v: %s", c, line)
		}
	}
	cfg = configured("model.name", "qwen2.5-14b", "model.weights", "int4", "engine.tensor_parallel", "8")
	if notes := strings.Join(Start(cfg, knobs(cfg)).Notes, "\n"); !strings.Contains(notes, "13824 columns") || !strings.Contains(notes, "multiple of 1024") {
		t.Error(notes)
	}
	for version, want := range map[string]bool{"0.12.0": true, "0.15.0": false} {
		cfg = configured("model.name", "llama-3.1-405b", "model.weights", "fp8", "engine.tensor_parallel", "8", "engine.version", version)
		if notes := strings.Join(Start(cfg, knobs(cfg)).Notes, "\n"); strings.Contains(notes, "loads all weights, 101 GB a GPU") != want {
			t.Errorf("vLLM %s: %q", version, notes)
		}
	}
	cfg = configured("engine.kind", "attach", "engine.url", "http://h:1", "model.name", "llama-3.1-8b")
	if line := Start(cfg, knobs(cfg)).Line; line != "nothing is started; the server at http://h:1 is used as it is" {
		t.Error(line)
	}
}
