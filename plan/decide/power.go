package decide

import (
	"planner/model"
	"planner/plan"
)

// addPower says what the plan draws at a load of each instance, from how busy its GPUs were
// in the trials around it.
func (d *Decision) addPower(p *plan.Plan, load float64) {
	var seen []rateFigure
	for i := range d.Seen {
		m := &d.Seen[i]
		if t := m.Server.Time; m.Trial.Knobs == p.Offer.Knobs && t != nil && t.Watts > 0 && m.Trial.Rate > 0 {
			seen = append(seen, rateFigure{m.Trial.Rate, t.Watts})
		}
	}
	if watts := interpolated(seen); watts != nil && load > 0 {
		p.SetPower(plan.NewPower(&p.Offer, &p.Fleet, load, watts(load), model.PowerError))
	}
}
