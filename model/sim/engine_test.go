package sim

import (
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const gib = 1 << 30

// h100 is an H100 SXM, llama8B Llama-3.1-8B; see the embedded catalog for sources.
func h100() model.Hardware {
	return model.Hardware{Name: "H100 SXM", Generation: model.GenerationHopper, Memory: 80 * gib, Bandwidth: 3350e9,
		Flops: model.Flops{BF16: 989e12, FP8: 1979e12, INT8: 1979e12},
		Link:  model.Link{Kind: model.LinkNVLink, Rate: 450e9}, PCIe: 64e9}
}

func llama8B() model.Arch {
	return model.Arch{Name: "llama-3.1-8b", Layers: 32, Hidden: 4096, Intermediate: 14336, Vocab: 128256, MaxPosition: 131072,
		Attention: model.Attention{Heads: 32, KVShape: model.KVShape{KVHeads: 8, HeadDim: 128}}}
}

// modelled returns an engine's timer and configuration for a deployment.
func modelled(t testing.TB, dep model.Deployment, l model.EngineArgs, prefixCaching bool) (*model.Roofline, Config) {
	t.Helper()
	r := must.Get(model.NewRoofline(dep, model.ConstantsFor(dep.Hardware, l), l))
	m := must.Get(model.MemoryPlan(dep, l))
	c := must.Get(Configure(r, m, prefixCaching))
	return r, c
}

// Layers with a state had no prefix caching at first, and what vLLM demands of the length of chunks with it is demanded.
func TestPrefixesOfStates(t *testing.T) {
	catalog := must.Get(model.NewCatalog())
	for _, c := range []struct {
		model, version string
		batch          int
		whole          bool
		want           bool
		refused        string
	}{
		{"Nemotron-H-56B", "0.11.0", 8192, false, false, ""}, {"Nemotron-H-56B", "0.12.0", 8192, false, true, ""},
		{"Qwen3-Next-80B-A3B", "0.14.1", 8192, false, false, ""}, {"Qwen3-Next-80B-A3B", "0.15.0", 8192, false, true, ""}, {"Qwen3-Next-80B-A3B", "", 8192, false, true, ""},
		{"Llama-3.1-8B", "0.10.0", 8192, false, true, ""}, {"Llama-3.1-8B", "", 8192, true, true, ""},
		{"Qwen3-Next-80B-A3B", "", 8192, true, false, "only with chunked prefill"}, {"Nemotron-H-56B", "", 8192, true, false, "only with chunked prefill"},
		{"Qwen3-Next-80B-A3B", "0.14.1", 8192, true, false, ""},
		{"Qwen3-Next-80B-A3B", "0.26.0", 256, false, false, "must hold a block of"}, {"Qwen3-Next-80B-A3B", "0.27.0", 256, false, true, ""},
		{"Llama-3.1-8B", "0.26.0", 256, false, true, ""},
	} {
		dep := model.Deployment{Arch: must.Get(catalog.Model(c.model)), Hardware: must.Get(catalog.GPU("H200 SXM")), TP: 4}
		args := model.EngineArgs{EngineVersion: c.version, MaxModelLen: 4096, MaxNumSeqs: 64, MaxNumBatchedTokens: c.batch}
		args.WholePrefill = c.whole
		r := must.Get(model.NewRoofline(dep, model.ConstantsFor(dep.Hardware, args), args))
		config, err := Configure(r, must.Get(model.MemoryPlan(dep, args)), true)
		if config.PrefixCaching != c.want || (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%+v: prefix caching %v, %v", c, config.PrefixCaching, err)
		}
	}
}

func normal(mean, stddev float64) workload.Lengths {
	return workload.Lengths{Dist: workload.Normal, Mean: mean, StdDev: stddev, Min: 1}
}

// result is what a run brought, with the counts behind its observation.
type result struct {
	measure.Observation
	stats stats
}

func simulate(e *Engine, load Load) *result {
	r := e.run(load)
	return &result{r.observation(), r.stats}
}

// stepByStep takes every step of an engine on its own instead of many at once.
func stepByStep(e *Engine) *Engine {
	for _, c := range e.cores {
		for _, s := range c.replicas {
			s.steady.off = true
		}
	}
	return e
}

// benchmarkLoad is 10,000 requests at 20/s of 512 prompt and 200 output tokens
// (normal, standard deviations 256 and 100, clipped at 1).
func benchmarkLoad(t testing.TB) []workload.Request {
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(512, 256), Output: normal(200, 100)}}}
	requests := w.Schedule(20, 520*time.Second, 1)
	if len(requests) < 10000 {
		t.Fatalf("only %d requests", len(requests))
	}
	return requests[:10000]
}

// BenchmarkRun runs the load on Llama-3.1-8B and one H100.
func BenchmarkRun(b *testing.B) {
	timer, config := modelled(b, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	requests := benchmarkLoad(b)
	for _, c := range []struct {
		name string
		step bool
		gaps bool
	}{{"fastforward", false, false}, {"gaps", false, true}, {"step", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				e := NewEngine(timer, config)
				if c.step {
					stepByStep(e)
				}
				r := e.run(Load{Requests: requests, Gaps: c.gaps, GapsTo: time.Hour})
				if r.records[9999].Outcome != measure.OK {
					b.Fatal("the last request did not end")
				}
				steps = r.stats.steps
			}
			b.ReportMetric(float64(steps), "steps/op")
		})
	}
}
