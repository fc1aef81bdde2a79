package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/internal/progress"
	"planner/plan"
	"planner/plan/fleet"
	"planner/sweep"
)

// fleetOf runs planner fleet and reads what its JSON says of attainment and replicas.
func fleetOf(t *testing.T, args ...string) (attainment, replicas float64) {
	t.Helper()
	_, out, told := inProcess(t.Context(), append([]string{"fleet", "--json", "--no-static", "--quiet"}, args...)...)
	var answer struct {
		Attainment struct {
			Value float64 `json:"value"`
		} `json:"attainment"`
		Replicas struct {
			Mean struct {
				Value float64 `json:"value"`
			} `json:"mean"`
		} `json:"replicas"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v: %s%s", err, out, told)
	}
	return answer.Attainment.Value, answer.Replicas.Mean.Value
}

// TestMeasuredFleet replays a case that llm-d measured: a static pool of eight served
// every request within its limits, and the autoscaled one 95.8 % at 5.93 replicas. What
// uncertain inputs do to that stands in docs/fleet.md.
func TestMeasuredFleet(t *testing.T) {
	t.Parallel()
	const file = "testdata/fleet/llm-d.toml"
	if within, replicas := fleetOf(t, file, "--seeds", "1", "--set", "fleet.replicas=8"); within < 0.98 || replicas != 8 {
		t.Errorf("a static pool of 8: %.4f within the limits at %v replicas, measured 1", within, replicas)
	}
	within, replicas := fleetOf(t, file, "--seeds", "8")
	if math.Abs(within-0.958) > 0.02 || math.Abs(replicas-5.93) > 0.3 {
		t.Errorf("%.4f within the limits at %.2f replicas, measured 0.958 at 5.93", within, replicas)
	}
}

// TestInterruptedFleet wants a replay that is interrupted to end without an answer.
func TestInterruptedFleet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, told := inProcess(ctx, "fleet", "testdata/fleet/llm-d.toml", "--set", `fleet.stages=[{rate=1,duration="60s"}]`); code != exitInterrupted || out != "" {
		t.Errorf("exit code %d, %s%s", code, out, told)
	}
}

// TestDamagedFleet replays the fleet of a run folder whose answer is damaged, and says before
// that it would.
func TestDamagedFleet(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, first, errs := inProcess(t.Context(), "fleet", "testdata/fleet/llm-d.toml", "--no-static", "--seeds", "2", "--set", `fleet.stages=[{rate=1,duration="60s"}]`, "-o", folder)
	if first == "" {
		t.Fatal(errs)
	}
	must.OK(os.WriteFile(filepath.Join(folder, storedFile), []byte(`{"exit_code": 0, "ans`), 0o600))
	if code, _, errs := inProcess(t.Context(), "report", folder); code != exitFailed || !strings.Contains(errs, "make it again with: planner resume "+folder) {
		t.Errorf("report: exit code %d, %s", code, errs)
	}
	if _, again, errs := inProcess(t.Context(), "resume", folder); again != first || !strings.Contains(errs, "the answer is made again") {
		t.Errorf("resume: %s%s", again, errs)
	}
}

// TestStaticOrAutoscaled wants of a plan with traffic in time its fleet beside an
// autoscaled one, in the JSON and in the report, and what is wrong with the traffic refused.
func TestStaticOrAutoscaled(t *testing.T) {
	t.Parallel()
	args := []string{"estimate", "--quiet", "--model", "llama-3.1-8b", "--gpu", "H100 SXM", "--price", "3", "--rate", "40", "--workload", "chat",
		"--set", `slo.ttft={p95="500ms"}`, "--set", `slo.tpot={p95="50ms"}`, "--set", "knobs.max_num_seqs=256", "--set", "knobs.max_num_batched_tokens=8192", "--set", "search.budget=8m"}
	stages := func(text string) []string { return append(slices.Clone(args), "--set", "fleet.stages="+text) }
	folder := filepath.Join(t.TempDir(), "run")
	_, out, told := inProcess(t.Context(), append(stages(`[{rate=5,duration="12m"},{rate=40,duration="3m"}]`), "--json", "-o", folder)...)
	var p plan.Plan
	if err := p.UnmarshalJSON([]byte(out)); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	in := p.InTime
	if in == nil || in.Static == nil || in.Static.Policy.Replicas != p.Fleet.Instances || in.Static.Replicas.Mean.Value != float64(p.Fleet.Instances) {
		t.Fatalf("static: %+v", in)
	}
	if a := in.Autoscaled; a.Policy.Max != p.Fleet.Instances || a.Replicas.GPUHours.Value >= in.Static.Replicas.GPUHours.Value || a.Attainment.Value < 0.5 {
		t.Errorf("autoscaled: %+v", a.Replicas)
	}
	report, err := os.ReadFile(filepath.Join(folder, "report.txt"))
	for _, want := range []string{"STATIC OR AUTOSCALED", fleet.Name(&in.Static.Policy), "fewer GPU hours"} {
		if err != nil || !strings.Contains(string(report), want) {
			t.Errorf("no %q in the report: %v", want, err)
		}
	}
	if code, _, told := inProcess(t.Context(), append(stages(`[{rate=5,duration="12m"}]`), "--set", "fleet.min_replicas=9", "--set", "fleet.max_replicas=3")...); code != exitUsage ||
		!strings.Contains(told, "fleet.min_replicas: is 9, want at most max_replicas, 3") {
		t.Errorf("exit code %d, %s", code, told)
	}
}

// TestInterruptedInTime wants a plan whose traffic is being replayed in time to end as
// interrupted.
func TestInterruptedInTime(t *testing.T) {
	file := must.File(t, "planner.toml", `model.name = "llama-3.1-8b"
hardware.gpu = "H100 SXM"
slo.ttft = { p95 = "1s" }
demand.rate = 4
[fleet]
stages = [{ rate = 1, duration = "2m" }, { rate = 4, duration = "2m" }]
max_replicas = 2
autoscaler = { kind = "forecast", target = 2 }
`)
	cfg := must.Get(config.Load(file, nil, config.For("estimate")))
	runnable, _ := cfg.Candidates()
	p := &plan.Plan{Offer: plan.Offer{Knobs: runnable[0]}, Fleet: plan.Fleet{Instances: 2}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	display := func() *progress.Display { return progress.New(io.Discard, progress.DisplayOptions{}) }
	if got, err := inTime(ctx, cfg, p, display); got != nil || !errors.Is(err, sweep.ErrInterrupted) {
		t.Errorf("%+v, %v", got, err)
	}
}
