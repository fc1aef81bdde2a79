package calibrate

import (
	"fmt"
	"math"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// means simulates some schedules and returns the mean times to first token and to the
// end, seconds.
func means(dep model.Deployment, l model.EngineArgs, rate float64, longer int) (ttft, e2e float64) {
	const schedules = 4
	for seed := range uint64(schedules) {
		e := engine(dep, model.ConstantsFor(dep.Hardware, l), l)
		records := e.Run(sim.Load{Requests: schedule(rate, longer, seed)}).Records
		all := measure.Trial{}
		ttft += mean(latencies(&all, records, measure.TTFT)) / schedules
		e2e += mean(latencies(&all, records, measure.E2E)) / schedules
	}
	return ttft, e2e
}

// A scheduler's choices are not monotone request by request: a step that ends a little
// later may serve one more of them. Means may be better by this much for that reason.
const anomaly = 0.004

// schedule draws requests with prompts longer by some tokens: the same otherwise.
func schedule(rate float64, longer int, seed uint64) []workload.Request {
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Lognormal, Median: 700, Sigma: 0.7, Min: 50, Max: 4000},
		Output: workload.Lengths{Dist: workload.Lognormal, Median: 150, Sigma: 0.6, Min: 10, Max: 800},
	}}}
	requests := w.Schedule(rate, 60*time.Second, seed)
	for i := range requests {
		requests[i].Prompt += longer
	}
	return requests
}

// With the same schedules, no mean gets better with less bandwidth, a lower share of the
// memory or longer prompts, on any kind of deployment, at a light load and at a heavy
// one.
func TestMeansAreMonotone(t *testing.T) {
	for _, d := range []struct {
		name, gpu string
		tp        int
		format    model.WeightFormat
		rates     [2]float64
	}{
		{"llama-3.1-8b", "H100 SXM", 1, model.BF16, [2]float64{2, 25}},
		{"llama-3.1-8b", "L40S", 1, model.FP8, [2]float64{1, 5}},
		{"gpt-oss-120b", "H100 SXM", 2, model.MXFP4, [2]float64{2, 15}},
		{"deepseek-v2-lite", "A100 SXM 80GB", 1, model.BF16, [2]float64{2, 10}},
	} {
		dep := deployed(d.name, d.gpu, d.tp, d.format)
		limits := model.EngineArgs{EngineVersion: "0.20.0", MaxModelLen: 8192, Utilization: 0.92}
		for _, rate := range d.rates {
			name := fmt.Sprintf("%s on %s at %g/s", d.name, d.gpu, rate)
			notBetter(t, name+", bandwidth", []float64{1, 0.97, 0.9, 0.7, 0.5}, func(x float64) (float64, float64) {
				slower := dep
				slower.Hardware.Bandwidth *= x
				return means(slower, limits, rate, 0)
			})
			notBetter(t, name+", memory share", []float64{0.95, 0.92, 0.88, 0.85}, func(x float64) (float64, float64) {
				less := limits
				less.Utilization = x
				return means(dep, less, rate, 0)
			})
			notBetter(t, name+", longer prompts", []float64{0, 1, 20, 100, 400, 1500}, func(x float64) (float64, float64) {
				return means(dep, limits, rate, int(x))
			})
		}
	}
}

// notBetter checks that neither mean falls from one setting to the next, worse one.
func notBetter(t *testing.T, what string, settings []float64, run func(float64) (ttft, e2e float64)) {
	t.Helper()
	worstTTFT, worstE2E := math.Inf(-1), math.Inf(-1)
	for _, x := range settings {
		ttft, e2e := run(x)
		if ttft < worstTTFT*(1-anomaly) || e2e < worstE2E*(1-anomaly) {
			t.Errorf("%s: at %g TTFT %.5g s and E2E %.5g s, better than %.5g and %.5g before", what, x, ttft, e2e, worstTTFT, worstE2E)
		}
		worstTTFT, worstE2E = max(worstTTFT, ttft), max(worstE2E, e2e)
	}
}

// No step is faster with less bandwidth, with one more token of context, or with one
// more token in a chunk.
func TestStepsAreMonotone(t *testing.T) {
	for _, name := range []string{"llama-3.1-8b", "gpt-oss-120b", "qwen3-30b-a3b", "deepseek-v2-lite"} {
		dep := deployed(name, "H100 SXM", 2, model.BF16)
		c := model.ConstantsFor(dep.Hardware, model.EngineArgs{EngineVersion: "0.20.0"})
		slow := dep
		slow.Hardware.Bandwidth *= 0.8
		fast := must.Get(model.NewRoofline(dep, c, model.EngineArgs{EngineVersion: "0.20.0"}))
		slower := must.Get(model.NewRoofline(slow, c, model.EngineArgs{EngineVersion: "0.20.0"}))
		for _, decodes := range []int{0, 1, 7, 64, 300} {
			before := 0.0
			for _, chunk := range []int{1, 2, 3, 8, 9, 100, 200, 201, 500, 513, 2000, 8000} {
				b := model.Batch{Decodes: decodes, Context: 900 * decodes, Longest: 1500, Windowed: 100 * decodes, Chunks: []model.Chunk{{Tokens: chunk, Context: 64}}, Sampled: decodes + 1}
				step := fast.Step(b)
				at := step.Total
				if at < before {
					t.Errorf("%s, %d decodes: a chunk of %d takes %g s, a shorter one %g", name, decodes, chunk, at, before)
				}
				before = at
				if step.Host > 0 { // it is the host's time, whatever the GPUs do
					continue
				}
				if s := slower.Step(b).Total; s <= at {
					t.Errorf("%s, %d decodes, chunk %d: %g s with less bandwidth, %g with more", name, decodes, chunk, s, at)
				}
				b.Context++
				if decodes > 0 && fast.Step(b).Total <= at {
					t.Errorf("%s, %d decodes, chunk %d: one more token of context costs nothing", name, decodes, chunk)
				}
			}
		}
	}
}
