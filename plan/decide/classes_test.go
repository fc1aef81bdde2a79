package decide

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/measure"
)

// onInstance loads a configuration of one small instance with given tables more, and its
// ground.
func onInstance(t *testing.T, command, more string) (*config.Config, sweep.Ground) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.toml")
	text := `
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "L40S"
[knobs]
max_num_seqs = 256
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.92
` + more
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, nil, config.For(command))
	if err != nil {
		t.Fatal(err)
	}
	return cfg, sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 2)
}

const twins = `
[workload]
mix = [
  { name = "a", class = "chat", weight = 1, slo = { ttft = { p99 = "1s" }, tpot = { p99 = "50ms" } } },
  { name = "b", class = "chat", weight = 1, slo = { ttft = { p99 = "1s" }, tpot = { p99 = "50ms" } } },
]
`

const single = `
[slo]
ttft = { p99 = "1s" }
tpot = { p99 = "50ms" }
[workload]
class = "chat"
`

// TestEqualClassesAreOne checks that two classes that are alike, with limits that are
// alike, are one class: request by request in a trial, and in the maximum rate.
func TestEqualClassesAreOne(t *testing.T) {
	one := func(more string) (measure.Measurement, *FoundRate) {
		cfg, g := onInstance(t, "search", more)
		runnable, _ := cfg.Candidates()
		trial := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Rate: 4, Warmup: 10 * time.Second, Window: 500 * time.Second,
			Seed: 3, Objective: cfg.Objective, Whole: true}
		o, err := g.Predict.Observe(trial)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewRateSearch(cfg, g)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := sweep.Drive(t.Context(), nil, g, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return measure.Reduce(trial, o), answer.Value.(*FoundRate)
	}
	mixed, ofTwo := one(twins)
	alone, ofOne := one(single)
	if mixed.Requests != alone.Requests || mixed.TTFT != alone.TTFT || mixed.E2E != alone.E2E {
		t.Errorf("%d requests, TTFT %v; alone %d, %v", mixed.Requests, mixed.TTFT, alone.Requests, alone.TTFT)
	}
	for _, bound := range []string{"ttft.p99", "tpot.p99"} {
		a, _ := mixed.Count(bound + " of a")
		b, _ := mixed.Count(bound + " of b")
		all, ok := alone.Count(bound)
		if !ok || a.N+b.N != all.N || a.K+b.K != all.K || a.N == 0 || b.N == 0 {
			t.Errorf("%s: %d of %d and %d of %d, alone %d of %d", bound, a.K, a.N, b.K, b.N, all.K, all.N)
		}
	}
	if a, b := ofTwo.Estimate, ofOne.Estimate; math.Abs(a.Value/b.Value-1) > 0.08 || a.Low > b.High || b.Low > a.High {
		t.Errorf("maximum rate %v of two equal classes, %v of one", a, b)
	}
}
