package config

import (
	"maps"
	"slices"
	"time"

	"planner/plan"
)

// throughput is the objective without a limit on any latency.
const throughput = "throughput"

// batchJob is what is to be done where no latency has a limit: so many tokens a day, or so many
// requests until a deadline.
type batchJob struct {
	tokens, requests float64
	deadline         time.Duration
}

// resolveJob makes the demand of a job, and refuses what belongs to the other objective.
func (r *reader) resolveJob(c *Config) {
	d := &c.draft
	if d.objective != throughput {
		given := map[string]bool{"demand.tokens_per_day": d.job.tokens > 0, "demand.requests": d.job.requests > 0, "demand.deadline": d.job.deadline > 0}
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if given[key] && r.clean("slo.objective") {
				r.at(key).refuse(`is given, want slo.objective = "throughput" besides, or demand.rate alone`)
			}
		}
		return
	}
	for _, b := range c.Objective.Bounds {
		r.at("slo.objective").refuse(`is "throughput", want no latency limit besides; %s has one`, b)
	}
	if r.given("demand.rate") {
		r.at("demand.rate").refuse(`is given, want tokens_per_day, or requests and deadline, because slo.objective is "throughput"`)
	}
	if !r.given("demand.spare_instances") {
		c.Demand.Spare = 0 // a job waits where traffic does not
	}
	if !c.draft.need.Demand || !r.clean("demand", "slo", "workload") {
		return
	}
	j := plan.Job{Requests: d.job.requests, Deadline: d.job.deadline}
	switch daily := d.job.tokens > 0; {
	case daily && (j.Requests > 0 || j.Deadline > 0):
		r.at("demand.tokens_per_day").refuse("is given, want no requests and deadline besides")
	case daily:
		prompt, output := c.Workload.MeanTokens()
		j = plan.Job{Requests: d.job.tokens / (prompt + output), Deadline: 24 * time.Hour, Daily: true}
	case j.Requests == 0 || j.Deadline == 0:
		r.absent("demand.tokens_per_day", `is missing, as are requests with a deadline, because slo.objective is "throughput"; want tokens_per_day = 1e9, or requests = 1e6 and deadline = "24h"`)
		return
	}
	c.Demand = c.Demand.JobDemand(j)
}
