package config

import (
	"slices"

	"planner/sweep/measure"
)

// goodput is the share of requests that must be within several limits at once, an
// empty table where there is none.
func goodput() codec[measure.Bound] {
	return tableWith(func(b *measure.Bound) []row {
		limit := orNothing(durationIn(above(0)))
		return []row{
			{"share", ": the least share of requests that meet its limits", orNothing(share()).in(&b.Quantile)},
			{"ttft", "", limit.in(&b.Limits.TTFT)},
			{"tpot", "", limit.in(&b.Limits.TPOT)},
			{"e2e", "", limit.in(&b.Limits.E2E)},
		}
	}, "share")
}

// resolveSLO lists the bounds by metric and statistic, and asks for one where the
// command needs it.
func (r *reader) resolveSLO(c *Config) {
	slo, good := &c.Objective, c.draft.goodput
	for m, limits := range c.draft.limits {
		for _, stat := range measure.Stats() {
			if limit, ok := limits[stat]; ok {
				quantile, _ := measure.ParseStat(stat)
				slo.Bounds = append(slo.Bounds, measure.Bound{Metric: measure.Metric(m), Quantile: quantile, Limit: limit})
			}
		}
	}
	switch {
	case good.Quantile > 0 && good.Limits == (measure.Limits{}):
		r.at("slo.goodput").refuse(`has no limit, want at least one of ttft, tpot, e2e, such as ttft = "500ms"`)
	case good.Quantile > 0:
		good.Metric = measure.Goodput
		slo.Bounds = append(slo.Bounds, good)
	}
	for _, b := range slo.Bounds {
		if c.Search.Certify && b.Quantile == 0 {
			r.missing("search.certify", "slo", "is true, and %s bounds a mean, which counts of requests do not certify; want bounds on quantiles or goodput only", b)
		}
	}
	if c.need.Limit && slo.Empty() && r.clean("slo.ttft", "slo.tpot", "slo.itl", "slo.e2e", "slo.goodput") {
		r.absent("slo.ttft", `is missing, as is every other latency limit; want at least one, such as { p99 = "500ms" }`)
	}
}

// checkTokens refuses limits on the time between tokens for traffic in which no
// answer has a second one: nothing would ever show them.
func (r *reader) checkTokens(c *Config) {
	if len(c.Workload.Shapes)+len(c.Workload.Replay) == 0 || !r.clean("workload") || longestOutput(c) != 1 {
		return
	}
	for _, m := range []measure.Metric{measure.TPOT, measure.ITL} {
		if i := slices.IndexFunc(c.Objective.Bounds, func(b measure.Bound) bool { return b.Metric == m }); i >= 0 {
			r.at("slo." + m.String()).refuse("limits the time between tokens, and every answer of the workload has one token; " +
				"want outputs of two tokens or more in workload.output, or only limits on ttft and e2e")
		}
	}
}

// longestOutput is the largest number of tokens that an answer of the workload may
// have; 0 where there is no limit.
func longestOutput(c *Config) int {
	n := 0
	for _, row := range c.Workload.Replay {
		n = max(n, row.Output)
	}
	if n > 0 {
		return n
	}
	for _, s := range c.Workload.Shapes {
		longest := s.Output.Longest()
		if longest == 0 {
			return 0
		}
		n = max(n, longest)
	}
	return n
}
