package plan

import (
	"cmp"
	"fmt"
	"slices"

	"planner/internal/note"
	"planner/internal/stat"
)

// Driver is an assumption that causes a part of the cost: without it the instances would be fewer or cheaper.
type Driver struct {
	What string `json:"what"` // the assumption, in words
	// Share is the part of the cost that it causes, or of the GPUs if there is no price.
	Share float64 `json:"share"`
	// GPUs and PerHour are what it adds.
	GPUs    int      `json:"gpus"`
	PerHour *float64 `json:"usd_per_hour"`
}

// LargeShare is the part of the cost from which on an assumption is mentioned prominently.
const LargeShare = 0.05

// drivers weighs each assumption by the plan without it, the largest first. The parts need not add up, as
// instances are whole.
func (p *Plan) drivers() []Driver {
	d, o := &p.Demand, &p.Offer
	var all []Driver
	without := func(what string, vary func(*Plan)) {
		other := *p
		vary(&other)
		f, err := other.FleetAt(other.Offer.Rate.Safe)
		if err != nil {
			return
		}
		driver := Driver{What: what, GPUs: p.Fleet.GPUs - f.GPUs, Share: 1 - float64(f.GPUs)/float64(p.Fleet.GPUs)}
		if c := other.Offer.price(&f, 0).PerHour; c != nil && p.Cost.PerHour != nil && *p.Cost.PerHour > 0 {
			driver.Share, driver.PerHour = 1 - *c / *p.Cost.PerHour, new(*p.Cost.PerHour-*c)
		}
		if driver.Share > 0 {
			all = append(all, driver)
		}
	}
	without(fmt.Sprintf("growth of %.4g %% until the fleet is in place", 100*d.Growth), func(p *Plan) { p.Demand.Growth = 0 })
	without(fmt.Sprintf("bursts of dispersion index %.4g", d.BurstIndex), func(p *Plan) { p.Demand.BurstIndex = 1 })
	without(fmt.Sprintf("headroom of %.4g %%, for drift of the workload", 100*d.Headroom), func(p *Plan) { p.Demand.Headroom = 0 })
	without(note.Count(d.Spare, "spare instance")+", for a loss or a restart", func(p *Plan) { p.Demand.Spare = 0 })
	without(fmt.Sprintf("availability of %.6g %%, of instances that are up %.6g %% of the time", 100*d.TargetAvailability, 100*d.Availability),
		func(p *Plan) { p.Demand.TargetAvailability = 0 })
	without(fmt.Sprintf("%d zones, of which any may be lost", d.Zones), func(p *Plan) { p.Demand.Zones = 1 })
	without(fmt.Sprintf("the safe rate of an instance, %.4g requests/s, and not the likely %.4g", stat.RoundedDown(o.Rate.Safe, 4), o.Rate.Value),
		func(p *Plan) { p.Offer.Rate.Safe = p.Offer.Rate.Value })
	if l := o.Listed; l != nil && l.Low > 0 {
		without(fmt.Sprintf("the price of %.4g USD per GPU and hour, and not the lowest list's %.4g", o.PricePerGPUHour, l.Low),
			func(p *Plan) { p.Offer.PricePerGPUHour = l.Low })
	}
	slices.SortStableFunc(all, func(a, b Driver) int { return cmp.Compare(b.Share, a.Share) })
	return all
}
