package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// scenario is a random engine with a random load.
type scenario struct {
	timer  Timer
	config Config
	load   Load
	warm   bool // run twice
}

// windowed is a small model of which every other layer looks back 128 tokens.
func windowed() model.Arch {
	a := llama8B()
	a.Name = "windowed"
	a.Attention.Window, a.Attention.WindowLayers = 128, 16
	return a
}

// sparse is a small model of which each query attends to 256 tokens.
func sparse() model.Arch {
	a := llama8B()
	a.Name = "sparse"
	a.Attention.Sparse = model.Sparse{Keys: 256, Heads: 8, Dim: 64, Layers: 32}
	return a
}

// randomScenario draws pools that are tight or roomy, with and without prefix
// cache, asynchronous and not, with time limits, conversations, shared prefixes,
// closed loops, windows, sparse attention and replicas.
func randomScenario(t *testing.T, seed uint64) scenario {
	return randomAdapterScenario(t, seed, model.LoRA{})
}

// randomAdapterScenario draws one whose requests choose from adapters, if there are any.
func randomAdapterScenario(t *testing.T, seed uint64, lora model.LoRA) scenario {
	rng := rand.New(rand.NewPCG(seed, 2))
	dep := model.Deployment{Arch: llama8B(), Hardware: h100()}
	switch rng.IntN(6) {
	case 0:
		dep.Arch = windowed()
		dep.Arch.Attention.Chunked = rng.IntN(2) == 0
	case 1:
		dep.Arch = sparse()
	}
	version := []string{"0.11.0", "0.15.1", "0.20.2", "0.26.0", ""}[rng.IntN(5)]
	limits := model.EngineArgs{MaxModelLen: 4096, MaxNumSeqs: 4 << rng.IntN(5), EngineVersion: version, EngineFeatures: model.EngineFeatures{LoRA: lora}}
	limits.MaxNumBatchedTokens = max(limits.MaxNumSeqs, 128<<rng.IntN(6))
	limits.KVBlocks = 600 << rng.IntN(5)
	timer, config := modelled(t, dep, limits, rng.IntN(3) > 0)
	config.Rules.Async = rng.IntN(2) == 0
	if rng.IntN(4) == 0 {
		config.LongPrefill = 64
	}
	if rng.IntN(4) == 0 {
		config.Watermark = 0.05
	}
	if rng.IntN(3) == 0 {
		config.Replicas, config.LockStep = 2, rng.IntN(2) == 0
	}
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(400, 300), Output: normal(120, 100)}}, MaxLen: 4000}
	if rng.IntN(2) == 0 {
		w.Shapes[0].Prefix = workload.Prefix{Groups: 3, Tokens: 150}
	}
	if rng.IntN(3) == 0 {
		w.Turns, w.Think = 1+rng.IntN(3), 2*time.Second
	}
	load := Load{Gaps: true, GapsFrom: 2 * time.Second, GapsTo: 15 * time.Second}
	if rng.IntN(4) == 0 {
		load.Slots = 1 + rng.IntN(30)
		load.Requests = w.Slots(120, seed)
	} else {
		load.Requests = w.Schedule(1+rng.Float64()*60, 10*time.Second, seed)
	}
	if rng.IntN(3) == 0 {
		load.Timeout = time.Duration(1+rng.IntN(8)) * time.Second
	}
	return scenario{timer, config, load, rng.IntN(4) == 0}
}

func (s scenario) run(single bool) *result {
	e := NewEngine(s.timer, s.config)
	if single {
		stepByStep(e)
	}
	if s.warm {
		simulate(e, s.load)
	}
	return simulate(e, s.load)
}

// TestFastForwardEqualsStepByStep runs random scenarios with the shortcut and without:
// every record must be the same to the microsecond, and every count.
func TestFastForwardEqualsStepByStep(t *testing.T) {
	steps, preempted, failed, hits := 0, 0, 0, 0
	for seed := range uint64(200) {
		var lora model.LoRA
		if seed%4 == 1 {
			lora = model.LoRA{Adapters: 9, Slots: 1 + int(seed/4%5), Rank: 16}
		}
		s := randomAdapterScenario(t, seed, lora)
		fast, slow := s.run(false), s.run(true)
		if err := equalToMicrosecond(fast, slow); err != nil {
			t.Fatalf("seed %d (%+v, %d slots, time limit %v): %v", seed, s.config, s.load.Slots, s.load.Timeout, err)
		}
		steps += fast.stats.steps
		preempted += fast.stats.counts.Preemptions
		hits += fast.stats.counts.Hits
		for _, r := range fast.Records {
			if r.Outcome == measure.Timeout {
				failed++
			}
		}
	}
	if steps < 10000 || preempted < 100 || failed < 100 || hits < 10000 {
		t.Errorf("the scenarios are tame: %d steps, %d preemptions, %d timeouts, %d cached tokens", steps, preempted, failed, hits)
	}
}

// TestFastForwardOverLongRun: the sums do not drift apart over tens of thousands of
// steps.
func TestFastForwardOverLongRun(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	s := scenario{timer: timer, config: config, load: Load{Requests: benchmarkLoad(t), Gaps: true, GapsTo: time.Hour}}
	if err := equalToMicrosecond(s.run(false), s.run(true)); err != nil {
		t.Error(err)
	}
}

// TestFastForwardOfTextInTheMaking: a request that begins with what another one is just generating finds each block
// of it as soon as it is done, and is admitted in the step in which that makes it fit, whether the text has a name of
// its own or is known beforehand.
func TestFastForwardOfTextInTheMaking(t *testing.T) {
	hits := 0
	for _, async := range []bool{false, true} {
		for _, known := range []bool{false, true} {
			for i := range 160 {
				blocks, prompt := 28+i/16, 180+i%16
				first := workload.Request{Prompt: 64, Output: 300, Own: 1, Generated: 2}
				if known {
					first.Shared, first.Own, first.Generated = []workload.Segment{{Content: 1, Tokens: 64}, {Content: 2, Tokens: 300}}, 0, 0
				}
				second := workload.Request{ID: 2, Due: 505 * time.Millisecond, Prompt: 200, Output: 10, Shared: []workload.Segment{{Content: 1, Tokens: 64}, {Content: 2, Tokens: 130}}}
				config := plain(async, 8)
				config.Rules.FullSequenceGate, config.PrefixCaching, config.Blocks = true, true, blocks
				s := scenario{timer: steady{0.01, 0}, config: config, load: Load{Gaps: true, GapsTo: time.Hour, Requests: []workload.Request{first, {ID: 1, Prompt: prompt, Output: 150}, second}}}
				fast, slow := s.run(false), s.run(true)
				if err := equalToMicrosecond(fast, slow); err != nil {
					t.Errorf("asynchronous %v, text known %v, %d blocks: %v", async, known, blocks, err)
				}
				hits += fast.stats.counts.Hits
			}
		}
	}
	if hits == 0 {
		t.Error("nothing was found in the cache")
	}
}

// TestWorkOfStreaks: what steps move and compute adds up to the same, to rounding.
func TestWorkOfStreaks(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: windowed(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 4096}, false)
	s := scenario{timer: timer, config: config, load: Load{Requests: []workload.Request{{Prompt: 10, Output: 1001}, {ID: 1, Due: time.Second, Prompt: 100, Output: 32}}}}
	a, b := s.run(false).stats.work, s.run(true).stats.work
	if !near(a.WeightBytes, b.WeightBytes) || !near(a.KVBytes, b.KVBytes) || !near(a.Flops, b.Flops) {
		t.Errorf("%+v, step by step %+v", a, b)
	}
}

func near(a, b float64) bool { return a > 0 && math.Abs(a-b) <= 1e-9*b }

func equalToMicrosecond(a, b *result) error {
	near := func(x, y time.Duration) bool { return (x - y).Abs() <= time.Microsecond }
	for i := range a.Records {
		x, y := a.Records[i], b.Records[i]
		if !near(x.Due, y.Due) || !near(x.Sent, y.Sent) || !near(x.First, y.First) || !near(x.Last, y.Last) {
			return fmt.Errorf("request %d: times differ:\n%+v\n%+v", i, x, y)
		}
		y.Due, y.Sent, y.First, y.Last = x.Due, x.Sent, x.First, x.Last
		if x != y {
			return fmt.Errorf("request %d:\n%+v\n%+v", i, x, y)
		}
	}
	if !near(a.End, b.End) || a.Aborted.Text != b.Aborted.Text {
		return fmt.Errorf("end %v %q, %v %q", a.End, a.Aborted.Text, b.End, b.Aborted.Text)
	}
	x, y := a.stats, b.stats
	for _, p := range [][2]float64{{x.time.Total, y.time.Total}, {x.time.Fixed, y.time.Fixed}, {x.time.DecodeAttention, y.time.DecodeAttention}} {
		if d := p[0] - p[1]; d > 1e-6 || d < -1e-6 {
			return fmt.Errorf("statistics differ:\n%+v\n%+v", x, y)
		}
	}
	if x.steps != y.steps || x.counts != y.counts || x.peakKV != y.peakKV {
		return fmt.Errorf("statistics differ:\n%+v\n%+v", x, y)
	}
	return equalGaps(a, b)
}

// equalGaps compares inter-token histograms. A gap at the edge of a bucket may
// fall on either side, so counts may move by a bucket.
func equalGaps(a, b *result) error {
	if a.Gaps.TotalCount() != b.Gaps.TotalCount() {
		return fmt.Errorf("%d gaps and %d", a.Gaps.TotalCount(), b.Gaps.TotalCount())
	}
	for _, q := range []float64{50, 90, 99, 99.9, 100} {
		x, y := a.Gaps.ValueAtPercentile(q), b.Gaps.ValueAtPercentile(q)
		if d := x - y; d > 1+x/500 || d < -1-x/500 {
			return fmt.Errorf("p%v of gaps: %d and %d us", q, x, y)
		}
	}
	return nil
}

// TestDeterminism: one load on equal engines gives equal results, to the last bit.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(5) {
		s := randomScenario(t, seed)
		a, b := s.run(false), s.run(false)
		if !slices.Equal(a.Records, b.Records) || a.stats != b.stats {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}
