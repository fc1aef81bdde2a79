package plan

import (
	"cmp"
	"math"
	"slices"

	"planner/internal/note"
)

// Change is something that turns out other than planned, and what the chosen instances then cost.
type Change struct {
	// What names it: "traffic +20 %".
	What string `json:"what"`
	// SafeRate is the safe rate of one instance then, in requests per second.
	SafeRate float64 `json:"safe_rate_per_s"`
	// Instances, GPUs and PerHour are those of the fleet; zero and nil if there is none, for the Reason.
	Instances int      `json:"instances"`
	GPUs      int      `json:"gpus"`
	PerHour   *float64 `json:"usd_per_hour"`
	// ForJob is the cost of a job then; nil if the demand is none, or the price is unknown.
	ForJob *float64 `json:"usd_for_job,omitempty"`
	// JobGPUHours are those of all GPUs until a job is done; 0 if the demand is none.
	JobGPUHours float64     `json:"gpu_hours_for_job,omitempty"`
	Reason      note.Reason `json:",embed"`
	// Approximate changes move the rate according to short simulated runs or the fitted curve, not a search of
	// their own.
	Approximate bool `json:"approximate"`
}

// Steps of what may turn out other than planned.
const (
	trafficStep = 0.20
	priceStep   = 0.15
)

// changes returns the changes that follow from the plan alone.
func (p *Plan) changes() []Change {
	of := func(what string, vary func(p *Plan)) Change {
		other := *p
		vary(&other)
		return other.change(what, other.Offer.Rate.Safe)
	}
	more := func(by float64) func(*Plan) {
		return func(p *Plan) {
			if p.Demand.Rate *= by; p.Demand.Job != nil {
				j := *p.Demand.Job
				j.Requests *= by
				p.Demand.Job = &j
			}
		}
	}
	all := []Change{
		of("traffic +20 %", more(1+trafficStep)),
		of("traffic -20 %", more(1-trafficStep)),
		of("sized by the median rate, not by the safe one", func(p *Plan) { p.Offer.Rate.Safe = p.Offer.Rate.Value }),
	}
	if p.Demand.Zones > 1 {
		all = append(all, of("one zone less", func(p *Plan) { p.Demand.Zones-- }))
	}
	if p.Offer.PricePerGPUHour > 0 {
		all = append(all,
			of("price +15 %", func(p *Plan) { p.Offer.PricePerGPUHour *= 1 + priceStep }),
			of("price -15 %", func(p *Plan) { p.Offer.PricePerGPUHour *= 1 - priceStep }))
	}
	return all
}

// Moved returns an approximate change that multiplies the rate of one instance by a factor.
func (p *Plan) Moved(what string, factor float64) Change {
	c := p.change(what, p.Offer.Rate.Safe*factor)
	c.Approximate = true
	return c
}

func (p *Plan) change(what string, safe float64) Change {
	c := Change{What: what, SafeRate: safe}
	f, err := p.FleetAt(safe)
	if err != nil {
		c.Reason = note.ReasonOf(err)
		return c
	}
	c.Instances, c.GPUs, c.PerHour = f.Instances, f.GPUs, p.Offer.price(&f, 0).PerHour
	if p.Demand.Job != nil {
		o := p.Offer
		o.Rate.Safe = safe
		job := o.running(&f, &p.Demand).Job
		c.ForJob, c.JobGPUHours = job.USD, job.GPUHours
	}
	return c
}

// AddChanges adds changes to the plan's, the largest first.
func (p *Plan) AddChanges(changes ...Change) {
	p.Sensitivity = byMoved(append(p.Sensitivity, changes...), p.Fleet.GPUs, &p.Cost.Cost)
}

// Money is the cost by which changes are ranked, as [Cost.Money] is for fleets.
func (c *Change) Money() *float64 { return cmp.Or(c.ForJob, c.PerHour) }

// Share is the share by which a change moves a fleet's cost or, if the price is unknown or 0, its job's GPU
// hours or its GPUs.
func (c *Change) Share(gpus int, cost *Cost) float64 {
	now, money := c.Money(), cost.Money()
	switch {
	case now != nil && money != nil && *money > 0:
		return *now / *money - 1
	case cost.Job != nil:
		return c.JobGPUHours/cost.Job.GPUHours - 1
	}
	return float64(c.GPUs)/float64(gpus) - 1
}

// byMoved orders changes by how far they move a fleet, starting with those that leave none.
func byMoved(all []Change, gpus int, cost *Cost) []Change {
	size := func(c *Change) float64 {
		if c.GPUs == 0 {
			return math.Inf(1)
		}
		return math.Abs(c.Share(gpus, cost))
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(size(&b), size(&a)) })
	return all
}
