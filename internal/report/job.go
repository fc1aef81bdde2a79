package report

import (
	"fmt"
	"time"

	"planner/plan"
)

// jobDecision is the answer for a job in one line, numbers first.
func jobDecision(p *plan.Plan) string {
	j := p.Cost.Job
	s := fmt.Sprintf("%s for %s: %s, %s GPU hours", fleetOf(&p.Fleet, &p.Offer), jobAsked(p.Demand.Job), hours(j.Duration), number(j.GPUHours, 3))
	if j.USD == nil {
		return s + ", cost not known"
	}
	s += ", " + money(*j.USD)
	if p.Demand.Job.Daily {
		s += " a day"
	}
	if c := p.Cost.PerMillionTokens; c != nil {
		s += ", " + money(*c) + " per million tokens"
	}
	return s
}

// jobAsked says what a job is: "1,000,000 requests in 24 h".
func jobAsked(j *plan.Job) string {
	if j.Daily {
		return number(j.Requests, 4) + " requests a day"
	}
	return number(j.Requests, 4) + " requests in " + hours(j.Deadline)
}

// hours is a duration to the minute, as it is said of jobs: "19 h 42 min".
func hours(d time.Duration) string {
	d = d.Round(time.Minute)
	switch h, m := int(d.Hours()), int(d.Minutes())%60; {
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	default:
		return fmt.Sprintf("%d h %d min", h, m)
	}
}
