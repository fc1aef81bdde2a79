package config

import (
	"maps"
	"slices"
	"time"

	"planner/internal/list"
	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// sloLimits are the limits of an objective by metric: nil if a metric is not given, empty if it is given
// without limits.
type sloLimits [measure.Goodput + 1][]measure.Bound

// latencyLimits is a table of a latency's limits by statistic.
func latencyLimits(m measure.Metric) codec[[]measure.Bound] {
	table := tableOf(durationIn(above(0)), measure.Stats()...)
	read := func(n input) []measure.Bound {
		if dotted, ok := list.Find(n.children(), func(c input) bool { return isTable(c.value) }); ok {
			dotted.refuse(`is a table, as a name with a dot makes one; want it quoted: "p99.9" = "1s"`)
			return nil
		}
		bounds, limits := []measure.Bound{}, table.read(n)
		for _, stat := range slices.Sorted(maps.Keys(limits)) {
			quantile, _ := measure.ParseStat(stat)
			bounds = append(bounds, measure.Bound{Metric: m, Quantile: quantile, Limit: limits[stat]})
		}
		return bounds
	}
	return codec[[]measure.Bound]{read, func(bounds []measure.Bound) string {
		limits := map[string]time.Duration{}
		for _, b := range bounds {
			limits[b.Stat()] = b.Limit
		}
		return table.print(limits)
	}, true, nil}
}

// goodputLimit is the share of requests that must be within several limits at once; an empty table means none.
func goodputLimit() codec[[]measure.Bound] {
	table := tableWith(func(b *measure.Bound) []tomlKey {
		limit := orNothing(durationIn(above(0)))
		return []tomlKey{
			{"share", ": the least share of requests that meet its limits", orNothing(share()).in(&b.Quantile)},
			{"ttft", "", limit.in(&b.Limits.TTFT)},
			{"tpot", "", limit.in(&b.Limits.TPOT)},
			{"e2e", "", limit.in(&b.Limits.E2E)},
		}
	}, "share")
	read := func(n input) []measure.Bound {
		var b measure.Bound
		if table.in(&b).take(n); b.Quantile == 0 {
			return []measure.Bound{}
		}
		n.refuseIf(b.Limits == measure.Limits{}, `has no limit, want at least one of ttft, tpot, e2e, such as ttft = "500ms"`)
		b.Metric = measure.Goodput
		return []measure.Bound{b}
	}
	return codec[[]measure.Bound]{read, func(bounds []measure.Bound) string {
		if len(bounds) == 0 {
			return "{}"
		}
		return table.print(bounds[0])
	}, true, nil}
}

func (l *sloLimits) rows() []tomlKey {
	var rows []tomlKey
	for i, m := range measure.MetricTable {
		metric, k := measure.Metric(i+1), goodputLimit()
		if metric.IsLatency() {
			k = latencyLimits(metric)
		}
		rows = append(rows, tomlKey{m.Name, m.Help, k.in(&l[metric])})
	}
	return rows
}

// classRows are the keys of one class's limits; only those given are printed. Times between tokens are recorded
// without their requests and cannot have limits per class.
func (l *sloLimits) classRows() []tomlKey {
	rows := l.rows()
	for i, k := range rows {
		rows[i].text = func() string {
			if l[i+1] == nil {
				return ""
			}
			return k.text()
		}
	}
	return slices.Delete(rows, int(measure.ITL)-1, int(measure.ITL))
}

func (l sloLimits) or(others sloLimits) sloLimits {
	for m := range l {
		if l[m] == nil {
			l[m] = others[m]
		}
	}
	return l
}

// bounds returns the limits as those of a class, or of all requests for "".
func (l sloLimits) bounds(class string) []measure.Bound {
	all := slices.Concat(l[:]...)
	for i := range all {
		all[i].Class = class
	}
	return all
}

// bounds returns the limits of the configuration. If a class of the mix has limits, each class has its own, and
// those of [slo] for the metrics that it does not give.
func (d *draft) bounds() []measure.Bound {
	if !slices.ContainsFunc(d.mix, func(of component) bool { return of.slo != nil }) {
		return d.limits.bounds("")
	}
	each := d.limits
	each[measure.ITL] = nil
	out := sloLimits{measure.ITL: d.limits[measure.ITL]}.bounds("")
	for _, of := range d.mix {
		own := sloLimits{}
		if of.slo != nil {
			own = *of.slo
		}
		out = append(out, own.or(each).bounds(of.shape.Name)...)
	}
	return out
}

// resolveSLO sorts the bounds, and requires one if the command needs it.
func (r *reader) resolveSLO(c *Config) {
	slo := &c.Objective
	slo.Throughput = c.draft.objective == throughput
	slo.Bounds = c.draft.bounds()
	slo.Sort()
	for m, given := range c.draft.limits {
		shared := func(of component) bool { return of.slo == nil || of.slo[m] == nil }
		r.warnIf(len(given) > 0 && len(c.draft.mix) > 0 && !slices.ContainsFunc(c.draft.mix, shared),
			"slo.%v has no effect: each class of workload.mix has limits on it of its own", measure.Metric(m))
	}
	for _, b := range slo.Bounds {
		r.missing("search.certify", "slo").refuseIf(c.Search.Certify && b.Quantile == 0,
			"is true, and %s bounds a mean, which counts of requests do not certify; want bounds on quantiles or goodput only", b)
	}
	if c.draft.need.Limit && slo.Empty() && r.clean("slo", "workload.mix") {
		r.absent("slo.ttft", `is missing, as is every other latency limit; want at least one, such as { p99 = "500ms" }`)
	}
}

// checkTokens refuses limits on the time between tokens for traffic in which no answer has a second token: they
// would have no effect.
func (r *reader) checkTokens(c *Config) {
	if len(c.Workload.Shapes)+len(c.Workload.Replay) == 0 || !r.clean("workload") {
		return
	}
	told := map[string]bool{}
	for _, b := range c.Objective.Bounds {
		key, of, remedy := "slo."+b.Metric.String(), "the workload", ""
		if b.Class != "" {
			key, of, remedy = "workload.mix", b.Class, "; tpot = {} in its slo takes the limit away"
		}
		if paced := b.Metric == measure.TPOT || b.Metric == measure.ITL; !paced || told[key+of] || longestOutput(c, b.Class) != 1 {
			continue
		}
		told[key+of] = true
		r.at(key).refuse("limits the time between tokens, and every answer of %s has one token; "+
			"want outputs of two tokens or more in workload.output, or only limits on ttft and e2e%s", of, remedy)
	}
}

// longestOutput returns the largest number of output tokens of a class, or of the workload for ""; 0 if
// unbounded.
func longestOutput(c *Config, class string) int {
	n := list.Largest(c.Workload.Replay, func(r workload.TraceRow) int { return r.Output })
	if n > 0 {
		return n
	}
	for _, s := range c.Workload.Shapes {
		if class != "" && s.Name != class {
			continue
		}
		longest := s.Output.Longest()
		if longest == 0 {
			return 0
		}
		n = max(n, longest)
	}
	return n
}

// throughput is the objective without any latency limit.
const throughput = "throughput"

// resolveJob makes the demand of a job, and refuses keys that belong to the other objective.
func (r *reader) resolveJob(c *Config) {
	d := &c.draft
	if d.objective != throughput {
		for key, given := range map[string]bool{"demand.tokens_per_day": d.tokensPerDay > 0, "demand.requests": d.job.Requests > 0, "demand.deadline": d.job.Deadline > 0} {
			r.at(key).refuseIf(given && r.clean("slo.objective"), `is given, want slo.objective = "throughput" besides, or demand.rate alone`)
		}
		return
	}
	for _, b := range c.Objective.Bounds {
		r.at("slo.objective").refuse(`is "throughput", want no latency limit besides; %s has one`, b)
	}
	r.at("demand.rate").refuseIf(r.given("demand.rate"), `is given, want tokens_per_day, or requests and deadline, because slo.objective is "throughput"`)
	r.warnIf(c.Demand.BurstIndex != 1 || c.Demand.MeanRate > 0 || c.Fleet.InTime(),
		"demand: burst_index, mean_rate and the traffic of [fleet] have no effect in a job, which the engines take as they can")
	if !r.given("demand.spare_instances") {
		c.Demand.Spare = 0 // unlike traffic, a job can wait
	}
	if !c.draft.need.Demand || !r.clean("demand", "slo", "workload") {
		return
	}
	j := d.job
	switch daily := d.tokensPerDay > 0; {
	case daily && (j.Requests > 0 || j.Deadline > 0):
		r.at("demand.tokens_per_day").refuse("is given, want no requests and deadline besides")
	case daily:
		prompt, output := c.Workload.MeanTokens()
		j = plan.Job{Requests: d.tokensPerDay / (prompt + output), Deadline: 24 * time.Hour, Daily: true}
	case j.Requests == 0 || j.Deadline == 0:
		r.absent("demand.tokens_per_day", `is missing, as are requests with a deadline, because slo.objective is "throughput"; want tokens_per_day = 1e9, or requests = 1e6 and deadline = "24h"`)
		return
	}
	c.Demand = c.Demand.JobDemand(j)
}
