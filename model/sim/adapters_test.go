package sim

import (
	"testing"

	"planner/model"
	"planner/sweep/workload"
)

// Requests of no more adapters than there are slots run at once; fewer slots mean more loads
// and no shorter runs.
func TestAdaptersWithinSlots(t *testing.T) {
	dep := model.Deployment{Arch: llama8B(), Hardware: h100()}
	last := 0.0
	for _, slots := range []int{16, 4, 1} {
		args := model.EngineArgs{MaxModelLen: 4096, MaxNumSeqs: 32}
		args.LoRA = model.LoRA{Adapters: 16, Slots: slots, Rank: 16}
		timer, config := modelled(t, dep, args, true)
		w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(200, 20), Output: normal(50, 5)}}}
		s := newScheduler(config)
		loads := 0
		for i, q := range w.Schedule(20, 10e9, 3) {
			s.add(i, &q, false)
		}
		for len(s.running) > 0 || s.waiting.len() > 0 {
			b := s.schedule()
			loads += b.load.Loads
			used := map[int]bool{}
			for _, r := range s.running {
				used[r.adapter] = true
			}
			if len(used) > slots || b.load.Adapters != len(used) || len(s.slots.loaded) > slots {
				t.Fatalf("%d slots: %d adapters run, the batch says %d, %d are loaded", slots, len(used), b.load.Adapters, len(s.slots.loaded))
			}
			s.output(b)
		}
		if loads < 16 || slots == 16 && loads > 16 {
			t.Errorf("%d slots: %d loads", slots, loads)
		}
		r := simulate(NewEngine(timer, config), Load{Requests: w.Schedule(20, 10e9, 3)})
		if end := r.End.Seconds(); end < last {
			t.Errorf("%d slots: done after %.2f s, with more slots after %.2f", slots, end, last)
		} else {
			last = end
		}
	}
}
