package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Solve sizes and prices every offer for the demand and chooses the cheapest per hour or for the job, among
// equals the one with the fewest GPUs; offers without a price come after those with one. It returns *Unsolved
// if no offer meets the objective, if all break a limit of the demand, or if that is undecided.
func Solve(d Demand, objective measure.SLO, offers []Offer, rejected []measure.Rejection) (*Plan, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	all := d.Rank(offers)
	if len(all) == 0 || !all[0].Feasible {
		return nil, unsolved(all, rejected)
	}
	best := all[0]
	p := &Plan{
		Demand: d, Objective: objective, Offer: best.Offer, Fleet: best.Fleet,
		Cost: best.Offer.bill(&best.Fleet, &d), Alternatives: all[1:], Rejected: rejected,
	}
	for i := range p.Alternatives {
		p.Alternatives[i].explain(&best)
	}
	p.AddChanges(p.changes()...)
	if d.Job == nil {
		p.Drivers = p.drivers()
	}
	p.assume()
	p.warn()
	p.warnUndecided()
	return p, nil
}

// Rank sizes and prices every offer for the demand, the best first.
func (d *Demand) Rank(offers []Offer) []Alternative {
	all := list.Map(offers, func(o Offer) Alternative { return d.consider(&o) })
	slices.SortStableFunc(all, rank)
	return all
}

// warnUndecided warns of offers that may have been better: that would be, at the high end of their interval.
func (p *Plan) warnUndecided() {
	chosen := Alternative{Offer: p.Offer, Fleet: p.Fleet, Cost: p.Cost.Cost, Feasible: true}
	for i := range p.Alternatives {
		a := &p.Alternatives[i]
		if !a.Undecided {
			continue
		}
		gpus := a.Offer.GPUs
		if best, known := p.Demand.atBest(&a.Offer); known {
			if gpus = best.Fleet.GPUs; rank(best, chosen) >= 0 {
				continue
			}
		}
		p.Warnings = append(p.Warnings, note.New(note.MayBeCheaper, note.Count(gpus, "GPU"), cmp.Or(a.Offer.GPU, "another kind"), a.Reason.Text))
	}
}

// FleetAt returns the fleet for the plan's demand if one of its instances carried rate requests per second
// safely.
func (p *Plan) FleetAt(rate float64) (Fleet, error) {
	if !(rate > 0) {
		return Fleet{}, fmt.Errorf("size a fleet: an instance carries %g requests/s", rate)
	}
	return p.Demand.fleet(&p.Offer, rate)
}

// fleet returns the fleet of an offer whose instances carry rate safely. For a job they do so until only its last
// requests are left.
func (d *Demand) fleet(o *Offer, rate float64) (Fleet, error) {
	full := *d
	if d.Job != nil {
		if o.Tail >= d.Job.Deadline {
			return Fleet{}, note.New(note.TailBeyondDeadline, o.Tail.Round(time.Millisecond), d.Job.Deadline)
		}
		full.Rate *= d.Job.Deadline.Seconds() / (d.Job.Deadline - o.Tail).Seconds()
	}
	return full.size(rate, o.GPUs)
}

func (d *Demand) consider(o *Offer) Alternative {
	a := Alternative{Offer: *o}
	best, known := d.atBest(o)
	undecided := func(why note.Reason) Alternative {
		if a.Undecided, a.Reason = true, why; known && !best.Feasible {
			a.Undecided, a.Reason = false, note.Because(note.EvenAtHigh, o.Rate.High, best.Reason.Text)
		}
		return a
	}
	safe := o.Rate.Safe
	switch {
	case o.Obstacle.Text != "":
		a.Reason = o.Obstacle
		return a
	case o.GPUs <= 0:
		a.Reason = note.Because(note.EmptyInstance, o.GPUs)
		return a
	case !(safe > 0) || math.IsInf(safe, 0):
		return undecided(note.Because(note.NoRateKnown, cmp.Or(o.Unknown, "nothing was measured that tells one")))
	case o.Loose.Text != "":
		return undecided(o.Loose)
	}
	d.fit(&a, safe)
	if !a.Feasible && o.Unknown != "" && best.Feasible {
		// A search that did not end does not rule out what its high end would achieve.
		a.Undecided, a.Reason = true, note.Because(note.NoRateKnown, o.Unknown+"; by the safe rate so far, "+a.Reason.Text)
	}
	return a
}

// atBest returns an offer sized as if its instances carried the high end of their interval, if that is known.
func (d *Demand) atBest(o *Offer) (best Alternative, known bool) {
	best.Offer = *o
	best.Offer.Rate.Safe = o.Rate.High
	if known = o.GPUs > 0 && o.Rate.High > 0 && !math.IsInf(o.Rate.High, 0); known {
		d.fit(&best, o.Rate.High)
	}
	return best, known
}

// fit sizes and prices an offer whose instances carry rate, and records whether that meets the demand's limits.
func (d *Demand) fit(a *Alternative, rate float64) {
	f, err := d.fleet(&a.Offer, rate)
	if err != nil {
		a.Reason = note.ReasonOf(err)
		return
	}
	f.KW = float64(f.GPUs) * a.Offer.KW()
	a.Fleet, a.Cost = f, a.Offer.cost(&f, d)
	a.Reason = d.broken(a)
	a.Feasible = a.Reason.Text == ""
}

// broken says which limit of the demand the sized offer breaks; empty if none. An unknown cost breaks a limit
// on cost.
func (d *Demand) broken(a *Alternative) note.Reason {
	switch {
	case d.MaxGPUs > 0 && a.Fleet.GPUs > d.MaxGPUs:
		return note.Because(note.TooManyGPUs, a.Fleet.GPUs, d.MaxGPUs)
	case d.MaxUSDPerHour <= 0:
		return note.Reason{}
	case a.Cost.PerHour == nil:
		return note.Because(note.PriceUnheld, a.Offer.GPU, d.MaxUSDPerHour)
	case *a.Cost.PerHour > d.MaxUSDPerHour*(1+rounding):
		return note.Because(note.TooDear, *a.Cost.PerHour, d.MaxUSDPerHour)
	}
	return note.Reason{}
}

// rank orders alternatives: feasible ones first, then those with a fleet, then by cost per hour or of the job,
// known before unknown, then by GPUs and instances; those without a fleet by how far they are from their
// limits.
func rank(a, b Alternative) int {
	return cmp.Or(
		before(a.Feasible, b.Feasible),
		before(a.Fleet.GPUs > 0, b.Fleet.GPUs > 0),
		before(a.Cost.Money() != nil, b.Cost.Money() != nil),
		cmp.Compare(orZero(a.Cost.Money()), orZero(b.Cost.Money())),
		cmp.Compare(a.Fleet.GPUs, b.Fleet.GPUs),
		cmp.Compare(a.Fleet.Instances, b.Fleet.Instances),
		cmp.Compare(a.Offer.beyond(), b.Offer.beyond()),
	)
}

// beyond returns the ratio of an idle instance's latency to its limit, 0 if that is no obstacle.
func (o *Offer) beyond() float64 {
	if o.Idle == nil {
		return 0
	}
	return o.Idle.Latency / o.Idle.Limit
}

// before orders true before false.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func (a *Alternative) explain(best *Alternative) {
	switch {
	case !a.Feasible:
	case a.Cost.Money() == nil && best.Cost.Money() != nil:
		a.Reason = note.Because(note.Unpriced, *best.Cost.Money()/a.gpuHours())
	case orZero(a.Cost.Money()) > 0 && *best.Cost.Money() == 0:
		a.Reason = note.Because(note.BesideFree, *a.Cost.Money())
	case a.Cost.Job != nil && a.Cost.Job.USD != nil && *a.Cost.Job.USD > *best.Cost.Job.USD:
		a.Reason = note.Because(note.DearerJob, 100*(*a.Cost.Job.USD / *best.Cost.Job.USD - 1))
	case a.Cost.Money() != nil && *a.Cost.Money() > *best.Cost.Money():
		a.Reason = note.Because(note.Dearer, 100*(*a.Cost.Money() / *best.Cost.Money() - 1))
	case a.Fleet.GPUs > best.Fleet.GPUs:
		a.Reason = note.Because(note.MoreGPUs, a.Fleet.GPUs-best.Fleet.GPUs)
	case a.Fleet.Instances > best.Fleet.Instances:
		a.Reason = note.Because(note.MoreInstances, a.Fleet.Instances-best.Fleet.Instances)
	default:
		a.Reason = note.Because(note.ListedLater)
	}
}

// gpuHours returns the GPU hours of the job, or of one hour without one.
func (a *Alternative) gpuHours() float64 {
	if a.Cost.Job != nil {
		return a.Cost.Job.GPUHours
	}
	return float64(a.Fleet.GPUs)
}

func (p *Plan) assume() {
	d, o, f := &p.Demand, &p.Offer, &p.Fleet
	say := func(format string, a ...any) { p.Assumptions = append(p.Assumptions, fmt.Sprintf(format, a...)) }
	if d.Job != nil {
		p.Assumptions = append(p.Assumptions, p.assumeJob()...)
	} else {
		p.Assumptions = append(p.Assumptions, p.assumeTraffic()...)
	}
	switch f.DecidedBy {
	case "availability":
		say("with %.6g of instances up at any time, enough are up with probability %.6g", d.Availability, d.TargetAvailability)
	case "zones":
		say("instances are spread evenly over %d zones, and the others carry the load when one is lost", d.Zones)
	}
	if o.PricedBy != "" {
		say("%.4g USD per hour of %s: %s", o.PricePerGPUHour, cmp.Or(o.GPU, "one GPU"), o.PricedBy)
	}
	if p.Cost.EnergyPerHour != nil {
		part := "not part of the other costs, as who rents pays no power"
		if o.Bought() {
			part = "a part of the other costs"
		}
		say("power: rated %.4g W a GPU, %.4g W of its server, times %.3g for the facility; %s", o.Watts, o.ServerWatts, o.PUE, part)
	}
}

// assumeTraffic states what the size of a fleet for traffic rests on.
func (p *Plan) assumeTraffic() []string {
	d, o := &p.Demand, &p.Offer
	covers := "drift of the workload; measuring error is in the safe rate already"
	if o.Rate.Confidence == 0 {
		covers = "drift of the workload and the measuring error, which is not known"
	}
	return []string{
		fmt.Sprintf("planned rate %.6g requests/s: %s %.6g, growth %.3g, burst index %.3g", p.Fleet.PlannedRate, cmp.Or(d.TraceRates.Meant(), "peak"), d.Rate, d.Growth, max(d.BurstIndex, 1)),
		"requests are spread over the instances at random: each sees arrivals like those of the trials, and N instances carry N times the rate of one; better routing is not credited",
		fmt.Sprintf("headroom of %.3g on the planned rate covers %s", d.Headroom, covers),
	}
}

func (p *Plan) warn() {
	o, f := &p.Offer, &p.Fleet
	p.Warnings = slices.Concat(p.Warnings, o.Warnings, note.If(o.Rate.Confidence == 0, note.NoSamplingError))
	switch {
	case p.Demand.Job != nil:
	case f.AfterLoss == nil:
		p.Warnings = append(p.Warnings, note.New(note.OneInstance))
	default:
		p.Warnings = append(p.Warnings, note.If(*f.AfterLoss > 1, note.LossOverloads, 100**f.AfterLoss)...)
	}
}
