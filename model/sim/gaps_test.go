package sim

import (
	"testing"
	"time"

	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestGapIntervals: the interval of the share of long gaps holds the true share, and is a
// narrow one where long prompts make them, many and short clumps. 60 trials of each load; the
// truth is that of all of them together. An interval whose ends are each wrong in 5 % is below
// the truth in more than 7 of 60 with a probability of 1.4 %, and so above it.
func TestGapIntervals(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	for _, c := range []struct {
		rate, quantile, narrow float64
		arrivals               workload.Process
	}{{8, 0.99, 2, workload.Poisson}, {8, 0.9, 8, workload.Poisson}, {6, 0.99, 2, workload.Gamma}} {
		w := workload.Workload{Arrivals: c.arrivals, Burstiness: 0.4, Shapes: []workload.Shape{{Prompt: normal(900, 600), Output: normal(200, 100)}}}
		const runs = 60
		warmup, window := 30*time.Second, time.Duration(2000/c.rate)*time.Second
		all := measure.NewGaps(0, 0)
		trials, seen := make([]measure.Trial, runs), make([]measure.Observation, runs)
		for i := range trials {
			trials[i] = measure.Trial{Workload: &w, Rate: c.rate, Warmup: warmup, Window: window, Seed: uint64(i)}
			load := Load{Requests: trials[i].Schedule(), Gaps: true, GapsFrom: warmup, GapsTo: warmup + window}
			seen[i] = simulate(NewEngine(timer, config), load).Observation
			all.Merge(seen[i].Gaps.Histogram)
		}
		limit := time.Duration(all.ValueAtQuantile(100*c.quantile)) * time.Microsecond
		judge := func(i int, quantile float64, o measure.Observation) measure.Count {
			trials[i].Objective = measure.SLO{Bounds: []measure.Bound{{Metric: measure.ITL, Quantile: quantile, Limit: limit}}, Errors: -1}
			return measure.Reduce(trials[i], o).Counts[0]
		}
		truth := judge(0, c.quantile, measure.Observation{Records: seen[0].Records, End: seen[0].End, Gaps: all}).Value
		below, above, wide := 0, 0, 0.0
		for i := range trials {
			n := judge(i, c.quantile, seen[i])
			if n.High < truth {
				below++
			}
			if n.Low > truth {
				above++
			}
			wide += n.High / n.Low / runs
		}
		t.Logf("%g requests/s, p%g of %v: %d below, %d above, from low to high a factor of %.3g", c.rate, 100*c.quantile, limit, below, above, wide)
		if below > 7 || above > 7 || wide > c.narrow {
			t.Errorf("%g requests/s, p%g of %v: %d of %d below %.4g, %d above, from low to high a factor of %.3g", c.rate, 100*c.quantile, limit, below, runs, truth, above, wide)
		}
	}
}
