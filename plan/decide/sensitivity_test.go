package decide

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/plan/effects"
	"planner/sweep"
)

var (
	firstCase = flag.Uint64("sensitivity-from", 44, "the first random instance whose sensitivity is held against searches")
	cases     = flag.Uint64("sensitivity-cases", 1, "how many random instances")
)

// randomInstance is an instance of some model on some GPU under random traffic and limits, one on
// the pace of tokens by its metric, with requests and limits longer by factors.
func randomInstance(seed uint64, pace string) func(limits, prompts, answers float64) []config.Override {
	rng := rand.New(rand.NewPCG(seed, 77))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	between := func(low, high float64) float64 { return math.Round(low * math.Pow(high/low, rng.Float64())) }
	prompt, output := between(100, 2000), between(30, 600)
	promptSigma, outputSigma := 0.2+0.8*rng.Float64(), 0.2+0.8*rng.Float64()
	ttft, tpot := between(300, 4000), between(20, 100)
	fixed := []config.Override{
		{Key: "model.name", Value: pick("qwen3-8b", "llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b")},
		{Key: "hardware.gpu", Value: pick("H100 SXM", "H200 SXM", "A100 SXM 80GB", "B200 SXM")},
		{Key: "engine.tensor_parallel", Value: pick("1", "2")}, {Key: "knobs.max_num_seqs", Value: pick("64", "256", "512")},
		{Key: "knobs.max_num_batched_tokens", Value: pick("2048", "8192")}, {Key: "knobs.gpu_memory_utilization", Value: "0.9"},
		{Key: "demand.rate", Value: "100"},
	}
	lengths := func(median, sigma, by float64) string {
		return fmt.Sprintf(`{ dist = "lognormal", median = %g, sigma = %.2f, min = %g, max = %g }`, median*by, sigma, max(math.Floor(median/20), 1)*by, median*6*by)
	}
	return func(limits, prompts, answers float64) []config.Override {
		return append(fixed[:len(fixed):len(fixed)],
			config.Override{Key: "slo.ttft.p99", Value: fmt.Sprintf("%.1fms", ttft*limits)}, config.Override{Key: "slo." + pace + ".p99", Value: fmt.Sprintf("%.1fms", tpot*limits)},
			config.Override{Key: "workload.prompt", Value: lengths(prompt, promptSigma, prompts)},
			config.Override{Key: "workload.output", Value: lengths(output, outputSigma, answers)})
	}
}

// searched is the maximum rate of an instance by a search of its own.
func searched(t *testing.T, over []config.Override) float64 {
	cfg := must.Get(config.Load("", append(over, config.Override{Key: "search.precision", Value: "0.05"}), config.For("search")))
	ground := sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 2)
	s := must.Get(NewRateSearch(cfg, ground))
	answer := must.Get(sweep.Drive(t.Context(), nil, ground, s, nil, nil))
	return answer.Value.(*FoundRate).Result.Estimate.Value
}

// What short runs say of other limits and other lengths is what searches of their own
// find, within 8 %. More instances: go test -run Searches ./plan/decide -args
// -sensitivity-from 20 -sensitivity-cases 20.
func TestSensitivityAgainstSearches(t *testing.T) {
	if testing.Short() {
		t.Skip("searches ten instances")
	}
	for _, pace := range []string{"tpot", "itl"} {
		for seed := *firstCase; seed < *firstCase+*cases; seed++ {
			t.Run(fmt.Sprintf("%s %d", pace, seed), func(t *testing.T) { heldAgainstSearches(t, randomInstance(seed, pace)) })
		}
	}
}

func heldAgainstSearches(t *testing.T, instance func(limits, prompts, answers float64) []config.Override) {
	before := searched(t, instance(1, 1, 1))
	if before <= 0 {
		t.Skip("meets its limits at no rate")
	}
	p := estimated(t, instance(1, 1, 1))
	compared := 0
	for _, s := range scenarios() {
		want := searched(t, instance(s.limits, s.prompts, s.answers)) / before
		for _, c := range p.Sensitivity {
			if c.What != s.what {
				continue
			}
			compared++
			got := c.SafeRate / p.Offer.Rate.Safe
			t.Logf("%s: times %.3f, searched %.3f %s", s.what, got, want, c.Reason.Text)
			if far := want == 0 && got > 0.05 || want > 0.05 && math.Abs(got/want-1) > 0.08; far {
				t.Errorf("%s: times %.3f, searched %.3f", s.what, got, want)
			}
		}
	}
	if compared != len(scenarios()) {
		t.Errorf("%d of %d scenarios are there", compared, len(scenarios()))
	}
}

// Answers that double make a request as much longer as they are, not twice as long.
func TestRequestsGrowByWhatGrows(t *testing.T) {
	p := estimated(t, []config.Override{
		{Key: "model.name", Value: "qwen3-8b"}, {Key: "hardware.gpu", Value: "H100 SXM"}, {Key: "demand.rate", Value: "1"},
		{Key: "knobs.max_num_seqs", Value: "64"}, {Key: "knobs.max_num_batched_tokens", Value: "8192"}, {Key: "knobs.gpu_memory_utilization", Value: "0.9"},
		{Key: "workload.prompt", Value: `{ dist = "fixed", value = 25000 }`}, {Key: "workload.output", Value: `{ dist = "fixed", value = 50 }`},
		{Key: "slo.ttft.p90", Value: "10s"},
	})
	refused := map[string]note.Kind{}
	for _, c := range p.Sensitivity {
		refused[c.What] = c.Reason.Note.Kind
	}
	if refused["answers twice as long"] != "" || refused["prompts twice as long"] != note.BeyondModel {
		t.Errorf("answers: %q, prompts: %q, want none and %q", refused["answers twice as long"], refused["prompts twice as long"], note.BeyondModel)
	}
}

// What is listed is crossed: sets that the race dropped early have about the rates of searches
// of their own.
func TestCrossedSets(t *testing.T) {
	set := func(seqs string) []config.Override {
		return []config.Override{
			{Key: "model.name", Value: "llama-3.1-8b"}, {Key: "hardware.gpu", Value: "L40S"}, {Key: "demand.rate", Value: "10"},
			{Key: "knobs.max_num_seqs", Value: seqs}, {Key: "knobs.max_num_batched_tokens", Value: "2048"}, {Key: "knobs.gpu_memory_utilization", Value: "0.9"},
			{Key: "workload.prompt", Value: `{ dist = "fixed", value = 200 }`}, {Key: "workload.output", Value: `{ dist = "fixed", value = 50 }`},
			{Key: "slo.ttft.p90", Value: "500ms"}, {Key: "slo.tpot.p90", Value: "50ms"},
		}
	}
	p := estimated(t, set("[2, 8, 128]"))
	dropped := slices.DeleteFunc(slices.Clone(p.Evidence.Crossed), func(s effects.Setting) bool { return s.Knobs.MaxNumSeqs >= 128 })
	if len(dropped) != 2 || len(p.Evidence.Crossed) == 2 {
		t.Fatalf("crossed: %+v, want two sets and a search", p.Evidence.Crossed)
	}
	for _, s := range dropped {
		if want := searched(t, set(fmt.Sprint(s.Knobs.MaxNumSeqs))); math.Abs(s.Rate/want-1) > 0.08 {
			t.Errorf("max_num_seqs %d: %.3g, searched %.3g", s.Knobs.MaxNumSeqs, s.Rate, want)
		}
	}
}
