package config

import (
	"cmp"
	"slices"

	"planner/sweep/measure"
)

// sloKeys are the keys of [slo].
func sloKeys() []key {
	metric := func(m measure.Metric) func(*draft) value {
		return func(d *draft) value { return bounds{&d.slo, m} }
	}
	return []key{
		{"slo.ttft", `time to first token: any of { p50 | p90 | p95 | p99 | "p99.9" | mean = limit }`, metric(measure.TTFT)},
		{"slo.tpot", "time per output token after the first, one figure a request", metric(measure.TPOT)},
		{"slo.itl", "time between two tokens, one figure a token", metric(measure.ITL)},
		{"slo.e2e", "time of a whole request", metric(measure.E2E)},
		{"slo.errors", "largest share of failed requests", func(d *draft) value { return float{&d.slo.Errors, shareOrZero} }},
	}
}

// bounds are the limits on one latency.
type bounds struct {
	slo    *measure.SLO
	metric measure.Metric
}

func (v bounds) take(n node) {
	table, ok := n.value.(map[string]any)
	if !ok {
		n.wrong(`a table of limits, such as { p99 = "500ms" }`)
		return
	}
	for _, stat := range n.r.children(n.path, table) {
		c, _ := n.child(stat)
		quantile, err := measure.ParseStat(stat)
		if err != nil {
			c.refuse("is no statistic, the nearest is %s; want one of p50, p90, p95, p99, \"p99.9\", mean",
				nearest(stat, measure.Stats()))
			continue
		}
		limit, ok := readPeriod(c.only(), false)
		if !ok {
			continue
		}
		bound := measure.Bound{Metric: v.metric, Quantile: quantile, Limit: limit}
		if slices.ContainsFunc(v.slo.Bounds, func(b measure.Bound) bool { return b.String() == bound.String() }) {
			c.refuse(`is given twice, want either p999 or "p99.9"`)
			continue
		}
		v.slo.Bounds = append(v.slo.Bounds, bound)
	}
}

func (v bounds) text() string {
	var stats []string
	limits := map[string]string{}
	for _, b := range v.slo.Bounds {
		if b.Metric == v.metric {
			stats = append(stats, b.Stat())
			limits[b.Stat()] = quote(duration(b.Limit))
		}
	}
	return braces(stats, func(stat string) string { return limits[stat] })
}

// checkSLO orders the bounds, and asks for one where the command needs it.
func (r *reader) checkSLO(d *draft, need Need) {
	slices.SortStableFunc(d.slo.Bounds, func(a, b measure.Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(rank(a), rank(b)))
	})
	if need.Limit && d.slo.Empty() && r.clean("slo.ttft", "slo.tpot", "slo.itl", "slo.e2e") {
		r.absent("slo.ttft", `is missing, as is every other latency limit; want at least one, such as { p99 = "500ms" }`)
	}
}

// rank puts the mean behind the quantiles.
func rank(b measure.Bound) float64 {
	if b.Quantile == 0 {
		return 2
	}
	return b.Quantile
}
