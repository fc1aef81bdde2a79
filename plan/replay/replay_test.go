package replay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/plan"
	"planner/plan/fleet"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const header = `model.name = "llama-3.1-8b"
hardware.gpu = "H100 SXM"
hardware.price_per_gpu_hour = 2.5
engine.tensor_parallel = 2
slo.ttft = { p95 = "1s" }
demand.rate = 4
`

// loaded is a configuration of a text, which stands in a folder with further files.
func loaded(t *testing.T, text string, files map[string]string) *config.Config {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		must.OK(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	path := filepath.Join(folder, "planner.toml")
	must.OK(os.WriteFile(path, []byte(header+text), 0o600))
	return must.Get(config.Load(path, nil, config.For("fleet")))
}

func prepared(cfg *config.Config, extent Extent) (*Replay, error) {
	runnable, _ := cfg.Candidates()
	return New(cfg, runnable[0], extent)
}

func countOf(stages []fleet.Stage) (requests int, length time.Duration) {
	for _, s := range stages {
		requests += len(s.Requests)
		length += s.Length
	}
	return requests, length
}

// TestPlant prepares replicas of two GPUs, four of which fit on a node, and their traffic:
// scaled and repeated, as many requests as its rates come to.
func TestPlant(t *testing.T) {
	cfg := loaded(t, `[fleet]
replicas = 2
stages = [{ rate = 4, duration = "5m", drain = true }, { rate = 8, duration = "10m" }]
`, nil)
	r := must.Get(prepared(cfg, Extent{Scale: 0.5, Repeat: 3}))
	if p := r.Plant; p.GPUs != 2 || p.Nodes.Slots != 4 || p.USDPerGPUHour != 2.5 {
		t.Errorf("%d GPUs, %d on a node, $%v", p.GPUs, p.Nodes.Slots, p.USDPerGPUHour)
	}
	stages := r.Plant.Traffic(7)
	n, length := countOf(stages)
	if want := 3 * (2*300 + 4*600.0); math.Abs(float64(n)-want) > 5*math.Sqrt(want) || length != 45*time.Minute || len(stages) != 6 || !stages[2].Drain || stages[3].Drain {
		t.Errorf("%d requests in %v, %d stages; want about %v in 45 min", n, length, len(stages), want)
	}
	if _, err := prepared(cfg, Extent{Scale: 1, Repeat: 2000}); err == nil || !strings.Contains(err.Error(), "too many to replay") {
		t.Errorf("twelve million requests: %v", err)
	}
}

// TestReplicasOverNodes places replicas of two GPUs on two nodes of one each, which are lost with either.
func TestReplicasOverNodes(t *testing.T) {
	const text = "hardware.node_gpus = 1\n[fleet]\nreplicas = 2\nmax_nodes = %d\nfailures = { mtbf = \"72h\", repair = \"10m\" }\nstages = [{ rate = 4, duration = \"5m\" }]\n"
	for nodes, groups := range map[int]int{0: 0, 1: -1, 2: 1, 5: 2} {
		r, err := prepared(loaded(t, fmt.Sprintf(text, nodes), nil), Extent{Scale: 1, Repeat: 1})
		if groups < 0 {
			if err == nil || !strings.Contains(err.Error(), "takes 2 nodes, and fleet.max_nodes is 1") {
				t.Errorf("on %d nodes: %v", nodes, err)
			}
			continue
		}
		if n := must.Get(r, err).Plant.Nodes; n.Slots != 1 || n.Max != groups || n.MTBF != 36*time.Hour {
			t.Errorf("on %d nodes: %+v", nodes, n)
		}
	}
}

// TestHeldOut holds out the last of several days, and of one day other draws of it.
func TestHeldOut(t *testing.T) {
	profile := "time_s,rate_per_s\n"
	for hour := range 72 {
		profile += fmt.Sprintf("%d,%g\n", 3600*hour, []float64{0.01, 0.02, 0.04}[hour/24])
	}
	text := `[fleet]
replicas = 1
profile = "three.csv"
`
	r := must.Get(prepared(loaded(t, text, map[string]string{"three.csv": profile}), Extent{Scale: 1, Repeat: 1, Search: true}))
	for _, c := range []struct {
		name   string
		stages []fleet.Stage
		want   float64
		length time.Duration
	}{{"chosen on", r.Plant.Traffic(1), 86400 * 0.03, 2 * day}, {"held out", r.traffic.heldOut(1), 86400 * 0.04, day}} {
		if n, length := countOf(c.stages); length != c.length || math.Abs(float64(n)-c.want) > 5*math.Sqrt(c.want) {
			t.Errorf("%s: %d requests in %v, want about %v in %v", c.name, n, length, c.want, c.length)
		}
	}
	one := must.Get(prepared(loaded(t, "[fleet]\nreplicas = 1\ndaily = { peak = 0.02, trough = 0.02 }\n", nil), Extent{Scale: 1, Repeat: 1, Search: true}))
	if _, length := countOf(one.traffic.heldOut(1)); length != day {
		t.Errorf("of one day %v are held out", length)
	}
}

// TestOtherRate says at which rate a trace is replayed where that is not the demanded one, and
// the scale that replays it.
func TestOtherRate(t *testing.T) {
	trace := ""
	for i := range 7200 {
		trace += fmt.Sprintf("{\"timestamp\": %d, \"input_length\": 100, \"output_length\": 10}\n", 800*i)
	}
	cfg := loaded(t, "workload = { trace = \"t.jsonl\", trace_format = \"mooncake\", arrivals = \"trace\" }\nfleet.replicas = 1\n", map[string]string{"t.jsonl": trace})
	for _, c := range []struct {
		scale float64
		want  string
	}{{1, "--scale 3.2 "}, {3.2, ""}, {3.3, ""}, {4, "at 5 requests/s in the mean, and demand.rate is 4: planner fleet --scale 3.2 "}} {
		r := must.Get(prepared(cfg, Extent{Scale: c.scale, Repeat: 1}))
		if got := r.OtherRate(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("scale %g: %q, want %q", c.scale, got, c.want)
		}
	}
	staged, err := prepared(loaded(t, "[fleet]\nreplicas = 1\ndaily = { peak = 0.02 }\n", nil), Extent{Scale: 1, Repeat: 1})
	if err != nil || staged.OtherRate() != "" {
		t.Errorf("traffic with rates of its own: %q, %v", staged.OtherRate(), err)
	}
}

// TestHeldOutOfTrace holds out the last day of a trace, and wants it to have two.
func TestHeldOutOfTrace(t *testing.T) {
	w := workload.Workload{Arrivals: workload.Trace}
	for hour := range 60 {
		w.Replay = append(w.Replay, workload.TraceRow{Arrival: time.Duration(hour) * time.Hour, Prompt: 10 + hour, Output: 5})
	}
	got := must.Get(traced(w, &fleet.Spike{}, Extent{Scale: 1, Repeat: 1, Search: true}))
	held := got.heldOut(1)[0].Requests
	if n := len(got.draw(1)[0].Requests); n != 36 || len(held) != 24 || held[0].Prompt != 10+36 {
		t.Errorf("%d requests to choose on, %d held out, the first of %d tokens", n, len(held), held[0].Prompt)
	}
	if twice, err := traced(w, &fleet.Spike{}, Extent{Scale: 1, Repeat: 2}); err != nil || twice.requests != 120 || len(twice.draw(1)) != 2 {
		t.Errorf("%+v, %v", twice.requests, err)
	}
	w.Replay = w.Replay[:40]
	if _, err := traced(w, &fleet.Spike{}, Extent{Scale: 1, Repeat: 1, Search: true}); err == nil || !strings.Contains(err.Error(), "shorter than two days") {
		t.Errorf("%v", err)
	}
}

// TestPolicies wants of a plan its own fleet beside one with the autoscaler of its
// manifests, or with the configuration's, which knows yesterday.
func TestPolicies(t *testing.T) {
	const stages = "[fleet]\nstages = [{ rate = 1, duration = \"2m\" }, { rate = 4, duration = \"2m\" }]\n"
	p := &plan.Plan{Fleet: plan.Fleet{Instances: 5}}
	with := func(text string) (*Replay, [2]fleet.Policy) {
		t.Helper()
		cfg := must.Get(config.Load(must.File(t, "planner.toml", header+text), nil, config.For("estimate")))
		runnable, _ := cfg.Candidates()
		p.Offer.Knobs = runnable[0]
		r, both, err := OfPlan(cfg, p)
		must.OK(err)
		return r, both
	}
	if r, _ := with(stages); r != nil {
		t.Error("a plan without an autoscaler is replayed")
	}
	p.Handover.Autoscaling = &plan.Autoscaling{Level: 17.26, MinReplicas: 2, MaxReplicas: 5}
	if r, _ := with(""); r != nil {
		t.Error("a plan without traffic in time is replayed")
	}
	_, both := with(stages)
	if s, a := both[0], both[1]; s.Replicas != 5 || a.Min != 2 || a.Max != 5 || a.Replicas != 0 || len(a.Autoscaler.Metrics) != 1 || a.Autoscaler.Metrics[0].Target != 17.3 {
		t.Errorf("%+v", both)
	}
	r, both := with(stages + "max_replicas = 2\nautoscaler = { kind = \"forecast\", target = 2 }\n")
	if a := both[1].Autoscaler; a.Kind != fleet.Forecast || len(a.Outlook.Yesterday) != 4 || both[1].Max != 2 {
		t.Errorf("%+v", both[1])
	}
	in := r.InTime(both)
	r.cfg.Fleet.Spike = fleet.Spike{At: time.Minute, Factor: 3, Length: time.Minute}
	if in.Warning != "" || r.otherPeak() != "" {
		t.Errorf("a plan of the traffic's peak: %q, with a spike %q", in.Warning, r.otherPeak())
	}
	if r.cfg.Demand.Growth = 0.25; !strings.Contains(r.otherPeak(), "4 requests/s at its peak, and the plan is of 5,") {
		t.Errorf("a plan of a quarter more: %q", r.otherPeak())
	}
	if in.Static.Replicas.Mean.Value != 5 || in.Autoscaled.Replicas.Peak > 2 || len(in.Static.Seeds) != inTimeSeeds || in.Static.Requests != in.Autoscaled.Requests {
		t.Errorf("%+v, %+v", in.Static.Replicas, in.Autoscaled.Replicas)
	}
}

// TestMeasuredStart takes the start of median length among those of a run folder, by stage.
func TestMeasuredStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	folder := must.Get(sweep.CreateFolder(path, sweep.About{Command: "bench"}, nil))
	for i, cold := range []time.Duration{300 * time.Second, 100 * time.Second, 90 * time.Second, 5 * time.Second} {
		stages := []engine.StartStage{{Name: "loading weights", Took: 11 * time.Second}, {Name: "torch.compile of the graph", Took: 33 * time.Second},
			{Name: "capturing CUDA graphs", Took: 8 * time.Second}, {Name: "weights of tomorrow", Took: time.Hour}}
		s := sweep.EngineTelemetry{Trial: i + 1, Knobs: measure.Knobs{}, Engine: sweep.TrialEngine{Fresh: i < 3, Cold: cold, Stages: stages}}
		must.OK(folder.WriteEngineTelemetry(s))
	}
	f := &config.FleetSettings{StartUpRun: path}
	want := fleet.StartUp{Init: 48 * time.Second, Weights: 11 * time.Second, Compile: 33 * time.Second, Graphs: 8 * time.Second}
	if err := measuredStart(f); err != nil || f.Policy.StartUp != want || want.Total(false) != 100*time.Second {
		t.Errorf("%+v, %v; want %+v", f.Policy.StartUp, err, want)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	must.Get(sweep.CreateFolder(empty, sweep.About{Command: "bench"}, nil))
	if err := measuredStart(&config.FleetSettings{StartUpRun: empty}); err == nil || !strings.Contains(err.Error(), "no engine whose start was measured") {
		t.Errorf("%v", err)
	}
}
