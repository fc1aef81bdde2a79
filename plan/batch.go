package plan

import (
	"fmt"
	"time"
)

// Job is work without any latency limit that must be done by a deadline.
type Job struct {
	// Requests are all requests of the job, growth included; of a daily job those of one day.
	Requests float64       `json:"requests"`
	Deadline time.Duration `json:"deadline_s"`      // from the start until all requests are done
	Daily    bool          `json:"daily,omitempty"` // whether the job recurs every day
}

// JobDemand returns the demand of a job: its requests spread over the time until the deadline.
func (d Demand) JobDemand(j Job) Demand {
	d.Rate, d.BurstIndex, d.Job = j.Requests/j.Deadline.Seconds(), 1, &j
	d.Job.Requests *= 1 + d.Growth
	return d
}

// Batch is what a fleet takes for a job, with all instances running at their safe rate until only its last requests
// are left.
type Batch struct {
	Duration time.Duration `json:"duration_s"` // from the start until the fleet is done
	GPUHours float64       `json:"gpu_hours"`  // of all GPUs in that time
	// USD is the cost of the GPU hours, or of all hours until the deadline if GPUs are bought or reserved; nil
	// without a price.
	USD *float64 `json:"usd"`
}

// running returns the cost of a fleet that works on the demand's job: per hour, per unit of work, and in all.
// There is no cost per month, as the fleet runs for only a part of it. Bought or reserved GPUs cost until the
// deadline, busy or not.
func (o *Offer) running(f *Fleet, d *Demand) Cost {
	hours := d.Job.Requests/(float64(f.Instances)*o.Rate.Safe)/secondsPerHour + o.Tail.Hours()
	paid := hours
	if o.held() {
		paid = max(paid, d.Job.Deadline.Hours())
	}
	c := o.price(f, d.Job.Requests/paid/secondsPerHour)
	c.PerMonth, c.PerYear = nil, nil
	c.Job = &Batch{Duration: max(time.Duration(hours*float64(time.Hour)).Round(time.Second), time.Second), GPUHours: hours * float64(f.GPUs)}
	if c.PerHour != nil {
		c.Job.USD = new(paid * *c.PerHour)
	}
	return c
}

// held reports whether the offer's GPUs cannot be given back when a job has ended.
func (o *Offer) held() bool {
	return o.Bought() || len(o.Terms) > 0 && o.Terms[0].Name == Reserved
}

// Money is the cost by which fleets are ranked: that of the job or, without one, of an hour; nil if unknown.
func (c *Cost) Money() *float64 {
	if c.Job != nil {
		return c.Job.USD
	}
	return c.PerHour
}

// assumeJob states what a job's figures rest on.
func (p *Plan) assumeJob() []string {
	j := p.Demand.Job
	all := []string{
		fmt.Sprintf("planned rate %.6g requests/s: %.6g requests in %v but for the %v that the last ones take, growth %.3g included", p.Fleet.PlannedRate, j.Requests, j.Deadline, p.Offer.Tail.Round(time.Millisecond), p.Demand.Growth),
		"requests wait at the client until an engine takes them, so that every instance is full until the last ones have begun; starting engines is not counted",
	}
	headroom := fmt.Sprintf("headroom of %.3g on the planned rate keeps the deadline if an instance carries less; GPU hours ", p.Demand.Headroom)
	if !p.Offer.held() {
		headroom += "and cost "
	}
	all = append(all, headroom+"do not grow with it, as the job ends earlier")
	if p.Offer.held() {
		held := "the cost is that of all hours until the deadline: GPUs that are reserved or bought are paid for whether they work or not"
		if !j.Daily {
			held += ", and after it"
		}
		all = append(all, held)
	}
	return all
}
