package decide

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// An answer that stands on trials which cannot be trusted says so.
func TestUntrusted(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	trial := func(k measure.Knobs, valid bool) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Knobs: k}}
		if m.Valid = valid; !valid {
			m.Warnings = note.Notes{note.Text("the client was late")}
		}
		return m
	}
	other := trial(measure.Knobs{MaxNumSeqs: 16}, false)
	for _, c := range []struct {
		trials []measure.Measurement
		want   string
	}{
		{[]measure.Measurement{trial(k, true), other}, ""},
		{[]measure.Measurement{trial(k, true), trial(k, false), other}, "1 of the 2 trials of the chosen settings could not be trusted, first the client was late"},
		{[]measure.Measurement{trial(k, false), other}, "the only trial of the chosen settings could not be trusted, first the client was late: the rate is a guess"},
		{[]measure.Measurement{trial(k, false), trial(k, false)}, "none of the 2 trials of the chosen settings could be trusted, first the client was late: the rate is a guess"},
	} {
		if got := untrusted(c.trials, k).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// An engine that failed behind what was measured is told of where the answer rests on that.
func TestEngineLost(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	good := measure.Measurement{Trial: measure.Trial{Knobs: k}, Valid: true}
	lost := measure.Measurement{Trial: measure.Trial{Knobs: k}, Rejected: note.Because(note.EngineFailed, "hang", ": nothing came")}
	if got := untrusted([]measure.Measurement{good, lost}, k); len(got) != 1 || !got.Has(note.EngineLost) {
		t.Errorf("%v", got)
	}
	if got := untrusted([]measure.Measurement{good, lost}, measure.Knobs{MaxNumSeqs: 16}); len(got) > 0 {
		t.Errorf("of other knobs: %v", got)
	}
}

// An engine that breaks down in trials, and serves when they are repeated, is told of.
func TestBrokeDown(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	good, broke := measure.Measurement{Trial: measure.Trial{Knobs: k}}, measure.Measurement{Trial: measure.Trial{Knobs: k}}
	other := broke
	other.Trial.Knobs.MaxNumSeqs = 16
	broke.Warnings = note.Notes{note.New(note.EngineRepeated, "exit status 0")}
	other.Warnings = broke.Warnings
	once := note.Notes{note.New(note.OneStart)}
	if got := brokeDown(once, []measure.Measurement{good, other}, k, "ttft.p99"); !got.Has(note.OneStart) || len(got) != 1 {
		t.Errorf("%v", got)
	}
	const want = "the engine broke down in 1 of the 2 trials of the chosen settings, which were repeated; first: exit status 0"
	if got := brokeDown(once, []measure.Measurement{good, broke, other}, k, "ttft.p99").String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	fell := func(k measure.Knobs, rate float64) measure.Measurement {
		return measure.Measurement{Trial: measure.Trial{Knobs: k, Rate: rate}, Aborted: note.Because(note.EngineBroke, "out of memory")}
	}
	const below = "the engine broke down under 24 requests/s, which counts as a miss: out of memory"
	refused := func(rate float64, outcome measure.Outcome) measure.Measurement {
		trial := measure.Trial{Knobs: k, Rate: rate, Window: 10 * time.Second, Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.E2E, Quantile: 0.9, Limit: time.Second}}, Errors: 0.001}}
		o := measure.Observation{End: trial.Window}
		for i := range 20 {
			o.Records = append(o.Records, measure.Record{ID: i, Due: time.Duration(i) * time.Second / 2, Prompt: 8, Asked: 4, Output: 4, Outcome: measure.OK})
		}
		o.Records[7].Outcome, o.Records[7].Detail = outcome, "502: Bad Gateway"
		return measure.Reduce(trial, o)
	}
	trials := []measure.Measurement{good, refused(8, measure.HTTPStatus), refused(2, measure.HTTPStatus), refused(1, measure.Timeout), fell(k, 0.5)}
	const failing = "what limits the rate is requests that fail, which need be no question of speed: at 2 requests/s 1 of 20; 1 requests ended with http status: 502: Bad Gateway"
	if got := brokeDown(nil, trials, k, measure.ErrorsBound).Of(note.LimitedByFailures).String(); got != failing {
		t.Errorf("%q, want %q", got, failing)
	}
	if got := brokeDown(nil, trials, k, "ttft.p99"); got.Has(note.LimitedByFailures) {
		t.Errorf("%v where another bound limits", got)
	}
	if got := brokeDown(once, []measure.Measurement{good, fell(k, 30), fell(k, 24), fell(other.Trial.Knobs, 5)}, k, "ttft.p99").String(); got != below {
		t.Errorf("%q, want %q", got, below)
	}
}

// Where no limit holds the wait, the trial nearest to the load tells it, of those that the
// server kept up with.
func TestUnlimitedWait(t *testing.T) {
	trial := func(rate float64, ttft time.Duration, overloaded bool) measure.Measurement {
		return measure.Measurement{Trial: measure.Trial{Rate: rate}, Valid: true, Overloaded: overloaded,
			Latencies: measure.Latencies{TTFT: measure.Summary{P99: measure.Unresolved, P95: ttft}}}
	}
	s := &searches{cfg: &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.95, Limit: time.Second}}}}}
	s.Seen = []measure.Measurement{trial(2, 100*time.Millisecond, false), trial(4, time.Second, false), trial(5, 2*time.Second, true), trial(6, 3*time.Second, false)}
	const want = "nothing limits how long requests wait: in the trial nearest to the planned load, at 4 requests/s, ttft.p95 is 1s; a limit on ttft or e2e would bound it"
	if got := s.unlimitedWait(measure.Knobs{}, search.Estimate{Safe: 5.5}, 5.2, "planned load").String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.cfg.Objective.Bounds = append(s.cfg.Objective.Bounds, measure.Bound{Metric: measure.E2E, Quantile: 0.5, Limit: time.Minute})
	if got := s.unlimitedWait(measure.Knobs{}, search.Estimate{Safe: 5.5}, 5.2, "planned load"); got != nil {
		t.Errorf("%v under a limit on the whole time", got)
	}
}

// A cache that loses the histories of conversations beyond the rates that hold is told of, and a warm-up that ends
// before conversations are steady.
func TestOfConversations(t *testing.T) {
	cfg := &config.Config{Workload: workload.Workload{Arrivals: workload.Poisson, Turns: 20, Think: time.Second}}
	cfg.Search.Warmup = time.Second
	s := &searches{cfg: cfg}
	told := func(hits float64, state measure.State) string {
		s.Seen = append(s.Seen, measure.Measurement{Trial: measure.Trial{Rate: 40}, Valid: true, Verdict: &measure.Verdict{State: state},
			Server: measure.Server{HitRate: &hits}, Latencies: measure.Latencies{E2E: measure.Summary{Mean: time.Second}}})
		return s.ofConversations(measure.Knobs{}, 50).String()
	}
	told(0.9, measure.Met)
	if out := told(0.85, measure.Missed); strings.Contains(out, "collapse") || !strings.Contains(out, "shorter than the 41s") {
		t.Errorf("%s", out)
	}
	if out := told(0.4, measure.Missed); !strings.Contains(out, "90 %") || !strings.Contains(out, "40 %") {
		t.Errorf("%s", out)
	}
	if cfg.Workload.Turns = 1; len(s.ofConversations(measure.Knobs{}, 50)) > 0 {
		t.Error("said of single requests")
	}
}

// A rate at which the front end is busy for more than half of the time is told of: 2.4 ms for a request and 1/30 ms for
// each token. Its processes are one for each attention replica, or as many as the engine is told.
func TestBusyFrontEnd(t *testing.T) {
	cfg := configtest.Load("search",
		"model.name", "qwen3-0.6b", "hardware.gpu", "H100 SXM", "slo.ttft.p99", "1s",
		"workload.prompt", `{dist = "fixed", value = 500}`, "workload.output", `{dist = "fixed", value = 200}`)
	s := &searches{cfg: cfg, ground: sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 1)}
	for _, c := range []struct {
		rate     float64
		replicas int
		args     string
		want     bool
	}{{55, 1, "", false}, {56, 1, "", true}, {56, 2, "", false}, {112, 2, "", true}, {112, 2, "--api-server-count 3", false}, {56, 1, "-asc=2", false}, {112, 1, "-asc 2", true}} {
		k := measure.Knobs{GPU: "H100 SXM", TensorParallel: 1, DataParallel: c.replicas, ExtraArgs: c.args}
		if got := s.busyFrontEnd(k, c.rate); got.Has(note.BusyFrontEnd) != c.want {
			t.Errorf("%g requests/s of 200 tokens, %d replicas, %q: %v, want a warning %v", c.rate, c.replicas, c.args, got, c.want)
		}
	}
	// Prompts are tokenised beside that, at 1.5 us a token.
	s.cfg = configtest.Load("search", "model.name", "qwen3-0.6b", "hardware.gpu", "H100 SXM", "slo.ttft.p99", "1s",
		"workload.prompt", `{dist = "fixed", value = 30000}`, "workload.output", `{dist = "fixed", value = 20}`)
	for rate, want := range map[float64]bool{11: false, 12: true} {
		if got := s.busyFrontEnd(measure.Knobs{GPU: "H100 SXM", TensorParallel: 1}, rate); got.Has(note.BusyFrontEnd) != want {
			t.Errorf("%g requests/s of 30,000 prompt tokens: %v, want a warning %v", rate, got, want)
		}
	}
	s.ground = sweep.Ground{}
	if got := s.busyFrontEnd(measure.Knobs{}, 1000); len(got) > 0 {
		t.Errorf("of a server that was measured: %v", got)
	}
}

// The last requests of a job take as long as in the trial nearest to the safe rate that the server kept up with.
func TestTail(t *testing.T) {
	trial := func(rate float64, e2e time.Duration, overloaded bool) measure.Measurement {
		return measure.Measurement{Trial: measure.Trial{Rate: rate}, Valid: true, Overloaded: overloaded, Latencies: measure.Latencies{E2E: measure.Summary{P99: e2e}}}
	}
	trials := []measure.Measurement{trial(4, 8*time.Second, false), trial(9, 25*time.Second, false), trial(10, time.Minute, true)}
	if got := tail(nil, trials, measure.Knobs{}, 10); got != 0 {
		t.Errorf("%v without a job", got)
	}
	if got := tail(&plan.Job{}, trials, measure.Knobs{}, 10); got != 25*time.Second {
		t.Errorf("%v", got)
	}
}

// Where other kernels carry more than the engine's default ones in runs of the very traffic, a plan says which: another way
// to the experts for short prompts of DeepSeek-V3 on 16 H200, two nodes, and FlashInfer's 4-bit experts on B200. Nothing is
// said where a way was asked for, tokens stay or the GPU has no others.
func TestFasterKernels(t *testing.T) {
	for _, c := range []struct {
		model, gpu, backend string
		tp, replicas        int
		want                string
	}{
		{"deepseek-v3", "H200 SXM", "auto", 1, 16, "deepep"}, {"deepseek-v3", "H200 SXM", "deepep_low_latency", 1, 16, ""}, {"qwen3-30b-a3b", "H200 SXM", "auto", 1, 1, ""},
		{"kimi-k2.5", "B200 SXM", "auto", 8, 1, "moe_backend"}, {"kimi-k2.5", "H200 SXM", "auto", 8, 1, ""},
	} {
		cfg := configtest.Load("estimate", "demand.rate", "100", "model.name", c.model, "hardware.gpu", c.gpu, "slo.tpot.p99", "60ms", "engine.version", "0.16.0", "engine.tensor_parallel", strconv.Itoa(c.tp),
			"engine.data_parallel", strconv.Itoa(c.replicas), "engine.expert_parallel", "true", "engine.all2all_backend", c.backend, "knobs.max_num_batched_tokens", "2048",
			"knobs.max_num_seqs", "256", "workload.prompt", `{dist = "fixed", value = 50}`, "workload.output", `{dist = "fixed", value = 100}`)
		engine := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version, Settings: cfg.Engine.Features()}
		d := &Decision{searches: searches{cfg: cfg, ground: sweep.SimulatedGround(engine, 1)}}
		runnable, _ := cfg.Candidates()
		got := d.faster(plan.Offer{Knobs: runnable[0], Rate: search.Estimate{Value: 180}}, d.situation(runnable[0]))
		if said := fmt.Sprint(got); !strings.Contains(said, c.want) || (len(got) > 0) != (c.want != "") {
			t.Errorf("%+v: %s", c, said)
		}
	}
}
