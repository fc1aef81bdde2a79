//go:build realengines

package realengines

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestMain makes this binary the guard of its engines and the planner that is
// killed.
func TestMain(m *testing.M) {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	if len(os.Args) == 4 && os.Args[1] == "live-sweep" {
		os.Exit(sweepAgain(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// root is where .ci/engines installs.
func root() string {
	if dir := os.Getenv("PLANNER_ENGINES_DIR"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "planner-engines")
}

// subject is an engine under test.
type subject struct {
	// folder is where it is installed, below root.
	folder   string
	settings engine.Settings
	// sets are two sets of knobs that it can run with.
	sets [2]measure.Knobs
	// rate is one that it carries with ease, in requests of 16 tokens a second;
	// limit is a bound on the p90 of the time for all of a request that it
	// misses at some rate above.
	rate  float64
	limit time.Duration
}

// subjects are the engines by name.
func subjects() map[string]subject {
	vllm, llama := filepath.Join(root(), "vllm"), filepath.Join(root(), "llama")
	knobs := measure.Knobs{MaxNumSeqs: 16, MaxNumBatchedTokens: 512, GPUMemoryUtilization: 0.3, PrefixCaching: true, MaxModelLen: 4096, TensorParallel: 1}
	fewer := knobs
	fewer.MaxNumSeqs, fewer.MaxNumBatchedTokens, fewer.PrefixCaching = 4, 256, false
	slots := measure.Knobs{MaxNumSeqs: 4, MaxNumBatchedTokens: 512, PrefixCaching: true, MaxModelLen: 2048, TensorParallel: 1}
	two := slots
	two.MaxNumSeqs, two.PrefixCaching = 2, false
	return map[string]subject{
		"vllm": {
			folder: vllm, sets: [2]measure.Knobs{knobs, fewer}, rate: 4, limit: 2 * time.Second,
			settings: engine.Settings{
				Kind: "vllm", Program: append(yielding(), filepath.Join(vllm, "bin", "vllm"), "serve"), Model: filepath.Join(vllm, "model"), ServedName: "tiny",
				ExtraArgs: []string{"--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager"},
				Env:       map[string]string{"HF_HUB_OFFLINE": "1"},
				Limits:    engine.Limits{Ready: 5 * time.Minute},
			},
		},
		"llama-server": {
			folder: llama, sets: [2]measure.Knobs{slots, two}, rate: 0.5, limit: 5 * time.Second,
			settings: engine.Settings{
				Kind: "llama-server", Program: append(yielding(), filepath.Join(llama, "llama-server")), Model: filepath.Join(llama, "model.gguf"), ServedName: "smol",
				// Without it a processor's matrix unit is used, which some virtual
				// machines promise and do not have.
				ExtraArgs: []string{"--no-repack"},
				Limits:    engine.Limits{Ready: 5 * time.Minute},
			},
		},
	}
}

// yielding starts an engine at a lower priority than the client beside it, which
// has the same processors and must not be late.
func yielding() []string { return []string{"nice", "-n", "10"} }

// live is a runner for the engine, with its files in dir.
func (s subject) live(dir string) *sweep.Live {
	settings := s.settings
	settings.Dir = filepath.Join(dir, "engine")
	return &sweep.Live{Settings: settings, Client: load.Client{Stream: true}}
}

// trial is a short one.
func (s subject) trial(number int, k measure.Knobs, rate float64, window time.Duration) measure.Trial {
	w := s.workload()
	return measure.Trial{Number: number, Knobs: k, Workload: &w, Rate: rate, Warmup: 2 * time.Second, Window: window, Seed: uint64(number)}
}

func (s subject) workload() workload.Workload {
	return workload.Workload{Class: "tiny", Arrivals: workload.Poisson, Timeout: time.Minute, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Uniform, Min: 32, Max: 96}, Output: workload.Lengths{Dist: workload.Fixed, Value: 16},
	}}}
}

// each runs a test for every engine that is installed.
func each(t *testing.T, test func(*testing.T, subject)) {
	for _, name := range []string{"vllm", "llama-server"} {
		t.Run(name, func(t *testing.T) {
			s := subjects()[name]
			need(t, s)
			test(t, s)
		})
	}
}

// need skips the test when the engine is not installed.
func need(t *testing.T, s subject) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.folder, "installed")); err != nil {
		t.Skipf("SKIPPED: %s is not installed below %s: run .ci/engines", s.settings.Kind, root())
	}
}

// remark prints what a runner says besides.
func remark(t *testing.T, l *sweep.Live) {
	l.Remark = func(text string) { t.Log(text) }
	l.Started = func(e *engine.Engine) {
		var stages []string
		for _, stage := range e.Stages {
			stages = append(stages, fmt.Sprintf("%s %.1f s", stage.Name, stage.Took.Seconds()))
		}
		t.Logf("%s %s started in %.1f s (%s): %d blocks of %d tokens; effective: %v", e.Kind, e.Facts.Version, e.Cold.Seconds(),
			strings.Join(stages, ", "), e.Facts.KVBlocks, e.Facts.BlockTokens, e.Facts.Flags)
	}
}

// family lists the processes below one, itself included: pid and start time, so
// that a number that is used again is not taken for the process of before.
func family(root int) map[int]string {
	parents, starts := map[int]int{}, map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// Behind the name: state, parent, ... and the start time as the 20th.
		f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if f[0] != "Z" {
			parents[pid], _ = strconv.Atoi(f[1])
			starts[pid] = f[19]
		}
	}
	out := map[int]string{}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				out[pid] = starts[pid]
			}
		}
	}
	return out
}

// gone waits until no process of a family is left.
func gone(t *testing.T, was map[int]string, limit time.Duration) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		left := 0
		for pid, started := range was {
			if family(pid)[pid] == started {
				left++
			}
		}
		if left == 0 {
			t.Logf("nothing of %d processes is left after %v", len(was), time.Since(start).Round(50*time.Millisecond))
			return
		}
		if time.Since(start) > limit {
			t.Errorf("%d of %d processes are left after %v", left, len(was), limit)
			return
		}
	}
}

// alone checks that this process has no child left.
func alone(t *testing.T) {
	t.Helper()
	if f := family(os.Getpid()); len(f) != 1 {
		t.Errorf("processes %v are left", f)
	}
}

// list is a source of given trials.
type list struct {
	trials []measure.Trial
	next   int
	seen   []measure.Measurement
}

func (s *list) Next() []measure.Trial {
	if s.next == len(s.trials) {
		return nil
	}
	s.next++
	return s.trials[s.next-1 : s.next : s.next]
}

func (s *list) Observe(m measure.Measurement) { s.seen = append(s.seen, m) }

// sweepAgain is a planner that sweeps both sets of knobs of an engine with a
// journal in dir, and may be killed.
func sweepAgain(name, dir string) int {
	s := subjects()[name]
	l := s.live(dir)
	defer l.Close()
	j, _, err := sweep.OpenJournal(filepath.Join(dir, sweep.JournalFile))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	source := &list{}
	for i, k := range []measure.Knobs{s.sets[0], s.sets[0], s.sets[1]} {
		source.trials = append(source.trials, s.trial(i+1, k, s.rate, 4*time.Second))
	}
	if err := (&sweep.Loop{Source: source, Run: l.Run, Journal: j}).Drive(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
