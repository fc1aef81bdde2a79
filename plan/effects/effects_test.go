package effects

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model/curve"
	"planner/sweep/measure"
)

// crossed are settings whose rates are products of known effects and noise.
func crossed(rng *rand.Rand, noise float64) []Setting {
	var out []Setting
	for i, seqs := range []int{64, 128, 256} {
		for j, tokens := range []int{2048, 8192} {
			for _, memory := range []float64{0.85, 0.95} {
				rate := 10 * math.Pow(0.7, float64(2-i)) * math.Pow(0.9, float64(1-j)) * math.Exp(noise*rng.NormFloat64())
				out = append(out, Setting{measure.Knobs{MaxNumSeqs: seqs, MaxNumBatchedTokens: tokens, GPUMemoryUtilization: memory, TensorParallel: 4}, rate})
			}
		}
	}
	return out
}

func TestKnownEffects(t *testing.T) {
	got := Of(crossed(rand.New(rand.NewPCG(1, 1)), 0))
	want := []Effect{{Knob: "max_num_seqs", Best: "256", Worst: "64", Cost: 0.51}, {Knob: "max_num_batched_tokens", Best: "8192", Worst: "2048", Cost: 0.1}, {Knob: "gpu_memory_utilization"}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, e := range got {
		if e.Knob != want[i].Knob || want[i].Best != "" && (e.Best != want[i].Best || e.Worst != want[i].Worst) || math.Abs(e.Cost-want[i].Cost) > 1e-9 {
			t.Errorf("%+v, want %+v", e, want[i])
		}
	}
	if Of(crossed(rand.New(rand.NewPCG(1, 1)), 0)[:3]) != nil {
		t.Error("three settings tell of three columns")
	}
}

// TestFewSettings: values of one knob, and two of two crossed, tell what they do.
func TestFewSettings(t *testing.T) {
	set := func(seqs, tokens int, memory, rate float64) Setting {
		return Setting{measure.Knobs{MaxNumSeqs: seqs, MaxNumBatchedTokens: tokens, GPUMemoryUtilization: memory}, rate}
	}
	one := []Setting{set(256, 8192, 0.9, 10), set(1024, 8192, 0.92, 9.9), set(128, 8192, 0.9, 8)}
	if got := Of(one); len(got) != 1 || got[0].Knob != "max_num_seqs" || got[0].Worst != "128" || math.Abs(got[0].Cost-0.2) > 1e-9 || !got[0].Shown() {
		t.Errorf("one knob: %+v", got)
	}
	two := []Setting{set(256, 8192, 0.9, 10), set(128, 8192, 0.9, 8), set(256, 2048, 0.9, 9), set(128, 2048, 0.9, 7.2)}
	if got := Of(two); len(got) != 2 || math.Abs(got[0].Cost-0.2) > 1e-9 || math.Abs(got[1].Cost-0.1) > 1e-9 {
		t.Errorf("two knobs: %+v", got)
	}
	if got := Of(two[:3]); got != nil {
		t.Errorf("without interactions: %+v", got)
	}
}

// TestIntervalsCover: under noise, and where sets are placed wrong by a share of their distance from
// the best, all of a value alike, the interval of a real effect holds it about as often as it says.
func TestIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const runs = 2000
	held := 0
	for range runs {
		sets, off := crossed(rng, 0.05), misplaced/1.645*rng.NormFloat64()
		for i := range sets {
			sets[i].Rate *= math.Pow(0.7, off*math.Log2(256/float64(sets[i].Knobs.MaxNumSeqs)))
		}
		for _, e := range Of(sets) {
			if e.Knob == "max_num_seqs" && e.Low <= 0.51 && e.High >= 0.51 {
				held++
			}
		}
	}
	if share := float64(held) / runs; share < 0.87 || share > 0.93 {
		t.Errorf("the 90 %% interval holds the effect in %.1f %%", 100*share)
	}
}

// TestRatesAreReadOffTheReference: a set that is slower by a factor everywhere carries
// less by that factor, whatever rate it was tried at.
func TestRatesAreReadOffTheReference(t *testing.T) {
	latency := func(rate, mu float64) time.Duration { return time.Duration(float64(time.Second) * 0.1 / (1 - rate/mu)) }
	measured := func(k measure.Knobs, rate, mu float64) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Knobs: k, Rate: rate}, Valid: true, Throughput: measure.Throughput{Achieved: rate}, Tally: measure.Tally{Requests: 2000}}
		m.TTFT = measure.Summary{P50: latency(rate, mu), P99: 4 * latency(rate, mu), N: 2000}
		return m
	}
	best, half := measure.Knobs{MaxNumSeqs: 256}, measure.Knobs{MaxNumSeqs: 64}
	var trials []measure.Measurement
	for _, rate := range []float64{1, 4, 8, 12, 15, 17, 18} {
		trials = append(trials, measured(best, rate, 20))
	}
	c := must.Get(curve.Fit(measure.TTFT, curve.FromMeasurements(trials, measure.TTFT), 1))
	for _, rate := range []float64{6, 8, 8.5} {
		got := Rates(append(trials, measured(half, rate, 10)), Setting{best, 16}, []*curve.Curve{c}, nil)
		if len(got) != 2 || math.Abs(got[1].Rate-8) > 0.3 {
			t.Errorf("tried at %v: %+v, want half of 16", rate, got)
		}
	}
	// A latency that is far from its limit does not limit a set for being higher than the reference's.
	limited := measured(half, 6, 10)
	limited.Trial.Objective.Bounds = []measure.Bound{{Metric: measure.TTFT, Quantile: 0.5, Limit: latency(18, 20)}}
	if got := Rates(append(trials, limited), Setting{best, 12}, []*curve.Curve{c}, nil); math.Abs(got[1].Rate-9) > 0.3 {
		t.Errorf("a latency that is not at its limit: %+v, want half of 18", got[1:])
	}
	// What waits for a place shows what the reference shows at its very end.
	if got := Rates(append(trials, measured(half, 6, 6.01)), Setting{best, 16}, []*curve.Curve{c}, nil); len(got) != 1 {
		t.Errorf("a queue of its own: %+v", got[1:])
	}
	// One that misses a limit on gaps between tokens has longer steps, not the reference's at a higher rate.
	gaps := measured(half, 6, 10)
	gaps.Trial.Objective.Bounds = []measure.Bound{{Metric: measure.ITL, Quantile: 0.99, Limit: 90 * time.Millisecond}}
	gaps.ITL = measure.Summary{P50: 20 * time.Millisecond, P99: 150 * time.Millisecond, N: 100_000}
	if got := Rates(append(trials, gaps), Setting{best, 16}, []*curve.Curve{c}, nil); len(got) != 1 {
		t.Errorf("gaps beyond their limit: %+v", got[1:])
	}
	over := measured(half, 14, 1e9)
	over.Overloaded, over.Achieved, over.TTFT = true, 9.5, measure.Summary{P50: time.Minute, P99: -1, N: 500}
	if got := Rates(append(trials, over), Setting{best, 16}, nil, nil); len(got) != 2 || got[1].Rate != 9.5 {
		t.Errorf("overloaded: %+v", got)
	}
}

// A value that one set alone has is told, as long as its other values are told by others.
func TestEffectOfALoneValue(t *testing.T) {
	all := crossed(rand.New(rand.NewPCG(1, 1)), 0)
	small := all[0].Knobs
	small.MaxNumBatchedTokens = 256
	got := Of(append(all, Setting{small, 3 * all[0].Rate}))
	if got[1].Knob != "max_num_batched_tokens" && got[0].Knob != "max_num_batched_tokens" {
		t.Fatalf("%+v", got)
	}
	for _, e := range got {
		if e.Knob == "max_num_batched_tokens" && (e.Best != "256" || math.Abs(e.Cost-2./3) > 1e-9) {
			t.Errorf("%+v", e)
		}
	}
	small.MaxNumSeqs, small.GPUMemoryUtilization = 1024, 0.92
	if with := Of(append(all, Setting{small, 1})); len(with) != 3 || with[0].Best == "1024" || with[0].Worst == "1024" {
		t.Errorf("a set that shares no value: %+v", with)
	}
}
