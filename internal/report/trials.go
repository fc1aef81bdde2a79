package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"planner/sweep/measure"
)

// trialTable lists measurements of one set of knobs, one a row, by load.
func trialTable(trials []measure.Measurement, slo measure.SLO) Table {
	tab := Table{Columns: []Column{
		{Name: "load"}, {Name: "done, req/s", Right: true}, {Name: "requests", Right: true, Extra: true},
	}}
	metrics := tabulated(slo)
	for _, m := range metrics {
		for _, q := range quantiles(slo, m) {
			tab.Columns = append(tab.Columns, Column{Name: boundName(measure.Bound{Metric: m, Quantile: q}.String()) + ", ms", Right: true})
		}
	}
	judged := len(slo.Bounds) > 0
	if judged {
		tab.Columns = append(tab.Columns, Column{Name: "beyond the limit", Right: true}, Column{Name: "of", Extra: true}, Column{Name: "verdict"})
	}
	tab.Columns = append(tab.Columns, Column{Name: "note", Wrap: true, Extra: true})
	for _, m := range byLoad(trials) {
		row := []Cell{{Text: load(&m.Trial)}, {Text: unknown}, {Text: unknown}}
		if m.Requests > 0 {
			row[1].Text, row[2].Text = achieved(m), count(m.Requests)
		}
		for _, metric := range metrics {
			for _, q := range quantiles(slo, metric) {
				row = append(row, latencyCell(m, metric, q, slo))
			}
		}
		if judged {
			share, of := beyondCells(m)
			row = append(row, share, of, verdict(m))
		}
		tab.Rows = append(tab.Rows, append(row, Cell{Text: remark(m), Tone: Quiet}))
	}
	return tab.known()
}

// byLoad orders measurements by rate, closed loops first by concurrency, and
// leaves out rejected ones.
func byLoad(trials []measure.Measurement) []*measure.Measurement {
	var out []*measure.Measurement
	for i := range trials {
		if trials[i].Rejected == "" {
			out = append(out, &trials[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *measure.Measurement) int {
		return cmp.Or(cmp.Compare(a.Trial.Rate, b.Trial.Rate), cmp.Compare(a.Trial.Concurrency, b.Trial.Concurrency))
	})
	return out
}

// tabulated are the metrics worth a column: TTFT and TPOT, and what is bounded.
func tabulated(slo measure.SLO) []measure.Metric {
	metrics := append(slo.Metrics(), measure.TTFT, measure.TPOT)
	slices.Sort(metrics)
	return slices.Compact(metrics)
}

// quantiles are p50, and of a metric those that are bounded, p99 if none is.
func quantiles(slo measure.SLO, m measure.Metric) []float64 {
	out := []float64{0.50}
	for _, b := range slo.Bounds {
		if b.Metric == m && !slices.Contains(out, b.Quantile) {
			out = append(out, b.Quantile)
		}
	}
	if len(out) == 1 {
		out = append(out, 0.99)
	}
	slices.Sort(out)
	return out
}

// load names what a trial asked for.
func load(t *measure.Trial) string {
	switch {
	case t.Closed():
		return "concurrency " + count(t.Concurrency)
	case t.Rate > 0:
		return number(t.Rate, 3) + " req/s"
	}
	return "trace"
}

// achieved is the completed rate. Results of others may not hold it, which is not
// to be read as a server that completed nothing.
func achieved(m *measure.Measurement) string {
	if m.Achieved == 0 && m.Failed < m.Requests && m.TTFT.N+m.E2E.N > 0 {
		return unknown
	}
	return number(m.Achieved, 3)
}

// latencyCell is a statistic in milliseconds, coloured by its limit; the verdict
// is not made of it but of counts.
func latencyCell(m *measure.Measurement, metric measure.Metric, q float64, slo measure.SLO) Cell {
	s := m.Latency(metric)
	v := s.Stat(q)
	if !resolved(s, v) {
		return Cell{Text: unknown, Tone: Quiet}
	}
	c := Cell{Text: number(millis(v), 3)}
	for _, b := range slo.Bounds {
		if b.Metric == metric && b.Quantile == q && v > b.Limit {
			c.Tone = Bad
		}
	}
	return c
}

// resolved reports whether a statistic of a summary is known. A table from
// elsewhere may give latencies without saying of how many requests.
func resolved(s *measure.Summary, v time.Duration) bool { return v > 0 || v == 0 && s.N > 0 }

// beyondCells give the share of requests beyond the limit that binds, and which
// limit that is. For a bound on a mean it is the mean over its limit.
func beyondCells(m *measure.Measurement) (share, of Cell) {
	if m.Verdict == nil {
		return Cell{Text: unknown}, Cell{Text: unknown}
	}
	of = Cell{Text: boundName(m.Verdict.Binding)}
	c, ok := m.Count(m.Verdict.Binding)
	if !ok || c.N == 0 || !finite(c.Value) {
		return Cell{Text: unknown}, of
	}
	return Cell{Text: portion(c.Value)}, of
}

// remark says what a reader of a row should know besides.
func remark(m *measure.Measurement) string {
	switch {
	case m.Aborted != "":
		return "ended early: " + m.Aborted
	case m.Overloaded:
		return "overloaded: the backlog kept growing"
	case !m.Valid && len(m.Warnings) > 0:
		return m.Warnings[0].String()
	case m.Failed > 0:
		return fmt.Sprintf("%s failed", count(m.Failed))
	}
	return m.Trial.Why
}

// summaryTable says of every set of knobs how many trials it got and between
// which loads its limit lies. Sets other than the chosen one that came to the
// same share a row.
func summaryTable(trials []measure.Measurement, chosen measure.Knobs) Table {
	all := sets(trials)
	which := differing(all)
	tab := Table{Columns: []Column{
		{Name: "settings", Wrap: true}, {Name: "trials", Right: true}, {Name: "engine time", Right: true, Extra: true},
		{Name: "highest met, req/s", Right: true}, {Name: "lowest missed, req/s", Right: true}, {Name: "limited by"},
	}}
	rows := fold(trials, all, chosen)
	if len(rows) > mostRows {
		tab.Caption = fmt.Sprintf("The first %d of %d groups; all trials stand in the journal.", mostRows, len(rows))
		rows = rows[:mostRows]
	}
	for _, f := range rows {
		name := Cell{Text: describe(f.sets[0], which)}
		switch {
		case f.sets[0] == chosen:
			name = Cell{name.Text + " (chosen)", Strong}
		case len(f.sets) > 1:
			name.Text = plural(len(f.sets), "set") + ": " + values(f.sets, which)
		}
		tab.Rows = append(tab.Rows, []Cell{name, {Text: count(f.trials)}, {Text: latency(f.time)}, {Text: rateCell(f.met)}, {Text: rateCell(f.missed)},
			{Text: boundName(f.binding)}})
	}
	return tab
}

// rateCell prints a rate that is 0 when there is none.
func rateCell(v float64) string {
	if v <= 0 {
		return unknown
	}
	return number(v, 3)
}

// folded are sets of knobs that came to the same, with their trials together.
type folded struct {
	setSummary
	sets []measure.Knobs
}

// fold joins the sets whose limit lies between the same rates, as printed, and
// is the same bound. The chosen set comes first, alone.
func fold(trials []measure.Measurement, all []measure.Knobs, chosen measure.Knobs) []folded {
	var out []folded
	for _, k := range all {
		s := summarize(trials, k)
		i := slices.IndexFunc(out, func(f folded) bool {
			return k != chosen && f.sets[0] != chosen && f.binding == s.binding && rateCell(f.met) == rateCell(s.met) && rateCell(f.missed) == rateCell(s.missed)
		})
		switch {
		case i >= 0:
			out[i].sets = append(out[i].sets, k)
			out[i].trials += s.trials
			out[i].time += s.time
		case k == chosen:
			out = append([]folded{{s, []measure.Knobs{k}}}, out...)
		default:
			out = append(out, folded{s, []measure.Knobs{k}})
		}
	}
	return out
}

// setSummary is what the trials of one set of knobs came to; a rate is 0 if none
// was met or missed.
type setSummary struct {
	trials      int
	time        time.Duration
	met, missed float64
	binding     string
}

func summarize(trials []measure.Measurement, k measure.Knobs) setSummary {
	var s setSummary
	for i := range trials {
		m := &trials[i]
		if m.Trial.Knobs != k || m.Rejected != "" {
			continue
		}
		s.trials++
		s.time += m.Trial.Warmup + m.Duration
		if m.Verdict == nil || !m.Valid || m.Trial.Closed() {
			continue
		}
		switch {
		case m.Verdict.State == measure.Met:
			s.met = max(s.met, m.Trial.Rate)
		case m.Verdict.State == measure.Missed && (s.missed == 0 || m.Trial.Rate < s.missed):
			s.missed, s.binding = m.Trial.Rate, m.Verdict.Binding
		}
	}
	return s
}
