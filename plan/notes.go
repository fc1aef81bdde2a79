package plan

import (
	"cmp"
	"fmt"

	"planner/internal/note"
)

// assume states what the figures rest on.
func (p *Plan) assume() {
	d, o, f := &p.Demand, &p.Offer, &p.Fleet
	say := func(format string, a ...any) { p.Assumptions = append(p.Assumptions, fmt.Sprintf(format, a...)) }
	say("planned rate %.6g requests/s: peak %.6g, growth %.3g, burst index %.3g", f.PlannedRate, d.Rate, d.Growth, max(d.BurstIndex, 1))
	say("requests are spread over the instances at random: each sees arrivals like those of the trials, and N instances carry N times the rate of one; better routing is not credited")
	covers := "drift of the workload; measuring error is in the safe rate already"
	if o.Rate.Confidence == 0 {
		covers = "drift of the workload and the measuring error, which is not known"
	}
	say("headroom of %.3g on the planned rate covers %s", d.Headroom, covers)
	switch f.DecidedBy {
	case "availability":
		say("with %.6g of instances up at any time, enough are up with probability %.6g", d.Availability, d.TargetAvailability)
	case "zones":
		say("instances are spread evenly over %d zones, and the others carry the load when one is lost", d.Zones)
	}
	if o.PricePerGPUHour > 0 && o.PricedBy != "" {
		say("%.4g USD per hour of %s: %s", o.PricePerGPUHour, cmp.Or(o.GPU, "one GPU"), o.PricedBy)
	}
	if p.Cost.EnergyPerHour != nil {
		say("energy at %.4g W per GPU, always under load, without the cooling and the hosts, and not part of the other costs", o.Watts)
	}
}

// warn states what to be careful with.
func (p *Plan) warn() {
	o, f := &p.Offer, &p.Fleet
	say := func(k note.Kind, figures ...any) { p.Warnings = append(p.Warnings, note.New(k, figures...)) }
	p.Warnings = append(p.Warnings, o.Warnings...)
	if o.Rate.Confidence == 0 {
		say(note.NoSamplingError)
	}
	if o.PricePerGPUHour <= 0 {
		say(note.NoPrice, cmp.Or(o.GPU, "the GPU"))
	}
	switch {
	case f.AfterLoss == nil:
		say(note.OneInstance)
	case *f.AfterLoss > 1:
		say(note.LossOverloads, 100**f.AfterLoss)
	}
}
