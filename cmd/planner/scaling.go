package main

import (
	"fmt"
	"math"

	"planner/plan"
	"planner/sweep/measure"
)

// explainScaling says why an instance of more GPUs carries less than one of
// fewer GPUs of the same kind, where it does beyond the intervals.
func explainScaling(offers []plan.Offer, trials []measure.Measurement) {
	for i := range offers {
		big := &offers[i]
		for _, small := range offers {
			slower := small.GPU == big.GPU && small.GPUs < big.GPUs && big.Rate.Value > 0 && big.Rate.Value < small.Rate.Low
			if !slower {
				continue
			}
			big.Warnings = append(big.Warnings, slowerBecause(&small, big, trials))
			break
		}
	}
}

func slowerBecause(small, big *plan.Offer, trials []measure.Measurement) string {
	s := fmt.Sprintf("%d GPUs carry less than %d (%.3g against %.3g requests/s)", big.GPUs, small.GPUs, big.Rate.Value, small.Rate.Value)
	a, b := sharesNear(trials, small), sharesNear(trials, big)
	if a == nil || b == nil {
		return s
	}
	return s + fmt.Sprintf(": communication between GPUs takes %.0f %% of the step time instead of %.0f %%", 100*b.Communication, 100*a.Communication)
}

// sharesNear is how the engine spent its time in the offer's trial nearest to
// its maximum rate; nil if no trial tells.
func sharesNear(trials []measure.Measurement, o *plan.Offer) *measure.TimeShares {
	var best *measure.TimeShares
	nearest := math.Inf(1)
	for i := range trials {
		m := &trials[i]
		if m.Trial.Knobs != o.Knobs || m.Server.Time == nil || m.Trial.Rate <= 0 {
			continue
		}
		if d := math.Abs(math.Log(m.Trial.Rate / o.Rate.Value)); d < nearest {
			nearest, best = d, m.Server.Time
		}
	}
	return best
}
