package decide

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"
	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/sweep/measure"
)

// autoscaling returns the autoscaling signal of a plan's fleet from the trials of its knobs; nil if none of
// them has request times, and for a job, during which all replicas are full.
func autoscaling(p *plan.Plan, trials []measure.Measurement) *plan.Autoscaling {
	inFlight := inFlightAt(trials, p.Offer.Knobs)
	if inFlight == nil || p.Fleet.Instances == 0 || p.Demand.Job != nil {
		return nil
	}
	return p.Autoscale(inFlight)
}

// inFlightAt returns the requests in flight on an instance as a function of its rate: by Little's law the rate
// times the mean time of a request. It is nil if no trial has that.
func inFlightAt(trials []measure.Measurement, k measure.Knobs) func(rate float64) float64 {
	seen := map[float64][]float64{}
	for m := range measure.RanWith(trials, k) {
		told := m.Valid && !m.Overloaded && !m.Trial.Closed()
		if told && m.Offered() > 0 && m.E2E.Mean > 0 {
			seen[m.Offered()] = append(seen[m.Offered()], m.E2E.Mean.Seconds())
		}
	}
	seconds := interpolated(seen)
	if seconds == nil {
		return nil
	}
	return func(rate float64) float64 { return rate * seconds(rate) }
}

// fewSlots warns that at a rate requests wait for LoRA adapter slots: that all are in use at least as often as
// the bound that limits the rate allows a request to be late.
func fewSlots(cfg *config.Config, binding string, inFlight func(float64) float64, rate float64) note.Notes {
	l, allowed := cfg.Engine.LoRA, 0.5
	if b, ok := cfg.Objective.Bound(binding); ok {
		if !b.Waits() {
			return nil
		}
		if b.Quantile > 0 {
			allowed = b.Allowed()
		}
	}
	if l.Slots >= l.Adapters || inFlight == nil {
		return nil
	}
	n := inFlight(rate)
	// Requests arrive at random and use all adapters alike, so each adapter is in use independently.
	used := distuv.Binomial{N: float64(l.Adapters), P: -math.Expm1(-n / float64(l.Adapters))}
	taken := used.Survival(float64(l.Slots) - 1)
	return note.If(taken >= allowed, note.FewSlots, n, 100*taken, l.Slots, l.Adapters)
}

// interpolated interpolates figures that were seen at rates linearly between these, averaging those at one rate,
// and is constant beyond the outermost; nil if there are none.
func interpolated(seen map[float64][]float64) func(rate float64) float64 {
	rates := slices.Sorted(maps.Keys(seen))
	figures := list.Map(rates, func(rate float64) float64 { return gonum.Mean(seen[rate], nil) })
	switch len(rates) {
	case 0:
		return nil
	case 1:
		return func(float64) float64 { return figures[0] }
	}
	var line interp.PiecewiseLinear
	if line.Fit(rates, figures) != nil {
		return nil // not reached: the rates are in order, and differ
	}
	return line.Predict
}
