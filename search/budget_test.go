package search_test

import (
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// A race on a small budget keeps to it, and leaves enough of it for searches of the best set
// that come to an answer which holds.
func TestRaceOnASmallBudgetDecides(t *testing.T) {
	const limit, budget, seeds = time.Second, 20 * time.Minute, 5
	queues := map[measure.Knobs]virtual.Queue{}
	var sets []search.Prior
	for i, rate := range []float64{30, 31, 45, 46} {
		k := measure.Knobs{MaxNumSeqs: 1 << i}
		queues[k] = virtual.Queue{Servers: 1, Rate: rate}
		sets = append(sets, search.Prior{Knobs: k})
	}
	found, safe, good := 0, 0, 0
	for seed := range uint64(seeds) {
		r := search.NewRace(search.RaceConfig{OneEngine: true, Candidates: sets, Search: search.MaxRateConfig{
			Workload: poisson(), SLO: ttft(limit, 0.9), Seed: seed + 1, Budget: budget, Precision: 0.2}})
		for batch := r.Next(); len(batch) > 0; batch = r.Next() {
			for _, trial := range batch {
				r.Observe(virtual.Bench{Server: queues[trial.Knobs], Drift: 0.05}.Run(trial))
			}
		}
		end := r.Result()
		if end.EngineTime > budget {
			t.Errorf("seed %d: %v of a budget of %v", seed, end.EngineTime, budget)
		}
		if end.Best.Outcome == search.Found {
			found++
		}
		if end.Best.Estimate.Safe <= queues[end.Knobs].MaxRate(limit, 0.1) {
			safe++
		}
		if queues[end.Knobs].Rate >= 45 {
			good++
		}
	}
	if good < 4 {
		t.Errorf("%d of %d races chose one of the two best sets", good, seeds)
	}
	if found < 4 || safe < 4 {
		t.Errorf("of %d races %d found a rate, and %d one that is safe", seeds, found, safe)
	}
}
