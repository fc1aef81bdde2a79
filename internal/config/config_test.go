package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// minimal is all that estimate needs.
const minimal = `
[demand]
rate = 100
[slo]
ttft = { p99 = "500ms" }
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "H100 SXM"
`

// write puts a configuration into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	return must.File(t, "planner.toml", text)
}

// mustLoad loads a text that must be right.
func mustLoad(t *testing.T, text string, need Need, overrides ...Override) *Config {
	t.Helper()
	c, err := Load(write(t, text), overrides, need)
	if err != nil {
		t.Fatalf("load:\n%s\n%v", text, err)
	}
	return c
}

// interfaceText is the block of the interface's description, which shows every
// default but for the marked examples.
func interfaceText() string {
	return string(must.Get(os.ReadFile("testdata/interface.toml")))
}

// TestDefaultsAreThoseOfTheInterface loads the documented block, and next to it
// only what the documentation calls no default; the rest must come by itself.
func TestDefaultsAreThoseOfTheInterface(t *testing.T) {
	const examples = `
[demand]
rate = 100
availability = 0.99
target_availability = 0.999
[slo]
ttft = { p99 = "500ms" }
tpot = { p99 = "50ms" }
[model]
name = "llama-3.1-70b"
weights = "fp8"
[hardware]
gpu = "H100 SXM"
price_per_gpu_hour = 2.99
[engine]
tensor_parallel = 4
[workload]
prefix = { groups = 10, tokens = 100 }
[search]
budget = "1h"
`
	for _, command := range []string{"plan", "estimate", "fit", "sweep"} {
		got := mustLoad(t, examples, For(command))
		want := mustLoad(t, interfaceText(), For(command))
		got.draft.space, want.draft.space = nil, nil // whether a list is given is no default
		if !For(command).Search {                    // which leaves the knobs to the engine
			got.Space, want.Space = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: defaults\n%+v\nthe documented block\n%+v", command, got, want)
		}
	}
}

func TestKeysCoverTheInterface(t *testing.T) {
	src := newReader("testdata/interface.toml", nil)
	if !src.read(nil) {
		t.Fatal(src.problems)
	}
	documented := map[string]bool{}
	for section, v := range src.tree {
		for name := range v.(map[string]any) {
			documented[section+"."+name] = true
		}
	}
	var extra []string
	for _, s := range unread().sections() {
		for _, k := range s.rows {
			key := s.name + "." + k.name
			if !documented[key] {
				extra = append(extra, key)
			}
			delete(documented, key)
			if k.comment == "" {
				t.Errorf("%s has no comment", key)
			}
		}
	}
	if len(documented) > 0 {
		t.Errorf("no such keys: %v", documented)
	}
	// hardware.price stands there too, and not beside the older keys.
	want := []string{"demand.tokens_per_day", "demand.requests", "demand.deadline", "slo.objective", "slo.goodput", "hardware.price", "engine.all2all_backend", "engine.dbo", "engine.eplb", "cluster.planner", "cluster.node_wait", "knobs.extra_args",
		"workload.think_time", "workload.burstiness", "workload.trace_format", "search.certify"}
	if !reflect.DeepEqual(extra, want) {
		t.Errorf("keys beyond the interface: %v, want %v", extra, want)
	}
}

func TestNoFile(t *testing.T) {
	flags := []Override{
		{Key: "model.name", Value: "llama-3.1-70b", Flag: "--model"},
		{Key: "model.weights", Value: "fp8", Flag: "--weights"},
		{Key: "hardware.gpu", Value: "H100 SXM", Flag: "--gpu"},
		{Key: "engine.tensor_parallel", Value: "4", Flag: "--tp"},
		{Key: "workload.class", Value: "chat", Flag: "--workload"},
		{Key: "demand.rate", Value: "100", Flag: "--rate"},
		{Key: "slo.ttft.p99", Value: "500ms", Flag: "--slo"},
		{Key: "slo.tpot.p99.9", Value: "50ms", Flag: "--slo"},
		{Key: "slo.goodput.share", Value: "0.95", Flag: "--slo"},
		{Key: "slo.goodput.ttft", Value: "400ms", Flag: "--slo"},
		{Key: "slo.goodput.tpot", Value: "40ms", Flag: "--slo"},
	}
	c := must.Get(Load("", flags, For("estimate")))
	want := measure.SLO{Errors: 0.001, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond},
		{Metric: measure.TPOT, Quantile: 0.999, Limit: 50 * time.Millisecond},
		{Metric: measure.Goodput, Quantile: 0.95, Limits: measure.Limits{TTFT: 400 * time.Millisecond, TPOT: 40 * time.Millisecond}},
	}}
	if !reflect.DeepEqual(c.Objective, want) {
		t.Errorf("objective %+v, want %+v", c.Objective, want)
	}
	if c.Demand.Rate != 100 || c.GPUs[0].Hardware.Name != "H100 SXM" || c.Model.Precision.Weights.String() != "fp8" {
		t.Errorf("got %+v", c)
	}
	if runnable, rejected := c.Candidates(); len(runnable) != 48 || len(rejected) != 0 {
		t.Errorf("%d runnable, %d rejected, want 48 and 0", len(runnable), len(rejected))
	}

	_, err := Load("", nil, For("estimate"))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 4 || problems[0].at.String() != "command line" {
		t.Errorf("without anything: %v, want four problems of the command line", err)
	}
}

func TestMissingFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(name, nil, For("plan"))
	if want := name + ": cannot be read: no such file or directory, want a TOML file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Load(filepath.Dir(name), nil, For("plan")); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder gives %v", err)
	}
}

func TestOverrides(t *testing.T) {
	text := minimal + `
price_per_gpu_hour = 3
[engine]
version = "0.15.1"
[workload]
prompt = { dist = "lognormal", median = 500, sigma = 0.8, min = 50, max = 4000 }
`
	c := mustLoad(t, text, For("plan"),
		Override{Key: "demand.rate", Value: "1"}, Override{Key: "demand.rate", Value: "2.5"},
		Override{Key: "engine.version", Value: "0.20"}, // a number, were it not a string
		Override{Key: "workload.prompt.median", Value: "800"},
		Override{Key: `hardware.price_per_gpu_hour."H100 SXM"`, Value: "4"},
		Override{Key: "knobs.max_num_seqs", Value: "32, 64"},
		Override{Key: "knobs.prefix_caching", Value: "[true, false]"},
		Override{Key: "engine.extra_args", Value: "--enforce-eager"},
		Override{Key: "slo.ttft", Value: `{ mean = "1s" }`},
		Override{Key: "slo.e2e.p999", Value: "9s"},
		Override{Key: "search.warm_up", Value: "15s"},
	)
	if c.Demand.Rate != 2.5 || c.Engine.Version != "0.20" || c.GPUs[0].PricePerGPUHour != 4 {
		t.Errorf("rate %v, version %q, price %v", c.Demand.Rate, c.Engine.Version, c.GPUs[0].PricePerGPUHour)
	}
	if p := c.Workload.Shapes[0].Prompt; p.Median != 800 || p.Max != 4000 {
		t.Errorf("prompt %+v: want median 800 and the rest of the file's table", p)
	}
	if !reflect.DeepEqual(c.Space["max_num_seqs"], []any{32, 64}) || !reflect.DeepEqual(c.Space["prefix_caching"], []any{true, false}) {
		t.Errorf("space %+v", c.Space)
	}
	if !reflect.DeepEqual(c.Engine.ExtraArgs, []string{"--enforce-eager"}) {
		t.Errorf("extra_args %q", c.Engine.ExtraArgs)
	}
	if len(c.Objective.Bounds) != 2 || c.Objective.Bounds[0].String() != "ttft.mean" || c.Objective.Bounds[1].String() != "e2e.p99.9" {
		t.Errorf("bounds %v", c.Objective.Bounds)
	}
	if c.Search.Warmup != 15*time.Second {
		t.Errorf("warm-up %+v", c.Search.Warmup)
	}
}

func TestPathsAreRelativeToTheirSource(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"here/own.csv": "1\n", "conf/own.csv": "2\n", "conf/sub/deep.csv": "length\n3\n5.0\n",
		"conf/p.toml": minimal + `
[workload]
prompt = { dist = "empirical", file = "own.csv" }
output = { dist = "empirical", file = "sub/deep.csv" }
[output]
dir = "out"
`,
	} {
		must.OK(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		must.OK(os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	t.Chdir(filepath.Join(root, "here"))
	c := must.Get(Load("../conf/p.toml", nil, For("plan")))
	s := c.Workload.Shapes[0]
	if !reflect.DeepEqual(s.Prompt.Samples, []int{2}) || !reflect.DeepEqual(s.Output.Samples, []int{3, 5}) || c.OutputDir != "out" {
		t.Errorf("samples %v and %v, output %q", s.Prompt.Samples, s.Output.Samples, c.OutputDir)
	}
	if !filepath.IsAbs(s.Prompt.File) {
		t.Errorf("file %q is not absolute", s.Prompt.File)
	}
	c = must.Get(Load("../conf/p.toml", []Override{{Key: "workload.prompt.file", Value: "own.csv"}}, For("plan")))
	if got := c.Workload.Shapes[0].Prompt.Samples; !reflect.DeepEqual(got, []int{1}) {
		t.Errorf("samples of a flag's path %v, want those of the current folder", got)
	}
}

func TestSectionsThatACommandDoesNotUseMayBeMissing(t *testing.T) {
	model := "[model]\nname = \"llama-3.1-8b\"\n[hardware]\ngpu = \"H100 SXM\"\n"
	limit := "[slo]\ne2e = { p50 = \"1s\" }\n"
	demand := "[demand]\nrate = 1\n"
	attach := "[engine]\nkind = \"attach\"\nurl = \"http://127.0.0.1:8000\"\n"
	for _, c := range []struct {
		command, text string
		ok            bool
	}{
		{"simulate", model, true}, {"simulate", "", false}, {"simulate", attach, false}, {"serve-sim", model, true},
		{"search", model, false}, {"search", model + limit, true}, {"search", attach + limit, true},
		{"bench", attach, true}, {"bench", model, true},
		{"plan", model + limit, false}, {"plan", model + demand, false}, {"plan", model + limit + demand, true},
		{"plan", attach + limit + demand, true}, {"estimate", attach + limit + demand, false},
		{"fit", limit + demand, true}, {"fit", limit, false}, {"fit", demand, false}, {"doctor", attach, true},
	} {
		if _, err := Load(write(t, c.text), nil, For(c.command)); (err == nil) != c.ok {
			t.Errorf("%s with\n%sgives %v", c.command, c.text, err)
		}
	}
}

func TestMixInheritsFromTheWorkload(t *testing.T) {
	c := mustLoad(t, minimal+`
[workload]
output = { dist = "fixed", value = 7 }
prefix = { groups = 2, tokens = 10 }
mix = [
  { class = "code", weight = 3 },
  { name = "own", weight = 1, prompt = { dist = "fixed", value = 9 }, prefix = {} },
]
`, For("plan"))
	code := must.Get(workload.Class("code"))
	want := []workload.Shape{
		{Name: "code", Weight: 3, Prompt: code.Prompt, Output: code.Output, Prefix: workload.Prefix{Groups: 2, Tokens: 10}},
		{Name: "own", Weight: 1, Prompt: workload.Lengths{Dist: workload.Fixed, Value: 9}, Output: workload.Lengths{Dist: workload.Fixed, Value: 7}},
	}
	if !reflect.DeepEqual(c.Workload.Shapes, want) || c.Workload.Class != "mix" {
		t.Errorf("got %+v, want %+v", c.Workload, want)
	}
	if want := 8000 + 4000 + 10; c.Workload.MaxLen != want {
		t.Errorf("max_model_len %d, want %d", c.Workload.MaxLen, want)
	}
}
