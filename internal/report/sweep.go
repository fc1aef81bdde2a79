package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/design"
	"planner/sweep/measure"
)

func sweepDocument(s *design.Swept, e Engines) Document {
	d := Document{Title: sweptTitle(s), Data: data(s.Seen, "trial_of=why")}
	if s.Rows == nil {
		d.add(sweepTable(s.Seen, s.Objective))
		d.section("Latency against throughput", sweptCharts(s.Seen, s.Objective)...)
	}
	for _, r := range s.Rows {
		outcome := findings[r.Finding]
		d.section(r.ID+"  "+r.Name, Facts{{Label: "question", Text: r.Question}, {Label: "hypothesis", Text: r.Hypothesis}, {"outcome", outcome.Text + ": " + r.Outcome, outcome.Tone}})
		mine := list.Filter(s.Seen, func(m measure.Measurement) bool { return slices.Contains(r.Trials, m.Trial.Number) })
		d.add(sweepTable(mine, s.Objective))
	}
	which, cannot := apart(knobsOf(s.Rejected)), table(wrapped("settings", "reason"))
	for _, r := range s.Rejected {
		cannot.row(describe(r.Knobs, which), Cell{r.Reason.Text, Bad})
	}
	d.section("Cannot run", cannot)
	addEngines(&d, &e, s.Seen, nil)
	addWarnings(&d, s.Warnings.Notes)
	return d
}

// findings describe the result of a hypothesis.
var findings = map[design.HypothesisResult]Cell{
	design.Held: {"held", Good}, design.Refuted: {"refuted", Bad}, design.Unclear: {"undecided", Doubt}, design.NotRun: {"not run", Quiet},
}

func sweptTitle(s *design.Swept) string {
	ran := len(ran(s.Seen))
	if ran == 0 && len(s.Rejected) > 0 && s.Rows == nil {
		return "No trial could be run"
	}
	t := plural(ran, "trial")
	t += where(ran+len(s.Rejected) < s.Planned && len(s.Seen) < s.Planned, " of "+count(s.Planned))
	if s.Rows == nil {
		return t + " of " + plural(len(measure.KnobSets(s.Seen)), "set") + " of knobs"
	}
	parts := list.Map([]design.HypothesisResult{design.Held, design.Refuted, design.Unclear, design.NotRun}, func(f design.HypothesisResult) string {
		n := list.Count(s.Rows, func(r design.MatrixRow) bool { return r.Finding == f })
		return where(n > 0, fmt.Sprintf("%d %s", n, findings[f].Text))
	})
	return fmt.Sprintf("%s over %s of traffic: of the hypotheses %s", t, plural(len(s.Rows), "kind"), join(said(parts...)))
}

func sweepTable(trials []measure.Measurement, slo measure.SLO) Table {
	which := differing(measure.KnobSets(trials))
	var stats []measure.Bound
	for _, b := range tabulatedOfAll(slo) {
		if b.Quantile == 0.50 {
			stats = append(stats, measure.Bound{Metric: b.Metric})
		}
		stats = append(stats, b)
	}
	latencies := latencyColumns(stats, slo)
	for i, b := range stats {
		latencies[i].Extra = latencies[i].Extra || b.Quantile == 0
	}
	tab := table(wrapped("settings", "trial of"), left("load"), right("done, req/s"), latencies, extra(right("output tok/s", "cache hits")), left("verdict"),
		extra(wrapped("note")))
	for _, m := range ran(trials) {
		tab.ofTrial(m, values([]measure.Knobs{m.Trial.Knobs}, which), m.Trial.Why, load(&m.Trial), achieved(m), latencyCells(m, stats, slo),
			number(m.OutputTokens, 3), cmp.Or(told(m.Server.HitRate, percent), unknown), verdict(m), Cell{remark(m), Quiet})
	}
	return tab.known()
}

// sweptCharts draw each tabulated latency, by its highest quantile with a limit or else its median, against the
// completion rate, which is defined for closed loops, too.
func sweptCharts(trials []measure.Measurement, slo measure.SLO) (charts []Element) {
	for _, b := range tabulatedOfAll(slo) {
		if b.Quantile != 0.50 {
			continue
		}
		limits := list.Filter(slo.Bounds, func(l measure.Bound) bool { return l.Metric == b.Metric && l.Class == "" && l.Quantile > 0 })
		c := sweptChart(trials, b)
		if n := len(limits); n > 0 {
			tail := sweptChart(trials, limits[n-1])
			for _, l := range limits {
				tail.Limits = append(tail.Limits, Reference{millis(l.Limit), "limit: " + boundName(l.String()) + " " + limit(l.Limit)})
			}
			if len(tail.Series) > 0 {
				c = tail
			}
		}
		if len(c.Series) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

// sweptChart draws a statistic with a line for each set of knobs that has it at three loads or more.
func sweptChart(trials []measure.Measurement, stat measure.Bound) *Chart {
	sets := measure.KnobSets(trials)
	which, latency, name := differing(sets), strings.ToUpper(stat.Metric.String()), measure.StatName(stat.Quantile)
	c := &Chart{Name: stat.Metric.String() + "-throughput", XLabel: "completed requests/s", YLabel: latency + ", ms (log scale)",
		Title: name + " " + latency + " against throughput" + where(len(sets) > mostKinds, fmt.Sprintf(", the first %d of %d sets", mostKinds, len(sets)))}
	for _, k := range sets[:min(len(sets), mostKinds)] {
		l := Line{Name: cmp.Or(values([]measure.Knobs{k}, which), name)}
		for _, m := range byLoad(of(trials, k)) {
			s := m.Latency(stat.Metric)
			if y := s.Stat(stat.Quantile); y > 0 && m.Achieved > 0 {
				w := s.Around(stat.Quantile)
				l.Points = append(l.Points, ChartPoint{X: m.Achieved, Y: millis(y), Low: millis(cmp.Or(w[0], y)), High: millis(cmp.Or(w[1], y)),
					Overload: m.Overloaded, Trial: m.Trial.Number, Note: load(&m.Trial)})
			}
		}
		if len(l.Points) >= 3 {
			c.Series = append(c.Series, l)
		}
	}
	return c
}

// Imported builds the report of load points measured by other tools.
func Imported(folder string, trials []measure.Measurement) Document {
	d := Document{Title: fmt.Sprintf("%s in %s", plural(len(trials), "load point"), folder), Data: data(trials)}
	for _, k := range measure.KnobSets(trials) {
		mine := of(trials, k)
		tab := trialTable(mine, measure.SLO{})
		if len(measure.KnobSets(trials)) > 1 {
			tab.Caption = describe(k, differing(measure.KnobSets(trials)))
		}
		d.add(tab)
	}
	notes := slices.Concat(list.Map(trials, func(m measure.Measurement) note.Notes { return m.Warnings })...)
	addWarnings(&d, notes.Distinct())
	return d
}
