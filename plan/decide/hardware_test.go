package decide

import (
	"fmt"
	"strings"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/model"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/measure"
)

// undoubted is the simulated engine of a configuration, whose constants are taken as known: nothing is run for the
// doubt of them.
func undoubted(cfg *config.Config) sweep.Ground {
	known := func(model.Deployment, model.Spread) model.Spread { return model.Spread{} }
	return sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version, Known: known}, 2)
}

// estimated is the plan by the simulated engine for a configuration of keys and values alone, its constants taken as known.
func estimated(t *testing.T, pairs ...string) *Planned {
	t.Helper()
	cfg := configtest.Load("estimate", pairs...)
	ground := undoubted(cfg)
	d := must.Get(New(cfg, ground))
	answer := must.Get(sweep.Drive(t.Context(), nil, ground, d, nil, nil))
	made, ok := answer.Value.(*Planned)
	if !ok {
		t.Fatalf("%+v", answer)
	}
	return made
}

// instances estimates what one instance carries for both GPUs and all degrees of
// parallelism, keyed "H100 SXM/4", and why the rest does not run.
func instances(t *testing.T, name, weights string) (carries map[string]plan.Offer, rejected []measure.Rejection) {
	t.Helper()
	made := estimated(t,
		"model.name", name, "model.weights", weights, "hardware.gpu", `["H100 SXM", "H200 SXM"]`, "engine.tensor_parallel", "[1, 2, 4, 8]",
		"knobs.max_num_seqs", "512", "knobs.max_num_batched_tokens", "8192", "knobs.gpu_memory_utilization", "0.9",
		"workload.prompt", `{ dist = "uniform", min = 200, max = 600 }`, "workload.output", `{ dist = "uniform", min = 20, max = 60 }`,
		"demand.rate", "100", "slo.ttft.p90", "500ms", "slo.tpot.p90", "50ms")
	carries = map[string]plan.Offer{}
	add := func(o plan.Offer) { carries[fmt.Sprintf("%s/%d", o.GPU, o.GPUs)] = o }
	add(made.Offer)
	for _, a := range made.Alternatives {
		add(a.Offer)
	}
	return carries, made.Rejected
}

// More bandwidth and memory (H200 against H100), fewer bytes (fp8 against bf16)
// and more GPUs never lower what an instance carries beyond the intervals, on
// common seeds; where more GPUs do, communication is named. What does not fit
// says so.
func TestMoreHardwareIsNotSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 13 instances")
	}
	const name = "llama-3.1-70b" // of which not every instance holds the weights
	byWeights := map[string]map[string]plan.Offer{}
	for _, weights := range []string{"bf16", "fp8"} {
		carries, rejected := instances(t, name, weights)
		byWeights[weights] = carries
		for _, r := range rejected {
			key := fmt.Sprintf("%s/%d", r.Knobs.GPU, r.Knobs.TensorParallel)
			if _, ran := carries[key]; !ran && !strings.Contains(r.Reason.Text, "does not fit") {
				t.Errorf("%s %s on %s: rejected without the arithmetic: %s", name, weights, key, r.Reason.Text)
			}
		}
		for key, o := range carries { // served runs of dense models in bf16 are of the H100 alone
			if told := o.Warnings.Has(note.Uncalibrated); told != (weights == "bf16" && o.GPU == "H200 SXM") {
				t.Errorf("%s on %s: that it is outside of what was calibrated on is told: %v", weights, key, told)
			}
		}
		for _, tp := range []string{"1", "2", "4", "8"} {
			notSlower(t, name+" "+weights, carries, "H100 SXM/"+tp, "H200 SXM/"+tp)
		}
		for _, gpu := range []string{"H100 SXM/", "H200 SXM/"} {
			moreGPUs(t, name+" "+weights, carries, gpu+"1", gpu+"2")
			moreGPUs(t, name+" "+weights, carries, gpu+"2", gpu+"4")
			moreGPUs(t, name+" "+weights, carries, gpu+"4", gpu+"8")
		}
	}
	for key, wide := range byWeights["bf16"] {
		narrow, ok := byWeights["fp8"][key]
		if !ok || narrow.Rate.High < wide.Rate.Low {
			t.Errorf("%s on %s: %v in fp8, %v in bf16", name, key, narrow.Rate, wide.Rate)
		}
	}
}

// notSlower checks that the better of two instances carries no less.
func notSlower(t *testing.T, what string, carries map[string]plan.Offer, worse, better string) {
	t.Helper()
	a, ran := carries[worse]
	b, runs := carries[better]
	if ran && (!runs || b.Rate.High < a.Rate.Low) {
		t.Errorf("%s: %s carries %v, %s %v", what, worse, a.Rate, better, b.Rate)
	}
}

// moreGPUs does the same for more GPUs, which may be slower if communication is
// named as the reason.
func moreGPUs(t *testing.T, what string, carries map[string]plan.Offer, fewer, more string) {
	t.Helper()
	a, ran := carries[fewer]
	b := carries[more]
	if !ran || b.Rate.High >= a.Rate.Low {
		return
	}
	if !strings.Contains(b.Warnings.String(), "communication") {
		t.Errorf("%s: %s carries %v, %s %v, and nothing says why", what, fewer, a.Rate, more, b.Rate)
	}
}
