package decide

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"planner/internal/evidence/configtest"
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
func randomInstance(seed uint64, pace string) func(limits, prompts, answers float64) []string {
	rng := rand.New(rand.NewPCG(seed, 77))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	between := func(low, high float64) float64 { return math.Round(low * math.Pow(high/low, rng.Float64())) }
	prompt, output := between(100, 2000), between(30, 600)
	promptSigma, outputSigma := 0.2+0.8*rng.Float64(), 0.2+0.8*rng.Float64()
	ttft, tpot := between(300, 4000), between(20, 100)
	fixed := []string{
		"model.name", pick("qwen3-8b", "llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b"),
		"hardware.gpu", pick("H100 SXM", "H200 SXM", "A100 SXM 80GB", "B200 SXM"),
		"engine.tensor_parallel", pick("1", "2"), "knobs.max_num_seqs", pick("64", "256", "512"),
		"knobs.max_num_batched_tokens", pick("2048", "8192"), "knobs.gpu_memory_utilization", "0.9",
		"demand.rate", "100",
	}
	lengths := func(median, sigma, by float64) string {
		return fmt.Sprintf(`{ dist = "lognormal", median = %g, sigma = %.2f, min = %g, max = %g }`, median*by, sigma, max(math.Floor(median/20), 1)*by, median*6*by)
	}
	return func(limits, prompts, answers float64) []string {
		return append(fixed[:len(fixed):len(fixed)],
			"slo.ttft.p99", fmt.Sprintf("%.1fms", ttft*limits), "slo."+pace+".p99", fmt.Sprintf("%.1fms", tpot*limits),
			"workload.prompt", lengths(prompt, promptSigma, prompts), "workload.output", lengths(output, outputSigma, answers))
	}
}

// searched is the maximum rate of an instance by a search of its own.
func searched(t *testing.T, pairs ...string) float64 {
	cfg := configtest.Load("search", append(pairs, "search.precision", "0.05")...)
	ground := undoubted(cfg)
	s := must.Get(NewRateSearch(cfg, ground))
	return must.Get(sweep.Drive(t.Context(), nil, ground, s, nil, nil)).Value.(*FoundRate).Result.Estimate.Value
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

func heldAgainstSearches(t *testing.T, instance func(limits, prompts, answers float64) []string) {
	before := searched(t, instance(1, 1, 1)...)
	if before <= 0 {
		t.Skip("meets its limits at no rate")
	}
	p := estimated(t, instance(1, 1, 1)...)
	compared := 0
	for _, s := range scenarios() {
		want := searched(t, instance(s.limits, s.prompts, s.answers)...) / before
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
	p := estimated(t,
		"model.name", "qwen3-8b", "hardware.gpu", "H100 SXM", "demand.rate", "1",
		"knobs.max_num_seqs", "64", "knobs.max_num_batched_tokens", "8192", "knobs.gpu_memory_utilization", "0.9",
		"workload.prompt", `{ dist = "fixed", value = 25000 }`, "workload.output", `{ dist = "fixed", value = 50 }`, "slo.ttft.p90", "10s")
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
	set := func(seqs string) []string {
		return []string{
			"model.name", "llama-3.1-8b", "hardware.gpu", "L40S", "demand.rate", "10",
			"knobs.max_num_seqs", seqs, "knobs.max_num_batched_tokens", "2048", "knobs.gpu_memory_utilization", "0.9",
			"workload.prompt", `{ dist = "fixed", value = 200 }`, "workload.output", `{ dist = "fixed", value = 50 }`,
			"slo.ttft.p90", "500ms", "slo.tpot.p90", "50ms",
		}
	}
	p := estimated(t, set("[2, 8, 128]")...)
	dropped := slices.DeleteFunc(slices.Clone(p.Evidence.Crossed), func(s effects.Setting) bool { return s.Knobs.MaxNumSeqs >= 128 })
	if len(dropped) != 2 || len(p.Evidence.Crossed) == 2 {
		t.Fatalf("crossed: %+v, want two sets and a search", p.Evidence.Crossed)
	}
	for _, s := range dropped {
		if want := searched(t, set(fmt.Sprint(s.Knobs.MaxNumSeqs))...); math.Abs(s.Rate/want-1) > 0.08 {
			t.Errorf("max_num_seqs %d: %.3g, searched %.3g", s.Knobs.MaxNumSeqs, s.Rate, want)
		}
	}
}

// TestLimitsMoveTheirWay: whatever short runs find, tighter limits raise no rate, and looser ones lower none.
func TestLimitsMoveTheirWay(t *testing.T) {
	for _, s := range scenarios() {
		for _, found := range []float64{-0.02, 0.02} {
			want := found
			if (s.limits-1)*found < 0 {
				want = 0
			}
			if got := s.bounded(found); got != want {
				t.Errorf("%s: %g becomes %g, want %g", s.what, found, got, want)
			}
		}
	}
}
