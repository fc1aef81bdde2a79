package search_test

import (
	"math"
	"testing"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// If no latency has a limit, a race still finds which set completes more.
func TestRaceWithoutLimitsOnLatencies(t *testing.T) {
	queues := map[measure.Knobs]virtual.Queue{}
	var sets []search.Prior
	for i, rate := range []float64{20, 30, 24} {
		k := measure.Knobs{MaxNumSeqs: 1 << i}
		queues[k] = virtual.Queue{Servers: 1, Rate: rate}
		sets = append(sets, search.Prior{Knobs: k, Rate: 22})
	}
	r := search.NewRace(search.RaceConfig{Candidates: sets, Search: search.MaxRateConfig{
		Workload: poisson(), SLO: measure.SLO{Throughput: true, Errors: 0.01}, Seed: 1}})
	virtual.Drive(r, func(trial measure.Trial) measure.Measurement {
		if math.IsNaN(trial.Rate) {
			t.Fatalf("a trial at %v/s: %s", trial.Rate, trial.Why)
		}
		return virtual.Bench{Server: queues[trial.Knobs]}.Run(trial)
	})
	if end := r.Result(); queues[end.Knobs].Rate != 30 || end.Best.Estimate.Safe > 30 || end.Best.Estimate.Value < 27 {
		t.Errorf("the best set has %v: %+v", queues[end.Knobs], end.Best.Estimate)
	}
}
