package config

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// variants are configurations in which each value differs from its default, and
// those where absence means something.
var variants = map[string]string{
	"minimal": minimal,
	"engine": minimal + `
price_per_gpu_hour = { "h100 sxm" = 2.5, "L40S" = 0 }
power_price_per_kwh = 0.3
[engine]
kind = "command"
command = ["serve", "--port={port}", 'a "quoted" \ one', "tab\there"]
tensor_parallel = [1, 2]
pipeline_parallel = 2
data_parallel = 2
version = "0.11.0"
served_name = "m"
launcher = "slurm"
api = "chat"
stream = false
headers = { "X-Team" = "blue" }
env = { A = "1", B_2 = "é" }
extra_args = ["--x"]
ready_timeout = "90s"
api_key_env = "MY_KEY"
`,
	"ways to pay": minimal + `
price = { on_demand = 2.99, reserved_1y = 2.1, spot = 1.4, purchase = 28000, amortise_years = 5, power_usd_per_kwh = 0.1, hosting_usd_per_kw_month = 150, pue = 1.25, watts_per_gpu = 1275, basis = "purchase", source = "offer of 2026-11-02" }
`,
	"ways a GPU":   strings.Replace(minimal, `"H100 SXM"`, `["h200 sxm", "H100 SXM"]`+"\n"+`price = { "h200-sxm" = { spot = 2 }, "H100 SXM" = { purchase = 25000 } }`, 1),
	"several gpus": strings.Replace(minimal, `"H100 SXM"`, `["h200 sxm", "H100 SXM", "Gaudi3"]`, 1),
	"knobs": minimal + `
[knobs]
max_num_seqs = 7
max_num_batched_tokens = [2000, 1000]
gpu_memory_utilization = 1
prefix_caching = [false, true]
max_model_len = 6001
kv_blocks = 1234
`,
	"workload": minimal + `
[workload]
class = "code"
output = { dist = "lognormal", mean = 137.25, sigma = 0.3 }
turns = 3
think_time = "1.5s"
arrivals = "gamma"
burstiness = 0.37
timeout = "1h30m"
seed = 12345678901234
`,
	"mix": minimal + `
[workload]
mix = [{ class = "chat", weight = 0.7, slo = { tpot = {}, ttft = { p99 = "1s" }, goodput = { share = 0.9, e2e = "9s" } } }, { name = "r a g", weight = 0.3, prompt = { dist = "normal", mean = 256, stddev = 100, min = 1, max = 600 } }]
`,
	"demand": strings.Replace(minimal, "rate = 100", "rate = 1e-5\ngrowth = 0.1\nburst_index = 2\nmean_rate = 1e-6\nmax_gpus = 9\nmax_usd_per_hour = 8.5\nheadroom = 0\nspare_instances = 0\navailability = 0.9\nzones = 3", 1),
	"slo and search": strings.Replace(minimal, "ttft = {", "itl = { mean = \"1m\", p50 = \"1ns\" }\ne2e = { p999 = \"26h0m0.5s\" }\ngoodput = { e2e = \"20s\", share = 0.9 }\nerrors = 0\nttft = {", 1) + `
[search]
precision = 0.05
confidence = 0.99
warm_up = "15s"
trial = "2m"
min_requests = 50
budget = "7h"
strategy = "grid"
[output]
dir = "elsewhere"
`,
	"formats":   strings.Replace(minimal, "name = \"llama-3.1-8b\"", "name = \"llama-3.1-8b\"\nweights = [\"bf16\", \"fp8\"]\nkv_cache = [\"auto\", \"fp8\"]", 1) + "[engine]\ndata_parallel = [1, 2]\npipeline_parallel = [1, 2]\n",
	"daily job": strings.Replace(strings.Replace(minimal, "rate = 100", "tokens_per_day = 1e9", 1), "ttft = { p99 = \"500ms\" }", "objective = \"throughput\"", 1),
	"job":       strings.Replace(strings.Replace(minimal, "rate = 100", "requests = 1e6\ndeadline = \"12h\"\ngrowth = 0.5", 1), "ttft = { p99 = \"500ms\" }", "objective = \"throughput\"", 1),
	"attached":  minimal + "[engine]\nkind = \"attach\"\nurl = \"https://h/v1\"\n[knobs]\nmax_num_seqs = [1, 2]\n",
	"real":      minimal + "[engine]\nkind = \"lmdeploy\"\n",
	"clusters": minimal + `
[engine]
kind = "vllm"
launcher = "kubernetes"
expert_parallel = false
[cluster]
gpu = { "H100 SXM" = "h100" }
partition = "p"
account = "a"
qos = "q"
constraint = "c"
time_limit = "1h30m"
setup = ["module load cuda"]
planner = "registry/planner"
namespace = "n"
image = "vllm/vllm-openai:v0.15.1"
volume_claim = "v"
node_selector = { a = "b" }
tolerations = ["dedicated=llm:NoSchedule"]
node_wait = "15m"
extra = ["{}"]
max_jobs = 3
`,
	"simulated engine": strings.Replace(strings.Replace(minimal, "[slo]", "[slo]\ntpot = { p50 = \"1s\" }", 1), "rate = 100", "rate = 100\nrate_of = \"mean\"\ntarget_availability = 0.999", 1) + `
node_gpus = 4
[engine]
all2all_backend = "deepep_low_latency"
dbo = true
eplb = true
async_scheduling = false
graphs = "eager"
graph_tokens = 512
moe_backend = "triton"
allreduce_fusion = false
sampler = "greedy"
speculative = { method = "ngram", tokens = 3, acceptance = [0.7, 0.5, 0] }
lora = { adapters = 32, slots = 8, rank = 16 }
[workload]
prompt = { dist = "uniform", min = 1, max = 600 }
prefix = { groups = 2, tokens = 100, prompts = 0 }
[search]
certify = true
`,
	"fleet": minimal + `
[fleet]
replicas = 2
min_replicas = 2
max_replicas = 4
initial_replicas = 3
router = "prefix-affinity"
load_cap = 1.5
sticky = true
start_up = { init = "1s", weights = "2s", compile = "3s", graphs = "4s", probe = "5s", cached = true }
drain = "7s"
max_nodes = 5
failures = { mtbf = "720h", repair = "10m" }
spot = { mtbf = "24h", notice = "30s" }
autoscaler = { kind = "hpa", metric = "in_flight", target = 40, activation = 2, sync = "1s", tolerance = 0.2, scale_up = { stabilization = "3s", select = "min", policies = [{ type = "percent", value = 7, period = "8s" }] }, scale_down = { stabilization = "0s" }, scrape = "2s", window = "3s", delay = "4s", polling = "5s", cooldown = "6s", signal = "measured", quantile = 0.5, interval = "7s", up = 0.9, down = 0.1, cap = 3, ema = 0.5, schedule = [{ cron = "0 8 * * 1-5", replicas = 3 }], lead = "9s", margin = 0.3 }
stages = [{ rate = 0, duration = "1m" }, { rate = 2, duration = "330s" }]
spike = { at = "20s", factor = 5, duration = "30s" }
retries = 3
`,
	"fleet of zeros": minimal + `
[fleet]
replicas = 0
initial_replicas = 0
start_up = "0s"
drain = "0s"
max_nodes = 0
failures = { mtbf = "720h", repair = "0s" }
spot = { mtbf = "24h", notice = "0s" }
autoscaler = { kind = "forecast", target = 2, activation = 0, tolerance = 0, scale_up = { stabilization = "0s" }, window = "0s", delay = "0s", cooldown = "0s", quantile = 0, cap = 0, lead = "0s", margin = 0 }
daily = { peak = 100, trough = 0, shape = "office", days = 2 }
spike = { at = "0s", factor = 5, duration = "10m" }
retries = 0
`,
	"fleet of nothing": minimal + `
[fleet]
replicas = 1
failures = {}
spot = {}
autoscaler = {}
daily = {}
spike = {}
stages = [{ rate = 1, duration = "1m", drain = true }, { rate = 0, duration = "2m" }]
`,
}

func TestPrintedConfigurationLoadsBack(t *testing.T) {
	for name, text := range variants {
		for _, command := range []string{"plan", "estimate", "sweep", "simulate", "bench", "search", "fit", "fleet"} {
			if For(command).Fleet && !strings.HasPrefix(name, "fleet") {
				continue // no traffic in time
			}
			if (name == "several gpus" || name == "ways a GPU" || name == "attached" || name == "knobs" || name == "engine" || name == "formats") && !For(command).Lists {
				continue // lists, which these refuse
			}
			first := mustLoad(t, text, For(command))
			printed := string(first.TOML())
			second := mustLoad(t, printed, For(command))
			if !reflect.DeepEqual(first, second) {
				t.Errorf("%s, %s: printed\n%sloads as\n%+v, want\n%+v", name, command, printed, second, first)
			}
			if again := string(second.TOML()); again != printed {
				t.Errorf("%s, %s: printed twice it differs:\n%s\n%s", name, command, printed, again)
			}
		}
	}
}

// TestVariantsGiveEveryKey holds the variants to the keys that there are, but for those that name files
// and for options of engines, which a simulated one refuses.
func TestVariantsGiveEveryKey(t *testing.T) {
	given := map[string]bool{"model.config": true, "workload.trace": true, "workload.trace_format": true, "fleet.profile": true,
		"engine.calibration": true, "knobs.extra_args": true}
	for _, text := range variants {
		r := newReader("", nil)
		if !r.parse(text) {
			t.Fatal(r.problems)
		}
		for key := range r.places {
			given[key] = true
		}
	}
	for key := range Keys() {
		if !given[key] {
			t.Errorf("no variant gives %s", key)
		}
	}
}

func TestTraceLoadsBack(t *testing.T) {
	trace := must.File(t, "t.csv", "arrival_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n1,10,20,a,5\n0.5,30,40,,\n")
	first := mustLoad(t, minimal, For("plan"), Override{Key: "workload.trace", Value: trace})
	if n := len(first.Workload.Replay); n != 2 || first.Workload.Replay[0].Prompt != 30 || first.Workload.MaxLen != 70 {
		t.Errorf("got %+v, max_model_len %d", first.Workload, first.Workload.MaxLen)
	}
	second := mustLoad(t, string(first.TOML()), For("plan"))
	if !reflect.DeepEqual(first, second) {
		t.Errorf("got %+v, want %+v", second, first)
	}
}

func TestPrintConfigGolden(t *testing.T) {
	const golden = "testdata/print.toml"
	got := mustLoad(t, minimal, For("plan")).TOML()
	if *update {
		must.OK(os.WriteFile(golden, got, 0o644))
	}
	want := must.Get(os.ReadFile(golden))
	if string(got) != string(want) {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestTemplateLoads(t *testing.T) {
	for _, model := range []string{"", "llama-3.1-8b", "gpt-oss-120b", "Qwen2.5-7B", "deepseek-v3"} {
		for _, gpu := range []string{"", "L40S", "h200 sxm"} {
			for _, engine := range append(engineKinds(), "") {
				if engine == "llama-server" {
					continue // which loads a file
				}
				text := must.Get(Template(model, gpu, engine, ""))
				c := mustLoad(t, string(text), For("plan"))
				if runnable, _ := c.Candidates(); len(runnable) == 0 {
					t.Errorf("%q %q %q: nothing to run", model, gpu, engine)
				}
				if engine != "attach" {
					mustLoad(t, string(text), For("simulate"))
				}
			}
		}
	}
}

// A starter for an engine that loads a file names one, and one for a model of the
// user's own has lengths that the model can take.
func TestTemplateOfFiles(t *testing.T) {
	if _, err := Template("llama-3.1-8b", "", "llama-server", ""); err == nil || !strings.Contains(err.Error(), "--model: model.name: is \"llama-3.1-8b\", want the path of a GGUF file") {
		t.Errorf("a name that is no file: %v", err)
	}
	for _, name := range []string{"", "models/tiny.gguf"} {
		text := must.Get(Template(name, "", "llama-server", ""))
		file := write(t, string(text))
		c := must.Get(Load(file, nil, For("plan")))
		if want := filepath.Join(filepath.Dir(file), cmp.Or(name, "model.gguf")); c.Model.File != want || len(c.GPUs) > 0 {
			t.Errorf("file %s, want %s; GPUs %v", c.Model.File, want, c.GPUs)
		}
	}
	shape := must.File(t, "config.json", strings.Replace(tiny, "8192", "2048", 1))
	text := must.Get(Template(shape, "", "vllm", ""))
	if c := mustLoad(t, string(text), For("plan")); c.Model.Config != shape || c.Workload.Longest() > 2048 {
		t.Errorf("config %s, longest request %d", c.Model.Config, c.Workload.Longest())
	}
}

// TestTemplateUncommented takes the comment signs off a starter: what it shows as
// default or example must be right, too.
func TestTemplateUncommented(t *testing.T) {
	text := must.Get(Template("", "", "", ""))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(rest, " = ") {
			line = rest
		}
		lines = append(lines, line)
	}
	c := mustLoad(t, strings.Join(lines, ""), For("plan"))
	plain := mustLoad(t, string(text), For("plan"))
	plain.Demand.Availability, plain.Demand.TargetAvailability = 0.99, 0.999
	if !reflect.DeepEqual(c.Demand, plain.Demand) || !reflect.DeepEqual(c.Space, plain.Space) || !reflect.DeepEqual(c.Workload, plain.Workload) {
		t.Errorf("uncommented, it is\n%+v, want\n%+v", c, plain)
	}
}

func TestTemplateNamesTheFlag(t *testing.T) {
	_, err := Template("gpt-9", "H9000", "vlm", "")
	for _, flag := range []string{"--model: model.name:", "--gpu: hardware.gpu:", "--engine: engine.kind:"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v does not name %s", err, flag)
		}
	}
}

// Settings of the simulated engine tell servers apart where both are simulated, a calibration and another way to the
// server never, and knobs where they are asked for.
func TestServersDiffer(t *testing.T) {
	read := func(text string) *Config { return mustLoad(t, minimal+text, For("estimate")) }
	for _, c := range []struct {
		a, b  string
		knobs bool
		want  int
	}{
		{"", "", true, 0},
		{"", "[engine]\ngraphs = \"eager\"\n", false, 1},
		{"[engine]\nkind = \"vllm\"\n", "[engine]\nkind = \"vllm\"\ngraphs = \"eager\"\nurl = \"http://127.0.0.1:8000\"\n", false, 0},
		{"", "[engine]\ntensor_parallel = 2\n[knobs]\nmax_num_seqs = 64\n", false, 0},
		{"", "[engine]\ntensor_parallel = 2\n[knobs]\nmax_num_seqs = 64\n", true, 2},
	} {
		if got := ServersDiffer(read(c.a), read(c.b), c.knobs); len(got) != c.want {
			t.Errorf("%q against %q: %q", c.a, c.b, got)
		}
	}
}
