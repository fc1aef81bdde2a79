package config

import (
	"cmp"
	"slices"

	"planner/sweep/measure"
)

// boundsOn is the binding of the limits on one latency.
func boundsOn(metric measure.Metric, slo *measure.SLO) binding {
	text := func() string {
		var stats []string
		limits := map[string]string{}
		for _, b := range slo.Bounds {
			if b.Metric == metric {
				stats = append(stats, b.Stat())
				limits[b.Stat()] = period.print(b.Limit)
			}
		}
		return braces(stats, func(stat string) string { return limits[stat] })
	}
	return binding{func(n input) { n.takeBounds(metric, slo) }, text}
}

func (n input) takeBounds(metric measure.Metric, slo *measure.SLO) {
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong(`a table of limits, such as { p99 = "500ms" }`)
		return
	}
	for _, c := range n.children() {
		quantile, err := measure.ParseStat(c.name)
		if err != nil {
			c.refuse("is no statistic, the nearest is %s; want one of p50, p90, p95, p99, \"p99.9\", mean",
				nearest(c.name, measure.Stats()))
			continue
		}
		limit, ok := period.read(c.only())
		if !ok {
			continue
		}
		bound := measure.Bound{Metric: metric, Quantile: quantile, Limit: limit}
		if slices.ContainsFunc(slo.Bounds, func(b measure.Bound) bool { return b.String() == bound.String() }) {
			c.refuse(`is given twice, want either p999 or "p99.9"`)
			continue
		}
		slo.Bounds = append(slo.Bounds, bound)
	}
}

// goodputParts are the keys of a goodput in the order in which they are printed.
func goodputParts(b *measure.Bound) []part {
	return []part{
		{"share", share.in(&b.Quantile), b.Quantile > 0},
		{"ttft", period.in(&b.Limits.TTFT), b.Limits.TTFT > 0},
		{"tpot", period.in(&b.Limits.TPOT), b.Limits.TPOT > 0},
		{"e2e", period.in(&b.Limits.E2E), b.Limits.E2E > 0},
	}
}

// goodputOf is the binding of the share of requests that must be within several limits
// at once.
func goodputOf(slo *measure.SLO) binding {
	take := func(n input) {
		before := len(n.r.problems)
		b := measure.Bound{Metric: measure.Goodput}
		parts := goodputParts(&b)
		if !n.table(names(parts)...) {
			return
		}
		given := 0
		for _, p := range parts {
			if n.maybe(p.name, p.binding) {
				given++
			}
		}
		_, hasShare := n.child("share")
		switch {
		case given > 0 && !hasShare:
			n.refuse("has no share, want the least share of requests that meet its limits, such as share = 0.95")
		case given == 1 && b.Quantile > 0:
			n.refuse(`has no limit, want at least one of ttft, tpot, e2e, such as ttft = "500ms"`)
		case given > 1 && len(n.r.problems) == before:
			slo.Bounds = append(slo.Bounds, b)
		}
	}
	return binding{take, func() string {
		for i := range slo.Bounds {
			if b := &slo.Bounds[i]; b.Metric == measure.Goodput {
				return printParts(goodputParts(b))
			}
		}
		return "{}"
	}}
}

// checkSLO orders the bounds, and asks for one where the command needs it.
func (r *reader) checkSLO(c *Config) {
	slices.SortStableFunc(c.Objective.Bounds, func(a, b measure.Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(rank(a), rank(b)))
	})
	for _, b := range c.Objective.Bounds {
		if c.Search.Certify && b.Quantile == 0 {
			r.missing("search.certify", "slo", "is true, and %s bounds a mean, which counts of requests do not certify; want bounds on quantiles or goodput only", b)
		}
	}
	if c.need.Limit && c.Objective.Empty() && r.clean("slo.ttft", "slo.tpot", "slo.itl", "slo.e2e", "slo.goodput") {
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

// rank puts the mean behind the quantiles.
func rank(b measure.Bound) float64 {
	if b.Quantile == 0 {
		return 2
	}
	return b.Quantile
}
