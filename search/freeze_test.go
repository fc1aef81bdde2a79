package search_test

import (
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// freeze is a server that stalls once, for some time.
type freeze struct {
	virtual.Queue
	from, length time.Duration
}

// Serve holds back, until the stall ends, every request that would have ended after it began.
func (f freeze) Serve(requests []workload.Request, speed float64, seed uint64) []measure.Record {
	before := f.Queue.Serve(requests, speed, seed)
	behind := make([]workload.Request, 0, len(requests))
	for i, r := range requests {
		if before[i].Last > f.from {
			r.Due = max(r.Due, f.from+f.length)
			behind = append(behind, r)
		}
	}
	after := f.Queue.Serve(behind, speed, seed)
	for i, late := range after {
		at := len(before) - len(after) + i
		before[at].First, before[at].Last = late.First, late.Last
	}
	return before
}

// A single stall spoils one trial. A search that then ends without a rate reports no upper bound that the server
// exceeds.
func TestFreezeTellsNoFalseBound(t *testing.T) {
	queue := virtual.Queue{Servers: 1, Rate: 10}
	const limit = 480 * time.Millisecond
	truth, told := queue.MaxRate(limit, 0.01), 0
	for seed := range uint64(4) {
		for frozen := 2; frozen <= 4; frozen++ {
			cfg := search.MaxRateConfig{Workload: poisson(), SLO: ttft(limit, 0.99), Seed: seed + 1, Budget: 240 * time.Second}
			s, loads := search.NewMaxRate(cfg), 0
			virtual.Drive(s, func(trial measure.Trial) measure.Measurement {
				server := freeze{Queue: queue}
				if !trial.Closed() {
					if loads++; loads == frozen {
						server.from, server.length = trial.Warmup+trial.Window/3, 20*time.Second
					}
				}
				return virtual.Bench{Server: server}.Run(trial)
			})
			bound, ok := s.Result().Reason.Note.Figures["high_per_s"].(float64)
			if ok {
				told++
			}
			if ok && bound < truth {
				t.Errorf("seed %d, trial %d: the maximum rate is %.2f/s: %s", seed, frozen, truth, s.Result().Reason.Text)
			}
		}
	}
	if told == 0 {
		t.Error("no search told a bound: the test shows nothing")
	}
}
