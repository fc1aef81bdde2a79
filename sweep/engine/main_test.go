package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// TestMain makes this binary the guard, the engine and the planner of its own
// tests.
func TestMain(m *testing.M) {
	if code, ran := Guard(os.Args); ran {
		os.Exit(code)
	}
	enginetest.Main()
	if len(os.Args) > 2 && os.Args[1] == "planner" {
		os.Exit(beKilled(os.Args[2:]))
	}
	// The tests wait more than they compute, so more of them run side by side than there are processors.
	must.OK(flag.Set("test.parallel", "4"))
	os.Exit(m.Run())
}

// fakes are the settings of an engine that misbehaves; its processes have mark
// in their environment.
func fakes(t *testing.T, misbehave string, more ...string) (s Settings, mark string) {
	t.Helper()
	self := must.Get(os.Executable())
	dir := t.TempDir()
	mark = "FAKE_MARK=" + strings.NewReplacer("/", "-", "=", "-").Replace(dir)
	name, value, _ := strings.Cut(mark, "=")
	return Settings{
		Kind: "vllm", Program: []string{self, enginetest.Word}, Model: "/models/fake", ServedName: "fake",
		ExtraArgs: append([]string{"--misbehave", misbehave, "--state", filepath.Join(dir, "state")}, more...),
		Env:       map[string]string{name: value}, Dir: dir,
		Timeouts: Timeouts{Ready: 15 * time.Second, Stall: 10 * time.Second, Probe: time.Second, Grace: 2 * time.Second},
	}, mark
}

// someKnobs are settings that the fake engine takes.
func someKnobs() measure.Knobs {
	return measure.Knobs{MaxNumSeqs: 16, MaxNumBatchedTokens: 512, GPUMemoryUtilization: 0.9, PrefixCaching: true, TensorParallel: 1}
}

// beKilled is a planner that starts an engine and waits to be killed.
func beKilled(args []string) int {
	self, _ := os.Executable()
	s := Settings{Kind: "vllm", Program: []string{self, enginetest.Word}, Model: "m", ServedName: "fake",
		ExtraArgs: []string{"--misbehave", args[0]}, Dir: args[1]}
	if args[0] == "slow-stop" {
		s.ExtraArgs[1] = "ignores-term"
		s.Timeouts.Grace = time.Minute
	}
	e, err := Start(context.Background(), s, someKnobs(), "killed", nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	if args[0] == "slow-stop" {
		_ = e.Stop(0)
	}
	select {}
}
