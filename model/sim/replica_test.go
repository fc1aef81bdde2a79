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
