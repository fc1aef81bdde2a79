//go:build realengines

package realengines

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestMain makes this binary the guard of the engines that it starts itself.
func TestMain(m *testing.M) {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
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
	// folder is where it is installed, below root; program is there.
	folder, program string
	// settings start it without the program planner.
	settings engine.Settings
	knobs    measure.Knobs
	// toml is the part of a configuration that names model, engine and knobs: two
	// sets that differ in max_num_seqs, which are seqs.
	toml string
	seqs [2]int
	// output is how many tokens requests ask for, rate one that is carried with
	// ease, in requests a second.
	output int
	rate   float64
}

// subjects are the engines by name.
func subjects() map[string]subject {
	return map[string]subject{"vllm": vllm(), "llama-server": llamaServer()}
}

// live is a runner for the engine, with its files in dir.
func (s subject) live(dir string) *sweep.Live {
	settings := s.settings
	settings.Dir = filepath.Join(dir, "engine")
	settings.Program = []string{s.program}
	if s.settings.Kind == "vllm" {
		settings.Program = append(settings.Program, "serve")
	}
	return &sweep.Live{Settings: settings, Client: load.Client{Stream: true}}
}

// trial is a short one.
func (s subject) trial(number int, k measure.Knobs, window time.Duration) measure.Trial {
	w := workload.Workload{Class: "tiny", Arrivals: workload.Poisson, Timeout: time.Minute, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Uniform, Min: 16, Max: 48}, Output: workload.Lengths{Dist: workload.Fixed, Value: s.output},
	}}}
	return measure.Trial{Number: number, Knobs: k, Workload: &w, Rate: s.rate, Warmup: 2 * time.Second, Window: window, Seed: uint64(number)}
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

// timeFor skips a test, with what it says, that would run into the end of the time
// that all tests have.
func timeFor(t *testing.T, takes time.Duration, said ...string) {
	t.Helper()
	if end, ok := t.Deadline(); ok && time.Until(end) < takes {
		t.Skipf("SKIPPED: %v are left for all tests, which took long so far; %q", time.Until(end).Round(time.Second), said)
	}
}

// remark prints what a runner says besides.
func remark(t *testing.T, l *sweep.Live) {
	l.See = func(event any) {
		switch e := event.(type) {
		case string:
			t.Log(e)
		case *engine.Engine:
			var stages []string
			for _, stage := range e.Stages {
				stages = append(stages, fmt.Sprintf("%s %.1f s", stage.Name, stage.Took.Seconds()))
			}
			t.Logf("%s %s started in %.1f s (%s): %d blocks of %d tokens; effective: %v", e.Kind, e.Facts.Version, e.Cold.Seconds(),
				strings.Join(stages, ", "), e.Facts.KVBlocks, e.Facts.BlockTokens, e.Facts.Flags)
		}
	}
}
