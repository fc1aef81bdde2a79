package diagnose_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/plan/diagnose"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// virtual is a server in virtual time: a deployment as its data sheets have it, and what
// is wrong with it.
type virtual struct {
	deployment model.Deployment
	knobs      measure.Knobs
	lora       model.LoRA
	load       workload.Workload
	seed       uint64
	// ail changes the constants of the server; what is expected of it stays as it was.
	ail func(*model.Constants)
	// ttft and tpot are the limits at p99, 0 for none, as multiples of the idle latency; that
	// on ttft is at lateness instead, where that is given.
	ttft, tpot, lateness float64
	// cut says that of an overload, which was ended early, short answers alone were seen.
	cut bool
}

// drawn is a healthy server: a model on GPUs that hold it, chat-like traffic and limits
// with room.
func drawn(rng *rand.Rand) virtual {
	catalog := must.Get(model.NewCatalog())
	of := []struct {
		model, gpu string
		tp         int
		weights    model.WeightFormat
	}{
		{"llama-3.1-8b", "L40S", 1, model.FP8}, {"llama-3.1-8b", "A100 SXM 80GB", 1, model.BF16}, {"llama-3.1-70b", "H100 SXM", 4, model.FP8},
		{"llama-3.1-70b", "H100 SXM", 8, model.BF16}, {"llama-3.1-70b", "H200 SXM", 2, model.FP8}, {"llama-3.1-8b", "H100 SXM", 1, model.BF16},
	}
	pick := of[rng.IntN(len(of))]
	arch := must.Get(catalog.Model(pick.model))
	hardware := must.Get(catalog.GPU(pick.gpu))
	lengths := func(low, high float64) workload.Lengths {
		median := low + (high-low)*rng.Float64()
		return workload.Lengths{Dist: workload.Lognormal, Median: median, Sigma: 0.3 + 0.4*rng.Float64(), Min: 8, Max: int(8 * median)}
	}
	return virtual{
		deployment: model.Deployment{Arch: arch, Hardware: hardware, Precision: model.Precision{Weights: pick.weights}, TP: pick.tp},
		knobs:      measure.Knobs{TensorParallel: pick.tp, MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, GPUMemoryUtilization: 0.9, PrefixCaching: true, MaxModelLen: 16384},
		load: workload.Workload{Class: "chat", Shapes: []workload.Shape{{Prompt: lengths(200, 1200), Output: lengths(60, 300)}},
			Arrivals: workload.Poisson, Seed: rng.Uint64()},
		seed: rng.Uint64(), ttft: 60, tpot: 40,
	}
}

// diagnosed runs the trials of a server, from little load to more than it carries, and
// says what is found, with the trials.
func (v virtual) diagnosed(t testing.TB) []diagnose.Finding {
	t.Helper()
	dep := v.deployment
	nominal := &sweep.Simulated{Deployment: func(measure.Knobs) model.Deployment { return dep }, Settings: model.EngineFeatures{LoRA: v.lora}}
	roofline := must.Get(nominal.Roofline(v.knobs))
	memory := must.Get(nominal.Fit(v.knobs))
	bounds := roofline.Bounds(sweep.MeanRequest(&v.load), memory)
	real := &sweep.Simulated{Deployment: nominal.Deployment, Settings: nominal.Settings, Constants: func(_ model.Deployment, c model.Constants) model.Constants {
		if v.ail != nil {
			v.ail(&c)
		}
		return c
	}}
	slo := measure.SLO{Errors: -1}
	for metric, limit := range map[measure.Metric]float64{measure.TTFT: v.ttft * bounds.IdleTTFT, measure.TPOT: v.tpot * bounds.IdleTPOT} {
		if limit > 0 {
			quantile := 0.99
			if metric == measure.TTFT && v.lateness > 0 {
				quantile = v.lateness
			}
			slo.Bounds = append(slo.Bounds, measure.Bound{Metric: metric, Quantile: quantile, Limit: time.Duration(limit * float64(time.Second))})
		}
	}
	run := func(trial measure.Trial) measure.Measurement {
		trial.Knobs, trial.Workload, trial.Objective, trial.Whole = v.knobs, &v.load, slo, true
		trial.Seed = v.seed + uint64(trial.Number)
		return measure.Reduce(trial, must.Get(real.Observe(trial)))
	}
	// As many at once as there may be: what it carries at most.
	most := run(measure.Trial{Number: 1, Concurrency: 300, Requests: 1500}).Achieved
	var trials []measure.Measurement
	for i, share := range []float64{0.03, 0.25, 0.5, 0.7, 0.9, 1.4} {
		window := time.Duration(1400 / (share * most) * float64(time.Second))
		trials = append(trials, run(measure.Trial{Number: i + 2, Rate: share * most, Warmup: window / 4, Window: window}))
	}
	if last := &trials[len(trials)-1]; v.cut {
		last.OutputTokens, last.Valid = last.OutputTokens/20, true
	}
	return diagnose.Of(trials, &bounds, measure.SLO{})
}
