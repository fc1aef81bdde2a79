package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestReplicaIsTheEngine advances a replica at random instants, with other requests'
// numbers given again on the way, and wants the engine's own records to the byte.
func TestReplicaIsTheEngine(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    model.EngineArgs
		dp      int
		rate    float64
		timeout time.Duration
	}{
		{"at ease", model.EngineArgs{MaxModelLen: 8192}, 1, 5, 0},
		{"synchronous", model.EngineArgs{MaxModelLen: 8192, EngineVersion: "0.11.0"}, 1, 20, 0},
		{"clients give up", model.EngineArgs{MaxModelLen: 8192, MaxNumSeqs: 16}, 1, 20, 4 * time.Second},
		{"two replicas of attention", model.EngineArgs{MaxModelLen: 8192}, 2, 30, 9 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100(), DP: c.dp}, c.args, true)
			w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(512, 256), Output: normal(200, 100)}}}
			requests := w.Schedule(c.rate, 40*time.Second, 3)
			want := NewEngine(timer, config).Run(Load{Requests: requests, Timeout: c.timeout}).Records

			r := NewEngine(timer, config).Replica(0, c.timeout)
			rng := rand.New(rand.NewPCG(1, 2))
			got := make([]measure.Record, len(requests))
			var told []Told
			to := 0.0
			advance := func(at float64) {
				for ; to < at; to += rng.ExpFloat64() * 0.1 {
					r.Advance(to)
				}
				to = at
				r.Advance(to)
				told = r.Hear(to, told[:0])
				for _, k := range told {
					if k.End != nil {
						got[k.Request] = *k.End
					}
				}
			}
			for i := range requests {
				due := requests[i].Due.Seconds()
				advance(due)
				r.Submit(due, due, i, &requests[i])
			}
			advance(4000)
			if !slices.Equal(got, want) {
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("request %d: %+v, want %+v", i, got[i], want[i])
					}
				}
			}
			if o := r.Occupancy(); o.Running+o.Waiting != 0 || !math.IsInf(r.Next(), 1) {
				t.Errorf("something is left: %+v, next at %v", o, r.Next())
			}
			if len(r.run.calls) >= len(requests) {
				t.Errorf("%d numbers for %d requests, want fewer", len(r.run.calls), len(requests))
			}
		})
	}
}

// TestPredictionsAreKept compares the time per token that a replica predicts with what the requests
// that it holds then see.
func TestPredictionsAreKept(t *testing.T) {
	windowed := llama8B()
	windowed.Attention.WindowLayers, windowed.Attention.Window = 28, 256
	for name, set := range map[string]func(*model.Arch, *model.EngineArgs){
		"plain":   func(*model.Arch, *model.EngineArgs) {},
		"windows": func(a *model.Arch, _ *model.EngineArgs) { a.Attention.WindowLayers, a.Attention.Window = 28, 1024 },
		"speculation": func(_ *model.Arch, args *model.EngineArgs) {
			args.Speculation = model.Speculation{Method: model.DraftEagle, Tokens: 3, Accepted: model.AcceptedEach(0.7, 3)}
		},
		"adapters": func(_ *model.Arch, args *model.EngineArgs) {
			args.LoRA = model.LoRA{Adapters: 16, Slots: 16, Rank: 64}
		},
	} {
		t.Run(name, func(t *testing.T) {
			arch, args := llama8B(), model.EngineArgs{MaxModelLen: 8192}
			set(&arch, &args)
			timer, config := modelled(t, model.Deployment{Arch: arch, Hardware: h100()}, args, true)
			r := NewEngine(timer, config).Replica(0, 0)
			for i := range 64 {
				r.Submit(0, 0, i, &workload.Request{ID: i, Prompt: 4096, Output: 1000})
			}
			r.Advance(0.01)
			var saw float64
			for saw == 0 {
				r.Step(math.Inf(1))
				for _, told := range r.Hear(r.Next(), nil) {
					if told.Request == 63 && told.End == nil {
						_, saw = r.Predict(4096, math.Inf(1))
					}
				}
			}
			r.Advance(4000)
			for _, told := range r.Hear(4000, nil) {
				if told.Request == 63 {
					took := (told.End.Last - told.End.First).Seconds() / 999
					if math.Abs(saw/took-1) > 0.1 {
						t.Errorf("%.1f ms per token predicted, %.1f seen", 1e3*saw, 1e3*took)
					}
				}
			}
		})
	}
}
