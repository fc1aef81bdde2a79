package report

import (
	"fmt"
	"slices"
	"strings"

	"planner/sweep/design"
	"planner/sweep/measure"
)

// sweepDocument is the report of measured trials over a grid or a matrix.
func sweepDocument(s *design.Swept, e Engines) Document {
	d := Document{Title: sweptTitle(s), Data: sweepData(s.Seen)}
	if s.Rows == nil {
		d.add(sweepTable(s.Seen, s.Objective))
	}
	for _, r := range s.Rows {
		d.section(r.ID+"  "+r.Name, Facts{{Label: "question", Text: r.Question}, {Label: "hypothesis", Text: r.Hypothesis}, outcomePair(r)})
		mine := slices.DeleteFunc(slices.Clone(s.Seen), func(m measure.Measurement) bool { return !slices.Contains(r.Trials, m.Trial.Number) })
		if len(mine) > 0 {
			d.add(sweepTable(mine, s.Objective))
		}
	}
	if len(s.Rejected) > 0 {
		d.section("Cannot run", rejectedTable(s.Rejected))
	}
	addEngines(&d, &e, s.Seen, nil)
	addWarnings(&d, s.Warnings.Notes)
	return d
}

// outcomePair is the outcome of a hypothesis.
func outcomePair(r design.MatrixRow) Fact {
	switch r.Finding {
	case design.Held:
		return Fact{"outcome", "held: " + r.Outcome, Good}
	case design.Refuted:
		return Fact{"outcome", "refuted: " + r.Outcome, Bad}
	case design.NotRun:
		return Fact{"outcome", "not run: " + r.Outcome, Quiet}
	}
	return Fact{"outcome", "undecided: " + r.Outcome, Doubt}
}

// sweptTitle is the sweep in one line.
func sweptTitle(s *design.Swept) string {
	ran := 0
	for i := range s.Seen {
		if s.Seen[i].Rejected == "" {
			ran++
		}
	}
	if ran == 0 && len(s.Rejected) > 0 && s.Rows == nil {
		return "No trial could be run"
	}
	t := plural(ran, "trial")
	if ran+len(s.Rejected) < s.Planned && len(s.Seen) < s.Planned {
		t += fmt.Sprintf(" of %s", count(s.Planned))
	}
	if s.Rows == nil {
		return t + " of " + plural(len(sets(s.Seen)), "set") + " of knobs"
	}
	counts := map[design.Finding]int{}
	for _, r := range s.Rows {
		counts[r.Finding]++
	}
	var parts []string
	for _, f := range []design.Finding{design.Held, design.Refuted, design.Unclear, design.NotRun} {
		if n := counts[f]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(f), "_", " ")))
		}
	}
	return fmt.Sprintf("%s over %s of traffic: of the hypotheses %s", t, plural(len(s.Rows), "kind"), join(parts))
}

// sweepTable lists trials in their own order, with the knobs in which they differ.
func sweepTable(trials []measure.Measurement, slo measure.SLO) Table {
	which := differing(sets(trials))
	tab := Table{Columns: []Column{{Name: "settings", Wrap: true}, {Name: "trial of", Wrap: true}, {Name: "load"}, {Name: "done, req/s", Right: true}}}
	for _, m := range []string{"TTFT", "TPOT"} {
		for _, stat := range []string{"mean", "p50", "p99"} {
			tab.Columns = append(tab.Columns, Column{Name: stat + " " + m + ", ms", Right: true, Extra: stat == "mean"})
		}
	}
	tab.Columns = append(tab.Columns, Column{Name: "output tok/s", Right: true}, Column{Name: "cache hits", Right: true, Extra: true},
		Column{Name: "verdict"}, Column{Name: "note", Wrap: true, Extra: true})
	for i := range trials {
		m := &trials[i]
		if m.Rejected != "" {
			continue
		}
		settings := describe(m.Trial.Knobs, which)
		if settings == "the same" {
			settings = unknown
		}
		row := []Cell{{Text: settings}, {Text: m.Trial.Why}, {Text: load(&m.Trial)}, {Text: achieved(m)}}
		for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT} {
			for _, q := range []float64{0, 0.50, 0.99} {
				row = append(row, latencyCell(m, metric, q, slo))
			}
		}
		hits := unknown
		if share := m.Server.HitRate; share != nil {
			hits = percent(*share)
		}
		text := remark(m)
		if text == m.Trial.Why {
			text = ""
		}
		tab.Rows = append(tab.Rows, append(row, Cell{Text: number(m.OutputTokens, 3)}, Cell{Text: hits}, verdict(m), Cell{Text: text, Tone: Quiet}))
	}
	if len(tab.Rows) == 0 {
		return tab
	}
	out := tab.known()
	if len(sets(trials)) < 2 {
		out = out.without("settings")
	}
	return out
}

// without drops the first column if it has that name.
func (tab Table) without(name string) Table {
	if tab.Columns[0].Name != name {
		return tab
	}
	out := Table{Caption: tab.Caption, Columns: tab.Columns[1:]}
	for _, row := range tab.Rows {
		out.Rows = append(out.Rows, row[1:])
	}
	return out
}

// sweepData is the data of the trials with what each was a trial of.
func sweepData(trials []measure.Measurement) Data {
	d := data(trials)
	d.Header = slices.Insert(d.Header, 1, "trial_of")
	i := 0
	for k := range trials {
		if trials[k].Rejected == "" {
			d.Rows[i] = slices.Insert(d.Rows[i], 1, trials[k].Trial.Why)
			i++
		}
	}
	return d
}

func rejectedTable(all []measure.Rejection) Table {
	var knobSets []measure.Knobs
	for _, r := range all {
		knobSets = append(knobSets, r.Knobs)
	}
	which := differing(knobSets)
	if len(all) == 1 {
		which = given(all[0].Knobs)
	}
	tab := Table{Columns: []Column{{Name: "settings", Wrap: true}, {Name: "reason", Wrap: true}}}
	for _, r := range all {
		tab.Rows = append(tab.Rows, []Cell{{Text: describe(r.Knobs, which)}, {Text: r.Reason, Tone: Bad}})
	}
	return tab
}
