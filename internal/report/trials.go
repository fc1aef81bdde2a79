package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

func ran(trials []measure.Measurement) []*measure.Measurement {
	return list.Pointers(trials, (*measure.Measurement).Ran)
}

// byLoad returns the trials that ran, ordered by rate; closed loops come first, by concurrency.
func byLoad(trials []measure.Measurement) []*measure.Measurement {
	out := ran(trials)
	slices.SortStableFunc(out, func(a, b *measure.Measurement) int {
		return cmp.Or(cmp.Compare(a.Trial.Rate, b.Trial.Rate), cmp.Compare(a.Trial.Concurrency, b.Trial.Concurrency))
	})
	return out
}

// trialTable lists measurements of one set of knobs by load, one per row.
func trialTable(trials []measure.Measurement, slo measure.SLO) Table {
	stats := tabulated(slo)
	tab := table(left("load"), right("done, req/s"), extra(right("requests", "prompt tokens", "answer tokens")), latencyColumns(stats, slo), right("beyond the limit"), extra(left("of")),
		left("verdict"), extra(wrapped("note")))
	for _, m := range byLoad(trials) {
		tab.ofTrial(m, load(&m.Trial), achieved(m), some(m.Requests), someOf(m.MeanPrompt, 4), someOf(m.MeanOutput, 4), latencyCells(m, stats, slo), beyondShare(m), binding(m), verdict(m), Cell{cmp.Or(remark(m), m.Trial.Why), Quiet})
	}
	return tab.known()
}

func (tab *Table) ofTrial(m *measure.Measurement, cells ...any) {
	tab.row(cells...)
	tab.Trials = append(tab.Trials, m.Trial.Number)
}

// tabulated returns the statistics that get a column: if classes have bounds, those; otherwise TTFT, TPOT and
// other bounded metrics.
func tabulated(slo measure.SLO) []measure.Bound {
	ofClasses := list.Filter(slo.Bounds, func(b measure.Bound) bool { return b.Class != "" && b.Metric != measure.Goodput })
	if len(ofClasses) == 0 {
		return tabulatedOfAll(slo)
	}
	return list.Map(ofClasses, func(b measure.Bound) measure.Bound {
		return measure.Bound{Metric: b.Metric, Class: b.Class, Quantile: b.Quantile}
	})
}

// tabulatedOfAll returns the statistics of all requests that get a column.
func tabulatedOfAll(slo measure.SLO) []measure.Bound {
	metrics := append(slo.Metrics(), measure.TTFT, measure.TPOT)
	slices.Sort(metrics)
	var out []measure.Bound
	for _, m := range slices.Compact(metrics) {
		for _, q := range quantiles(slo, m) {
			out = append(out, measure.Bound{Metric: m, Quantile: q})
		}
	}
	return out
}

// quantiles returns p50 and the bounded quantiles of a metric, or p99 if none is bounded.
func quantiles(slo measure.SLO, m measure.Metric) []float64 {
	bounds := list.Filter(slo.Bounds, func(b measure.Bound) bool { return b.Metric == m })
	out := list.Distinct(append([]float64{0.50}, list.Map(bounds, func(b measure.Bound) float64 { return b.Quantile })...))
	if len(out) == 1 {
		out = append(out, 0.99)
	}
	slices.Sort(out)
	return out
}

func load(t *measure.Trial) string {
	switch {
	case t.Closed():
		return "concurrency " + count(t.Concurrency)
	case t.Rate > 0:
		if w := t.Workload; w != nil && w.Rates.Peak() != 1 {
			return fmt.Sprintf("%s req/s (mean %s)", number(t.Rate, 3), number(w.MeanRate(t.Rate), 3))
		}
		return number(t.Rate, 3) + " req/s"
	}
	return "trace"
}

// achieved returns the completed rate; if results of other tools lack it, it is unknown, not 0.
func achieved(m *measure.Measurement) string {
	if m.Requests == 0 || m.Achieved == 0 && m.Failed < m.Requests && m.TTFT.N+m.E2E.N > 0 {
		return unknown
	}
	return number(m.Achieved, 3)
}

// latencyColumns are the columns of statistics; those without a limit are extra if others have one.
func latencyColumns(stats []measure.Bound, slo measure.SLO) []Column {
	return list.Map(stats, func(b measure.Bound) Column {
		bounded := slices.ContainsFunc(slo.Bounds, func(o measure.Bound) bool { o.Limit = b.Limit; return o.String() == b.String() })
		return Column{Name: boundName(b.String()) + ", ms", Right: true, Extra: len(slo.Bounds) > 0 && !bounded}
	})
}

func latencyCells(m *measure.Measurement, stats []measure.Bound, slo measure.SLO) []Cell {
	return list.Map(stats, func(b measure.Bound) Cell {
		c := statCell(m.Of(b.Class).Latency(b.Metric), b, slo)
		return either(c.Text == unresolved, Cell{unknown, Quiet}, c)
	})
}

// unresolved marks a quantile for which the sample is too small.
const unresolved = "?"

// statCell prints a statistic in milliseconds, coloured by its limit, although verdicts rest on counts.
func statCell(s *measure.Summary, stat measure.Bound, slo measure.SLO) Cell {
	v := s.Stat(stat.Quantile)
	if v < 0 || v == 0 && s.N == 0 { // tables of other tools may give latencies without counts
		return either(s.N > 0, Cell{unresolved, Doubt}, Cell{unknown, Quiet})
	}
	beyond := slices.ContainsFunc(slo.Bounds, func(b measure.Bound) bool {
		return b.Metric == stat.Metric && b.Class == stat.Class && b.Quantile == stat.Quantile && v > b.Limit
	})
	return Cell{number(millis(v), 3), either(beyond, Bad, Plain)}
}

func binding(m *measure.Measurement) string {
	if m.Verdict == nil {
		return unknown
	}
	return boundName(m.Verdict.Binding)
}

// beyondShare returns the share of requests beyond the binding limit, or for a mean its ratio to the limit.
func beyondShare(m *measure.Measurement) string {
	if m.Verdict == nil {
		return unknown
	}
	c, ok := m.Count(m.Verdict.Binding)
	return either(ok && c.N > 0, percent(c.Value), unknown)
}

// remark says what else a reader of a row should know; "" if nothing.
func remark(m *measure.Measurement) string {
	switch {
	case 2*m.Failed > m.Requests, m.Failed > 0 && m.Verdict != nil && m.Verdict.State == measure.Missed && m.Verdict.Binding == measure.ErrorsBound:
		return failures(m)
	case m.Aborted.Text != "":
		return "ended early: " + m.Aborted.Text
	case m.Overloaded:
		return "overloaded: the backlog kept growing"
	case !m.Valid && len(m.Warnings) > 0:
		return m.Warnings[0].String()
	case m.Failed > 0:
		return failures(m)
	}
	return ""
}

// failures says how most failed requests of a trial failed, or else how many did.
func failures(m *measure.Measurement) string {
	return cmp.Or(m.Complaint(), fmt.Sprintf("%s failed", count(m.Failed)))
}

// summaryTable says, for every set of knobs, how many trials it got and between which loads its limit lies.
// Sets with equal limits share a row, except for the chosen one.
func summaryTable(trials []measure.Measurement, chosen measure.Knobs) Table {
	all := measure.KnobSets(trials)
	which := differing(all)
	if i := slices.Index(all, chosen); i > 0 { // it comes first
		all = slices.Insert(slices.Delete(all, i, i+1), 0, chosen)
	}
	tab := table(wrapped("settings"), right("trials"), extra(right("engine time")), right("highest met, req/s", "lowest missed, req/s"),
		left("limited by"))
	alike := list.Groups(all, func(k measure.Knobs) [4]string {
		met, missed, binding := limitsOf(trials, k)
		return [4]string{met, missed, binding, where(k == chosen, "chosen")}
	})
	for _, sets := range alike {
		name, n, held := Cell{Text: describe(sets[0], which)}, 0, time.Duration(0)
		switch {
		case sets[0] == chosen:
			name = Cell{name.Text + " (chosen)", Strong}
		case len(sets) > 1:
			name.Text = plural(len(sets), "set") + ": " + values(sets, which)
		}
		for _, k := range sets {
			for _, m := range measure.RanWith(trials, k) {
				n, held = n+1, held+m.EngineTime(0)
			}
		}
		met, missed, binding := limitsOf(trials, sets[0])
		tab.row(name, n, latency(held), met, missed, binding)
	}
	tab.first("groups", "journal, trial by trial")
	return tab
}

// limitsOf returns the rates between which the limit of a set of knobs lies, and the bound that is missed.
func limitsOf(trials []measure.Measurement, k measure.Knobs) (highestMet, lowestMissed, binding string) {
	var met, missed float64 // 0 if there is none
	for _, m := range measure.RanWith(trials, k) {
		if m.Verdict == nil || !m.Valid || m.Trial.Closed() {
			continue
		}
		switch {
		case m.Verdict.State == measure.Met:
			met = max(met, m.Trial.Rate)
		case m.Verdict.State == measure.Missed && (missed == 0 || m.Trial.Rate < missed):
			missed, binding = m.Trial.Rate, m.Verdict.Binding
		}
	}
	return someOf(met, 3), someOf(missed, 3), boundName(binding)
}
