package diagnose_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/plan/diagnose"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// ailments make a healthy server one of which a single thing is wrong.
var ailments = []struct {
	name string
	make func(*virtual, *rand.Rand)
	want string
}{
	{"healthy", func(*virtual, *rand.Rand) {}, ""},
	{"healthy, its overload cut", func(v *virtual, _ *rand.Rand) { v.load.Shapes[0].Prompt.Median, v.cut = 30, true }, ""},
	{"slow links", func(v *virtual, rng *rand.Rand) {
		catalog := must.Get(model.NewCatalog())
		v.deployment.Arch, v.deployment.Hardware, v.deployment.TP = must.Get(catalog.Model("llama-3.1-70b")), must.Get(catalog.GPU("L40S")), 8
		v.load.Shapes[0].Prompt.Sigma, v.ttft, v.tpot = 0.8, 1.2, 0
	}, "prefill"},
	{"slow prefill", func(v *virtual, rng *rand.Rand) {
		by := 6 + 6*rng.Float64()
		v.load.Shapes[0].Prompt.Median *= 3
		v.load.Shapes[0].Prompt.Sigma = max(v.load.Shapes[0].Prompt.Sigma, 0.5)
		v.load.Shapes[0].Prompt.Max = 12000
		v.ail = func(c *model.Constants) {
			for _, f := range []model.WeightFormat{model.BF16, model.FP8} {
				c.Prefill[f] /= by
			}
			c.Attention.Prefill /= by
		}
	}, "prefill"},
	{"no bandwidth to spare", func(v *virtual, rng *rand.Rand) { v.tpot = 1.15 + 0.2*rng.Float64() }, "bandwidth"},
	{"slow steps", func(v *virtual, rng *rand.Rand) {
		more := (1.5 + 2*rng.Float64()) * 0.02
		v.ail = func(c *model.Constants) { c.Fixed.Step += more }
	}, "inefficiency"},
	{"few places", func(v *virtual, rng *rand.Rand) { v.knobs.MaxNumSeqs, v.ttft = 3+rng.IntN(6), 12 }, "queueing"},
	{"few places, and limits with room", func(v *virtual, rng *rand.Rand) { v.knobs.MaxNumSeqs = 2 + rng.IntN(3) }, "queueing"},
	{"some long prompts", someLong, "mixed_lengths"},
	{"some long prompts, of which no limit tells", func(v *virtual, rng *rand.Rand) {
		someLong(v, rng)
		v.lateness = 0.5
	}, ""},
	{"a limit that lone requests nearly take", func(v *virtual, rng *rand.Rand) {
		v.load.Shapes[0].Prompt = workload.Lengths{Dist: workload.Fixed, Value: 200 + rng.IntN(1000)}
		v.ttft = 1.1 + 0.2*rng.Float64()
	}, "tight_limit"},
	{"tight pace", func(v *virtual, rng *rand.Rand) { v.tpot = 1.8 + 0.4*rng.Float64() }, "batching"},
	{"cache off", func(v *virtual, rng *rand.Rand) {
		v.load.Shapes[0].Prefix = workload.Prefix{Groups: 4 + rng.IntN(8), Tokens: 1000 + rng.IntN(1000)}
		v.knobs.PrefixCaching = false
	}, "cache_misses"},
	{"conversations with the cache off", func(v *virtual, _ *rand.Rand) {
		v.load.Turns, v.load.Think = 5, time.Second
		v.knobs.PrefixCaching = false
	}, "cache_misses"},
	{"cache too small", func(v *virtual, rng *rand.Rand) {
		v.load.Shapes[0].Prefix = workload.Prefix{Groups: 400 + rng.IntN(200), Tokens: 1500 + rng.IntN(1000)}
		v.knobs.KVBlocks = 6000 + rng.IntN(4000)
	}, "cache_eviction"},
	{"slow host", func(v *virtual, rng *rand.Rand) {
		each := (2 + 3*rng.Float64()) * 1e-3
		v.ail = func(c *model.Constants) { c.Fixed.Request += each }
	}, "host"},
	{"few adapter slots", func(v *virtual, rng *rand.Rand) {
		v.lora, v.ttft = model.LoRA{Adapters: 8, Slots: 1 + rng.IntN(2), Rank: 16}, 12
	}, "queueing"},
	{"few places, and steps of fixed costs", func(v *virtual, rng *rand.Rand) {
		catalog := must.Get(model.NewCatalog())
		v.deployment.Arch, v.deployment.Hardware = must.Get(catalog.Model("granite-4.0-h-tiny")), must.Get(catalog.GPU("H100 SXM"))
		v.deployment.TP, v.deployment.Precision, v.knobs.TensorParallel = 1, model.Precision{Weights: model.BF16}, 1
		v.load.Shapes[0].Prompt.Median, v.load.Shapes[0].Output.Median = 150, 60
		v.knobs.MaxNumSeqs = 24 + rng.IntN(16)
	}, "queueing"},
}

// someLong adds a few very long prompts.
func someLong(v *virtual, rng *rand.Rand) {
	long := v.load.Shapes[0]
	long.Prompt = workload.Lengths{Dist: workload.Fixed, Value: 10000 + rng.IntN(4000)}
	long.Weight, long.Name, v.load.Shapes[0].Weight, v.load.Shapes[0].Name = 0.015+0.015*rng.Float64(), "long", 1, "short"
	v.load.Shapes = append(v.load.Shapes, long)
	v.ttft = 4
}

// nexts are how the advice on ailments begins.
var nexts = map[string]string{"few places": "a higher max_num_seqs", "few places, and limits with room": "a higher max_num_seqs", "few adapter slots": "a larger engine.lora.slots",
	"few places, and steps of fixed costs": "a higher max_num_seqs", "slow links": "less tensor_parallel", "slow prefill": "larger max_num_batched_tokens",
	"some long prompts": "a limit by length, or a pool of its own for the long prompts; long_prefill_token_threshold"}

// variants is how many servers of each kind are drawn, from which seed on.
var variants, from = flag.Int("variants", 1, "servers of each kind"), flag.Uint64("from", 1, "seed of the first")

// TestAilments: a server with one ailment is diagnosed with it and nothing else, a healthy
// one with nothing that is not nil, whatever the model, the GPUs, the traffic and the size of the ailment.
func TestAilments(t *testing.T) {
	for i, a := range ailments {
		for seed := *from; seed < *from+uint64(*variants); seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			v := drawn(rng)
			a.make(&v, rng)
			found := v.diagnosed(t)
			switch {
			case a.want == "" && found != nil && len(found) == 0, len(found) == 1 && found[0].Kind == a.want:
				if next := nexts[a.name]; next != "" && !strings.HasPrefix(found[0].Next, next) {
					t.Errorf("%s, seed %d: %+v", a.name, seed, found)
				}
				continue
			}
			t.Errorf("%s, seed %d, %s on %d x %s: %+v", a.name, seed, v.deployment.Arch.Name, v.deployment.TP, v.deployment.Hardware.Name, found)
		}
	}
}

// TestFasterThanHardware: tokens that come sooner than weights can be read are of another server.
func TestFasterThanHardware(t *testing.T) {
	bounds := model.Bounds{WeightSeconds: 0.018, StreamTokensPerS: 55}
	for tpot, want := range map[time.Duration]bool{5 * time.Millisecond: true, 22 * time.Millisecond: false} {
		m := measure.Measurement{Trial: measure.Trial{Rate: 5}, Valid: true, Tally: measure.Tally{Requests: 256}, Throughput: measure.Throughput{Achieved: 5}}
		m.TPOT.P50 = tpot
		found := diagnose.Of([]measure.Measurement{m}, &bounds, measure.SLO{})
		if got := len(found) == 1 && found[0].Kind == "faster_than_hardware"; got != want {
			t.Errorf("%v: %+v", tpot, found)
		}
	}
}

// Whether requests are together tells only who knows how long they take, and a tenth of the load may be many of them.
func TestTightOnlyOfLoneRequests(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}}}
	for e2e, want := range map[time.Duration]bool{-1: false, 50 * time.Millisecond: true, 10 * time.Second: false} {
		points := make([]measure.Measurement, 2)
		for i, rate := range []float64{12, 150} {
			m := &points[i]
			*m = measure.Measurement{Trial: measure.Trial{Rate: rate}, Valid: true, Tally: measure.Tally{Requests: 1000}, Throughput: measure.Throughput{Achieved: rate}}
			m.TTFT.P50, m.TTFT.P99, m.E2E.Mean = 200*time.Millisecond, 480*time.Millisecond, e2e
		}
		found := diagnose.Of(points, nil, slo)
		if got := slices.ContainsFunc(found, func(f diagnose.Finding) bool { return f.Kind == "tight_limit" }); got != want {
			t.Errorf("mean E2E %v: %+v", e2e, found)
		}
	}
}

// A limit of the configuration holds for trials that have none of their own, that of a class not for all requests.
func TestLimitsOfImportedTrials(t *testing.T) {
	limit := measure.Bound{Metric: measure.TPOT, Quantile: 0.99, Limit: 30 * time.Millisecond}
	ofClass := limit
	ofClass.Class = "rag"
	bounds := model.Bounds{WeightSeconds: 0.018, StreamTokensPerS: 55, IdleTPOT: 0.020}
	for name, c := range map[string]struct {
		own, configured measure.SLO
		said            string
	}{
		"of the configuration": {measure.SLO{}, measure.SLO{Bounds: []measure.Bound{limit}}, "83 % of the limit of 30 ms"},
		"of the trial":         {measure.SLO{Bounds: []measure.Bound{limit}}, measure.SLO{}, "83 % of the limit of 30 ms"},
		"far beyond":           {measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Limit: time.Millisecond}}}, measure.SLO{}, "25.0 times the limit of 1 ms"},
		"of a class":           {measure.SLO{}, measure.SLO{Bounds: []measure.Bound{ofClass}}, ""},
		"none":                 {measure.SLO{}, measure.SLO{}, ""},
	} {
		m := measure.Measurement{Trial: measure.Trial{Rate: 1, Objective: c.own}, Valid: true, Tally: measure.Tally{Requests: 256}, Throughput: measure.Throughput{Achieved: 1}}
		m.TPOT.P50, m.E2E.Mean = 25*time.Millisecond, time.Second
		if found := diagnose.Of([]measure.Measurement{m}, &bounds, c.configured); len(found) != min(len(c.said), 1) || len(found) > 0 && !slices.Contains(found[0].Evidence, c.said) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLinksAreNotTheHost: of a server that completes a tenth of what data sheets allow the time of its
// steps, where it is known, says whether the host takes it or what the hardware has to do.
func TestLinksAreNotTheHost(t *testing.T) {
	bounds := model.Bounds{PromptsPerS: 44.7, OutputTokensPerS: 33256}
	for name, c := range map[string]struct {
		time *measure.TimeShares
		host bool
	}{
		"unknown": {nil, true},
		"links":   {&measure.TimeShares{Compute: 0.39, Communication: 0.5, Fixed: 0.04}, false},
		"host":    {&measure.TimeShares{Compute: 0.2, Communication: 0.1, Fixed: 0.4, Idle: 0.3}, true},
	} {
		m := measure.Measurement{Trial: measure.Trial{Rate: 5.7}, Valid: true, Overloaded: true, Tally: measure.Tally{Requests: 256},
			Throughput: measure.Throughput{Achieved: 3.7, Sent: 5.9, OutputTokens: 420}, Server: measure.Server{Time: c.time}}
		found := diagnose.Of([]measure.Measurement{m}, &bounds, measure.SLO{})
		if got := len(found) == 1 && found[0].Kind == "host"; got != c.host {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestFailing: time-outs beside quick answers are no matter of a queue; time-outs beside answers that waited as long are.
func TestFailing(t *testing.T) {
	for e2e, want := range map[time.Duration]bool{500 * time.Millisecond: true, 8 * time.Second: false} {
		m := measure.Measurement{Trial: measure.Trial{Rate: 20, Workload: &workload.Workload{Timeout: 10 * time.Second}}, Valid: true}
		m.Requests, m.Failed, m.Failures = 1000, 600, map[string]int{measure.Timeout.String(): 600}
		m.E2E.P50, m.E2E.N = e2e, 400
		found := diagnose.Of([]measure.Measurement{m}, nil, measure.SLO{})
		if got := len(found) == 1 && found[0].Kind == "failing"; got != want {
			t.Errorf("answers of %v: %v, want it found: %t", e2e, found, want)
		}
	}
}

// TestBatchingOfAClass: the limit to loosen is the one that is exceeded, also where a class has it.
func TestBatchingOfAClass(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.9, Limit: 15 * time.Millisecond, Class: "chat"}}}
	trial := func(rate float64, tpot time.Duration) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Rate: rate, Objective: slo}, Valid: true, Tally: measure.Tally{Requests: 256},
			Throughput: measure.Throughput{Achieved: rate, OutputTokens: 100 * rate}}
		m.TPOT.P50, m.E2E.Mean = tpot, time.Second
		var chat measure.ClassSummary
		chat.TPOT.P90 = tpot
		m.Classes = map[string]measure.ClassSummary{"chat": chat}
		return m
	}
	found := diagnose.Of([]measure.Measurement{trial(10, 10*time.Millisecond), trial(20, 30*time.Millisecond)}, nil, slo)
	if len(found) != 1 || found[0].Kind != "batching" || !strings.HasPrefix(found[0].Next, "a looser TPOT limit") {
		t.Errorf("%+v", found)
	}
}

// TestUnknownThroughput: where results do not tell the tokens, nothing is found in them.
func TestUnknownThroughput(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.5, Limit: 25 * time.Millisecond}}}
	trial := func(rate, achieved float64, tpot time.Duration) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Rate: rate, Objective: slo}, Valid: true, Tally: measure.Tally{Requests: 256},
			Throughput: measure.Throughput{Achieved: achieved, OutputTokens: math.NaN()}, Overloaded: achieved < rate}
		m.TPOT.P50 = tpot
		return m
	}
	trials := []measure.Measurement{trial(5, 5, 10*time.Millisecond), trial(20, 20, 30*time.Millisecond)}
	if found := diagnose.Of(trials, nil, slo); len(found) > 0 {
		t.Errorf("of the pace of tokens: %+v", found)
	}
	if found := diagnose.Of([]measure.Measurement{trial(20, 10, 20*time.Millisecond)}, &model.Bounds{PromptsPerS: 100, OutputTokensPerS: 20000}, slo); len(found) > 0 {
		t.Errorf("of the host: %+v", found)
	}
}

// TestAdapterSlotsOfReplicas: each attention replica has the slots for its part of the requests.
func TestAdapterSlotsOfReplicas(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}}
	trial := func(rate float64) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Rate: rate, Objective: slo}, Valid: true, Tally: measure.Tally{Requests: 256},
			Throughput: measure.Throughput{Achieved: rate}}
		m.TTFT.P50, m.TTFT.P99, m.E2E.Mean = 100*time.Millisecond, 2*time.Second, time.Second
		return m
	}
	for _, c := range []struct {
		flight   float64
		replicas int
		lora     model.LoRA
		want     string
	}{
		{8, 0, model.LoRA{Adapters: 32, Slots: 8}, "8 requests were in flight in the mean and choose among 32 adapters, of which 8 fit at once"},
		{8, 4, model.LoRA{Adapters: 32, Slots: 8}, "neither max_num_seqs nor the KV cache explains it"},
		{480, 4, model.LoRA{Adapters: 200, Slots: 16}, "480 requests were in flight in the mean and choose among 200 adapters, of which 16 fit at once on each of 4 replicas"},
	} {
		trials := []measure.Measurement{trial(c.flight), trial(2 * c.flight)}
		found := diagnose.Of(trials, &model.Bounds{LoRA: c.lora, Replicas: c.replicas}, slo)
		if len(found) != 1 || found[0].Kind != "queueing" || found[0].Evidence[1] != c.want {
			t.Errorf("%g in flight on %d replicas: %+v", c.flight, c.replicas, found)
		}
	}
}
