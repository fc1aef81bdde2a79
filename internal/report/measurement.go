package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func measurementDocument(m measure.Measurement, e Engines) Document {
	d := Document{Title: outcomeOf(&m), Data: data([]measure.Measurement{m})}
	if !m.Ran() {
		d.add(Facts{{Label: "settings", Text: describe(m.Trial.Knobs, given(m.Trial.Knobs))}})
		addEngines(&d, &e, nil, nil)
		return d
	}
	latencies := latencyTable(&m)
	d.add(loadFacts(&m), latencies)
	marked := slices.ContainsFunc(slices.Concat(latencies.Rows...), func(c Cell) bool { return c.Text == unresolved })
	d.add(Paragraph{where(marked, unresolved+" : fewer than 12 requests are expected beyond it, so the sample does not tell"), Quiet})
	d.section("Objective", objectiveTable(&m), Paragraph{Text: clumpNote(&m), Tone: Quiet})
	d.section("By class", classTable(&m))
	d.section("Engine", serverFacts(&m))
	addEngines(&d, &e, []measure.Measurement{m}, nil)
	addWarnings(&d, m.Warnings)
	return d
}

func outcomeOf(m *measure.Measurement) string {
	if !m.Ran() {
		return "Cannot run: " + m.Rejected.Text
	}
	at := " at " + load(&m.Trial)
	switch {
	case m.Broken():
		return "Every request failed" + at + ": " + failures(m)
	case m.Verdict == nil:
		return "Measured" + at
	}
	var state string
	switch name := m.Verdict.State.String(); {
	case m.Valid:
		state = strings.ToUpper(name[:1]) + name[1:]
	case m.Verdict.State == measure.Missed:
		state = "Missed by more than the client explains"
	default:
		state = "Not valid"
	}
	s := state + at + behind(": ", objective(m.Trial.Objective))
	switch {
	case !m.Valid && m.Verdict.State == measure.Unsure && m.Verdict.Slack >= 0 && len(m.Warnings) > 0:
		return s + "; " + m.Warnings[0].String() // no limit is exceeded, and the first warning is the doubt
	case m.Verdict.Binding == "":
		return s
	}
	return s + "; " + decided(m)
}

// decided prints the binding bound and its figure; in an unsure verdict it is only the worst bound, and need
// not be the reason.
func decided(m *measure.Measurement) string {
	v := m.Verdict
	name := boundName(v.Binding)
	unsure := v.State == measure.Unsure
	if v.Binding == measure.ErrorsBound {
		return name + either(unsure, " are worst", " decide") + where(m.Failed > 0, ": "+failures(m))
	}
	s := name + either(unsure, " is worst", " decides")
	if b, ok := m.Trial.Objective.Bound(v.Binding); ok && finite(v.Slack) && m.Bounded(b) > 0 {
		return s + ", " + latency(m.Bounded(b))
	}
	if c, ok := m.Count(measure.ThroughputBound); ok && v.Binding == c.Bound && c.N > 0 {
		return s + ", " + percent(max(c.Value, 0)) + " of what came stayed"
	}
	return s
}

func loadFacts(m *measure.Measurement) Facts {
	t := &m.Trial
	asked, w := load(t), cmp.Or(t.Workload, &workload.Workload{})
	switch {
	case t.Closed():
		asked = fmt.Sprintf("%s at a time, %s requests in all", count(t.Concurrency), count(t.Requests))
	case t.Rate > 0:
		asked = rateMeant(t.Rate, w.Rates) + where(t.Workload != nil, ", "+string(w.Arrivals)+" arrivals")
	case t.Workload != nil:
		asked = "the trace on its own clock" + told(w.Rates, func(of workload.Rates) string { return " (" + traceRates(&of) + ")" })
	}
	asked += where(w.Class != "", ", "+w.Words()) + " for " + latency(m.Duration) + where(t.Warmup > 0, " after "+latency(t.Warmup)+" of warm-up")
	return slices.Concat(Facts{{"load", asked, Plain}}, traced(either(t.Rate > 0, w.Rates, nil)), Facts{
		{"done", fmt.Sprintf("%s requests/s (%s sent), %s output and %s prompt tokens/s", number(m.Achieved, 3), number(m.Sent, 3),
			number(m.OutputTokens, 3), number(m.PromptTokens, 3)), Plain},
		requestFact(m),
		{"goodput", where(m.Goodput >= 0 && m.Verdict != nil, number(m.Goodput, 3)+" requests/s met every bound"), Plain},
		{"overload", where(m.Overloaded, "the backlog kept growing: latencies depend on how long was measured"), Bad},
		{"ended early", m.Aborted.Text, Doubt},
		{"settings", describe(t.Knobs, given(t.Knobs)), Plain},
	})
}

func requestFact(m *measure.Measurement) Fact {
	if m.Failed == 0 {
		return Fact{Label: "requests", Text: count(m.Requests) + ", none failed"}
	}
	kinds := said(list.Map(slices.Sorted(maps.Keys(m.Failures)), func(kind string) string {
		return where(m.Failures[kind] > 0, count(m.Failures[kind])+" "+strings.ReplaceAll(kind, "_", " "))
	})...)
	return Fact{"requests", fmt.Sprintf("%s, %s failed (%s)", count(m.Requests), count(m.Failed), percent(float64(m.Failed)/float64(m.Requests))) + behind(": ", join(kinds)), Bad}
}

func latencyTable(m *measure.Measurement) Table {
	stats := list.Map(measure.Statistics, func(q float64) measure.Bound { return measure.Bound{Quantile: q} })
	tab := table(left("ms"), right(list.Map(stats, measure.Bound.Stat)...), right("p99 within (90 %)"), extra(right("samples")))
	row := func(name string, s *measure.Summary, metric measure.Metric, slo measure.SLO) {
		cells := list.Map(stats, func(stat measure.Bound) Cell {
			stat.Metric = metric
			return statCell(s, stat, slo)
		})
		w := s.Around(0.99)
		interval := Cell{Text: number(millis(w[0]), 3) + "-" + number(millis(w[1]), 3)}
		tab.row(name, cells, either(w[0] > 0 && s.P99 >= 0, interval, Cell{unknown, Quiet}), s.N)
	}
	for _, metric := range measure.AllLatencies() {
		row(strings.ToUpper(metric.String()), m.Latency(metric), metric, m.Trial.Objective)
	}
	if m.SendLag.N > 0 {
		row("send lag", &m.SendLag, 0, measure.SLO{})
	}
	return tab
}

// objectiveTable shows the counts behind the verdict.
func objectiveTable(m *measure.Measurement) Table {
	tab := table(left("bound"), right("limit", "seen", "beyond"), extra(right("within (90 %)", "of")), right("allowed"), left("decides"))
	for i, c := range m.Counts {
		limitText, seen, allowed := unknown, unknown, unknown
		if m.Trial.Objective.Errors >= 0 && c.Bound == measure.ErrorsBound {
			allowed = percent(m.Trial.Objective.Errors)
		}
		if i < len(m.Trial.Objective.Bounds) {
			b := m.Trial.Objective.Bounds[i]
			limitText, seen = limits(b), latency(m.Bounded(b))
			allowed = percent(either(b.Quantile == 0, 1, b.Allowed())) // of a mean, the limit
		}
		beyond := percent(c.Value)
		if c.Bound == measure.ThroughputBound { // negative if a backlog shrinks
			if c.N == 0 {
				continue
			}
			c.Value, c.Low, c.High = max(c.Value, 0), max(c.Low, 0), max(c.High, 0)
			limitText, seen, beyond = "what arrives", percent(c.Value)+" stayed", unknown
		}
		binds := m.Verdict != nil && m.Verdict.State != measure.Unsure && m.Verdict.Binding == c.Bound
		tab.row(boundName(c.Bound), limitText, seen, beyond, percent(c.Low)+" to "+percent(c.High), c.N, allowed, either(binds, verdict(m), Cell{}))
	}
	return tab
}

// clumpNote explains wide intervals of shares: requests beyond a limit come in clumps, and those of a short
// trial may all lie between two clumps.
func clumpNote(m *measure.Measurement) string {
	const wide = 0.1 // needs an explanation
	for i, c := range m.Counts {
		mean := i < len(m.Trial.Objective.Bounds) && m.Trial.Objective.Bounds[i].Quantile == 0
		if mean || c.Bound == measure.ErrorsBound || c.Bound == measure.ThroughputBound || c.N == 0 || c.High-c.Low < wide {
			continue
		}
		return "Intervals allow for clumps: late requests come together while a queue is long, so " + plural(c.N, "request") +
			" of one trial tell as much as far fewer independent ones. More load points, or a longer one, narrow them."
	}
	return ""
}

func classTable(m *measure.Measurement) Table {
	stats := tabulatedOfAll(m.Trial.Objective)
	tab := table(left("class"), right("requests", "failed"), latencyColumns(stats, measure.SLO{}))
	for _, name := range slices.Sorted(maps.Keys(m.Classes)) {
		c := m.Classes[name]
		tab.row(name, c.Requests, c.Failed, list.Map(stats, func(b measure.Bound) Cell { return statCell(c.Latency(b.Metric), b, measure.SLO{}) }))
	}
	return tab
}

func serverFacts(m *measure.Measurement) Facts {
	s := &m.Server
	return append(Facts{
		{"engine", cmp.Or(strings.TrimSpace(s.Engine.Kind+" "+s.Engine.Version), unknown), Plain},
		{"KV cache", told(s.KVBlocks, func(blocks int) string {
			return count(blocks) + " blocks" +
				told(s.BlockTokens, func(tokens int) string {
					replicas := m.Trial.Knobs.DataParallel
					return fmt.Sprintf(" of %s tokens, %s tokens ", count(tokens), count(blocks*tokens)) +
						either(replicas > 1, fmt.Sprintf("on each of %d attention replicas", replicas), "in all")
				}) +
				told(s.PeakKV, func(peak float64) string { return where(finite(peak), "; "+share(peak)+" in use at most") })
		}), Plain},
		{"preemptions", told(s.Preemptions, count), Plain},
		{"prefix cache", told(s.HitRate, func(found float64) string {
			return where(finite(found), percent(found)+" of the prompt tokens found")
		}), Plain},
	}, timeFacts(s.Time)...)
}
