package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep"
)

// ourCatalog is a user's own: a GPU and a model that the built-in one does not have.
const ourCatalog = `
[[gpu]]
name = "Example X1"
generation = "hopper"
memory_gb = 96
mem_bandwidth_gbs = 3000
bf16_dense_tflops = 800
fp8_dense_tflops = 1600
scaleup_link = "NVLink4"
scaleup_gbs_per_direction = 300
pcie_gbs_per_direction = 64
tdp_w = 500
source = "a data sheet of our own"
[[model]]
model = "our-8b"
arch = "LlamaForCausalLM"
layers = 32
hidden = 4096
heads = 32
kv_heads = 8
intermediate = 14336
vocab = 128256
max_position = 131072
tied_embeddings = false
native_dtype = "bfloat16"
`

// smallDemand is what most plans of the tests are for.
const smallDemand = `
[demand]
rate = 40
[slo]
ttft = { p99 = "500ms" }
tpot = { p99 = "60ms" }
[model]
name = "llama-3.1-8b"
`

// simulatedConfig is of runs on the simulated engine: small, and quick.
const simulatedConfig = smallDemand + `
[hardware]
gpu = "L40S"
[knobs]
max_num_seqs = [64, 128]
max_num_batched_tokens = [2048, 8192]
gpu_memory_utilization = 0.9
[workload]
prompt = { dist = "uniform", min = 50, max = 150 }
output = { dist = "uniform", min = 20, max = 40 }
[search]
precision = 0.3
`

// single leaves one value of each list of simulatedConfig.
var single = []string{"--set", "knobs.max_num_seqs=64", "--set", "knobs.max_num_batched_tokens=2048"}

// ownRows names what only the user's catalog knows.
var ownRows = []string{"--catalog", "our.toml", "--set", "model.name=our-8b", "--set", "hardware.gpu=Example X1"}

// A run, the same run killed and resumed, and the report of it agree to the byte, for
// every command that makes a run folder and every way in which it can end. What a
// kill leaves is a beginning of the journal, and none of the files that are
// written at the end.
func TestRunsAgree(t *testing.T) {
	seconds := []string{"--rate", "4", "--duration", "30s"}
	written := newOutputs()
	t.Cleanup(func() { written.report(t) })
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"plan", []string{"plan", "p.toml"}, exitDone},
		{"plan by a grid", []string{"plan", "p.toml", "--set", "search.strategy=grid"}, exitDone},
		{"no plan", []string{"plan", "p.toml", "--set", "slo.ttft.p99=1ms"}, exitInfeasible},
		{"no plan by a grid", []string{"plan", "p.toml", "--set", "slo.ttft.p99=1ms", "--set", "search.strategy=grid"}, exitInfeasible},
		{"no plan within a limit", []string{"plan", "p.toml", "--set", "demand.max_gpus=1"}, exitInfeasible},
		{"plan undecided", slices.Concat([]string{"plan", "p.toml", "--set", "search.budget=500ms", "--set", "search.trial=1s"}, single), exitUndecided},
		{"estimate with records, a catalog and a certificate", slices.Concat([]string{"estimate", "p.toml", "--records", "--certify"}, single, ownRows), exitDone},
		{"search", slices.Concat([]string{"search", "p.toml"}, single), exitDone},
		{"search with a catalog and a certificate", slices.Concat([]string{"search", "p.toml", "--certify"}, single, ownRows), exitDone},
		{"search infeasible", slices.Concat([]string{"search", "p.toml", "--set", "slo.ttft.p99=1ms"}, single), exitInfeasible},
		{"search undecided", slices.Concat([]string{"search", "p.toml", "--set", "search.budget=500ms", "--set", "search.trial=1s"}, single), exitUndecided},
		{"sweep", []string{"sweep", "p.toml", "--rates", "1,4", "--repeats", "2", "--duration", "60s"}, exitDone},
		{"sweep one at a time with a catalog", slices.Concat([]string{"sweep", "p.toml", "--strategy", "one-at-a-time", "--rates", "1:8:3"}, ownRows), exitDone},
		{"sweep of a matrix", []string{"sweep", "p.toml", "--matrix"}, exitDone},
		{"compare", slices.Concat([]string{"compare", "p.toml", "b.toml", "--rate", "4", "--rounds", "4", "--duration", "60s"}, single), exitDone},
		{"simulate", slices.Concat([]string{"simulate", "p.toml"}, seconds, single), exitUndecided},
		{"simulate with a catalog", slices.Concat([]string{"simulate", "p.toml", "--concurrency", "4", "--requests", "40"}, single, ownRows), exitUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := runsIn(t)
			whole, cut := filepath.Join(dir, "whole"), filepath.Join(dir, "cut")
			code, out := planned(t, dir, append(c.args, "-o", whole)...)
			if code != c.want {
				t.Fatalf("exit code %d, want %d\n%s", code, c.want, out)
			}
			if again, text := planned(t, dir, "report", whole); again != exitDone || text != out {
				t.Errorf("the report differs from the run: exit code %d\n%s\nwas\n%s", again, text, out)
			}
			if again, text := planned(t, dir, "resume", whole); again != code || text != out {
				t.Errorf("the finished run resumed: exit code %d, was %d\n%s\nwas\n%s", again, code, text, out)
			}
			lines := killed(t, whole, cut)
			if again, text := planned(t, dir, "resume", cut); again != code || strings.ReplaceAll(text, cut, whole) != out {
				t.Errorf("killed and resumed: exit code %d, was %d\n%s\nwas\n%s", again, code, text, out)
			}
			if read(filepath.Join(cut, sweep.JournalFile)) != lines {
				t.Error("killed and resumed: another journal")
			}
			if a, b := filesOf(whole), filesOf(cut); !slices.Equal(a, b) {
				t.Errorf("killed and resumed: the files %v, were %v", b, a)
			}
			if err := written.checkFolders(whole); err != nil {
				t.Error(err)
			}
			if a, b := storedAnswer(whole), storedAnswer(cut); a != b {
				t.Errorf("killed and resumed: another answer\n%s\nwas\n%s", b, a)
			}
			if c.name == "plan" {
				t.Run("interrupted", func(t *testing.T) { interruptedRunAgrees(t, dir, whole, code, out) })
			}
		})
	}
}

// interruptedRunAgrees interrupts the plan that another run made whole: what it prints is what its report prints, and
// it goes on to the answer of the run that nobody touched.
func interruptedRunAgrees(t *testing.T, dir, whole string, code int, out string) {
	stopped := filepath.Join(dir, "stopped")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(filepath.Join(stopped, sweep.JournalFile)); bytes.Count(data, []byte("\n")) > 12 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	interrupted, partial := executed(t, ctx, dir, "plan", "p.toml", "-o", stopped)
	cancel()
	if interrupted != exitInterrupted {
		t.Skipf("SKIPPED: the run ended before it was interrupted: exit code %d", interrupted)
	}
	if again, text := planned(t, dir, "report", stopped); partial != "" && (again != exitDone || text != partial) {
		t.Errorf("the report of the interrupted run: exit code %d\n%s\nwas\n%s", again, text, partial)
	}
	if again, text := planned(t, dir, "resume", stopped); again != code || text != out {
		t.Errorf("interrupted and resumed: exit code %d, was %d\n%s\nwas\n%s", again, code, text, out)
	}
}

// Of live runs the report, and a resume of a run that did not fail, print what the run printed.
func TestLiveRunsAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	one := []string{"--set", "knobs.max_num_seqs=16"}
	point := []string{"--rate", "40", "--duration", "400ms", "--warm-up", "100ms"}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"plan", []string{"plan", "p.toml", "--set", "search.budget=2s"}},
		{"search", slices.Concat([]string{"search", "p.toml", "--set", "search.budget=2s"}, one)},
		{"search infeasible", slices.Concat([]string{"search", "p.toml", "--set", "slo.ttft.p90=1us"}, one)},
		{"sweep in a dialect", []string{"sweep", "p.toml", "--rates", "40", "--dialect", "generic"}},
		{"compare", slices.Concat([]string{"compare", "p.toml", "p.toml", "--rounds", "2"}, point, one)},
		{"bench that cannot run", slices.Concat([]string{"bench", "p.toml", "--set", "knobs.max_num_seqs=13"}, point)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t, "no-kv")
			code, out, told := l.run(t, append(c.args, "-o", "run")...)
			if out == "" {
				t.Fatalf("exit code %d\n%s", code, told)
			}
			if again, text, _ := l.run(t, "report", "run"); again != exitDone || text != out {
				t.Errorf("the report: exit code %d\n%s\nwas\n%s", again, text, out)
			}
			// One that failed tries again.
			if again, text, _ := l.run(t, "resume", "run"); again != code || text != out && code != exitFailed {
				t.Errorf("the finished run resumed: exit code %d, was %d\n%s\nwas\n%s", again, code, text, out)
			}
			l.nothingLeft(t)
		})
	}
}

// runsIn is a folder with configurations and a catalog in it.
func runsIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"p.toml": simulatedConfig, "our.toml": ourCatalog,
		"b.toml": strings.Replace(simulatedConfig, "gpu_memory_utilization = 0.9", "gpu_memory_utilization = 0.8", 1),
	} {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

// planned runs the program to its end in this process, on the files of dir, and returns
// exit code and standard output.
func planned(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	return executed(t, t.Context(), dir, args...)
}

func executed(t *testing.T, ctx context.Context, dir string, args ...string) (code int, out string) {
	t.Helper()
	for i, arg := range args {
		if strings.HasSuffix(arg, ".toml") {
			args[i] = filepath.Join(dir, filepath.Base(arg))
		}
	}
	code, out, told := inProcess(ctx, args...)
	if code == exitFailed || code == exitUsage {
		t.Fatalf("%v: %s", args, told)
	}
	return code, out
}

// killed makes of a run folder what a kill in the middle of the run leaves of it, and
// returns the whole journal.
func killed(t *testing.T, whole, cut string) string {
	t.Helper()
	must.OK(os.CopyFS(cut, os.DirFS(whole)))
	for _, pattern := range []string{"report.*", "plots", "plan.json", "curves.json", "search.json", "sweep.*", "compare.json"} {
		for _, path := range must.Get(filepath.Glob(filepath.Join(cut, pattern))) {
			must.OK(os.RemoveAll(path))
		}
	}
	journal := read(filepath.Join(whole, sweep.JournalFile))
	lines := strings.SplitAfter(journal, "\n")
	kept := strings.Join(lines[:len(lines)/2], "")
	put(t, filepath.Join(cut, sweep.JournalFile), kept)
	return journal
}

// filesOf lists the files of a run folder.
func filesOf(folder string) []string {
	var names []string
	must.OK(filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, folder))
		}
		return err
	}))
	return names
}

// storedAnswer is the answer that a run folder holds, without what depends on clock and
// place.
func storedAnswer(folder string) string {
	var s stored
	must.OK(json.Unmarshal([]byte(read(filepath.Join(folder, storedFile))), &s))
	var answer any
	must.OK(json.Unmarshal(s.Answer, &answer))
	if m, ok := answer.(map[string]any); ok {
		delete(m, "run")
	}
	return string(must.Get(json.Marshal(answer)))
}

// A run is never written over: a folder that exists is a mistake in the call, of every
// command.
func TestRunsAreNotWrittenOver(t *testing.T) {
	dir := runsIn(t)
	taken := filepath.Join(dir, "taken")
	must.OK(os.Mkdir(taken, 0o755))
	for _, args := range [][]string{
		{"plan"}, slices.Concat([]string{"estimate"}, single), slices.Concat([]string{"search"}, single), {"sweep", "--rates", "1"},
		slices.Concat([]string{"simulate", "--rate", "1"}, single), slices.Concat([]string{"compare", filepath.Join(dir, "b.toml")}, single),
		{"import"},
	} {
		file := filepath.Join(dir, "p.toml")
		if args[0] == "import" {
			file = filepath.Join(dir, "results.csv")
			put(t, file, "rate_per_s,ttft_p50_ms\n1,20\n2,30\n")
		}
		if code, _, told := inProcess(t.Context(), append(args, file, "-o", taken)...); code != exitUsage || !strings.Contains(told, "file already exists") {
			t.Errorf("%v: exit code %d: %s", args, code, told)
		}
	}
}
