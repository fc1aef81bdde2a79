package decide

import (
	"cmp"
	"slices"

	"planner/model"
	"planner/plan"
)

// addPower says what the plan draws at a load of each instance, from how busy its GPUs were
// in the trials around it.
func (d *Decision) addPower(p *plan.Plan, load float64) {
	type point struct{ rate, watts float64 }
	var seen []point
	for i := range d.Seen {
		m := &d.Seen[i]
		if t := m.Server.Time; m.Trial.Knobs == p.Offer.Knobs && t != nil && t.Watts > 0 && m.Trial.Rate > 0 {
			seen = append(seen, point{m.Trial.Rate, t.Watts})
		}
	}
	if len(seen) == 0 || load <= 0 {
		return
	}
	slices.SortFunc(seen, func(a, b point) int { return cmp.Compare(a.rate, b.rate) })
	above, _ := slices.BinarySearchFunc(seen, load, func(a point, rate float64) int { return cmp.Compare(a.rate, rate) })
	low, high := seen[max(above-1, 0)], seen[min(above, len(seen)-1)]
	watts := low.watts
	if high.rate > low.rate {
		watts += (high.watts - low.watts) * (load - low.rate) / (high.rate - low.rate)
	}
	p.SetPower(plan.NewPower(&p.Offer, &p.Fleet, load, watts, model.PowerError))
}
