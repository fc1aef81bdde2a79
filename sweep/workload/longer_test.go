package workload

import (
	"math"
	"testing"
	"time"
)

func TestLonger(t *testing.T) {
	for name, l := range map[string]Lengths{
		"fixed":     {Dist: Fixed, Value: 100},
		"uniform":   {Dist: Uniform, Min: 50, Max: 150},
		"lognormal": {Dist: Lognormal, Median: 80, Sigma: 0.7, Min: 10, Max: 900},
		"normal":    {Dist: Normal, Mean: 200, StdDev: 30},
		"empirical": {Dist: Empirical, Samples: []int{5, 10, 400}},
	} {
		w := &Workload{Arrivals: Poisson, Shapes: []Shape{{Prompt: l, Output: l, Prefix: Prefix{Groups: 2, Tokens: 30}}}, Seed: 1}
		longer := w.Longer(2, 3)
		was, is := w.Schedule(5, time.Minute, 7), longer.Schedule(5, time.Minute, 7)
		if len(was) == 0 || len(was) != len(is) {
			t.Fatalf("%s: %d requests became %d", name, len(was), len(is))
		}
		for i := range was {
			if was[i].Due != is[i].Due || math.Abs(float64(is[i].Prompt-2*was[i].Prompt)) > 2 || math.Abs(float64(is[i].Output-3*was[i].Output)) > 3 {
				t.Errorf("%s: request %d: %+v became %+v", name, i, was[i], is[i])
			}
		}
	}
	trace := &Workload{Arrivals: Trace, MaxLen: 100, Replay: []TraceRow{{Prompt: 30, Output: 7, Shared: []Segment{{Content: 1, Tokens: 16}}}}}
	if longer := trace.Longer(2, 1); longer.Replay[0].Prompt != 60 || longer.Replay[0].Shared[0].Tokens != 32 || longer.Replay[0].Output != 7 ||
		longer.MaxLen != 200 || trace.Replay[0].Shared[0].Tokens != 16 {
		t.Errorf("%+v", longer)
	}
}
