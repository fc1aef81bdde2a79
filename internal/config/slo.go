package config

import (
	"cmp"
	"slices"
	"time"

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
		{"slo.goodput", "least share of requests within all of its limits at once: { share = 0.95, any of ttft, tpot, e2e = limit }",
			func(d *draft) value { return goodput{&d.slo} }},
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

// goodput is the share of requests that must be within several limits at once.
type goodput struct{ slo *measure.SLO }

// goodputKeys are those of its table: the share, and the limits in the order of
// goodputLimits.
var goodputKeys = []string{"share", "ttft", "tpot", "e2e"}

func goodputLimits(l *measure.Limits) []*time.Duration {
	return []*time.Duration{&l.TTFT, &l.TPOT, &l.E2E}
}

func (v goodput) take(n node) {
	if !n.table(goodputKeys...) {
		return
	}
	before := len(n.r.problems)
	b := measure.Bound{Metric: measure.Goodput}
	if c, ok := n.child("share"); ok {
		b.Quantile, _ = readFloat(c.only(), share)
	} else if table, _ := n.value.(map[string]any); len(table) > 0 {
		n.refuse("has no share, want the least share of requests that meet its limits, such as share = 0.95")
	}
	given := false
	for i, limit := range goodputLimits(&b.Limits) {
		if c, ok := n.child(goodputKeys[1+i]); ok {
			given = true
			*limit, _ = readPeriod(c.only(), false)
		}
	}
	if b.Quantile > 0 && !given {
		n.refuse(`has no limit, want at least one of ttft, tpot, e2e, such as ttft = "500ms"`)
	}
	if given && len(n.r.problems) == before {
		v.slo.Bounds = append(v.slo.Bounds, b)
	}
}

func (v goodput) text() string {
	i := slices.IndexFunc(v.slo.Bounds, func(b measure.Bound) bool { return b.Metric == measure.Goodput })
	if i < 0 {
		return "{}"
	}
	b := v.slo.Bounds[i]
	names, values := []string{"share"}, map[string]string{"share": number(b.Quantile)}
	for i, limit := range goodputLimits(&b.Limits) {
		if *limit > 0 {
			names = append(names, goodputKeys[1+i])
			values[goodputKeys[1+i]] = quote(duration(*limit))
		}
	}
	return braces(names, func(name string) string { return values[name] })
}

// checkSLO orders the bounds, and asks for one where the command needs it.
func (r *reader) checkSLO(d *draft, need Need) {
	slices.SortStableFunc(d.slo.Bounds, func(a, b measure.Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(rank(a), rank(b)))
	})
	for _, b := range d.slo.Bounds {
		if d.search.Certify && b.Quantile == 0 {
			r.missing("search.certify", "slo", "is true, and %s bounds a mean, which counts of requests do not certify; want bounds on quantiles or goodput only", b)
		}
	}
	if need.Limit && d.slo.Empty() && r.clean("slo.ttft", "slo.tpot", "slo.itl", "slo.e2e", "slo.goodput") {
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
