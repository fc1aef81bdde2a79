package report

import (
	"fmt"
	"slices"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/design"
	"planner/sweep/measure"
)

func sweepDocument(s *design.Swept, e Engines) Document {
	d := Document{Title: sweptTitle(s), Data: data(s.Seen, "trial_of=why")}
	if s.Rows == nil {
		d.add(sweepTable(s.Seen, s.Objective))
	}
	for _, r := range s.Rows {
		outcome := findings[r.Finding]
		d.section(r.ID+"  "+r.Name, Facts{{Label: "question", Text: r.Question}, {Label: "hypothesis", Text: r.Hypothesis}, {"outcome", outcome.Text + ": " + r.Outcome, outcome.Tone}})
		mine := slices.DeleteFunc(slices.Clone(s.Seen), func(m measure.Measurement) bool { return !slices.Contains(r.Trials, m.Trial.Number) })
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

// findings say what became of a hypothesis.
var findings = map[design.Finding]Cell{
	design.Held: {"held", Good}, design.Refuted: {"refuted", Bad}, design.Unclear: {"undecided", Doubt}, design.NotRun: {"not run", Quiet},
}

func sweptTitle(s *design.Swept) string {
	ran := len(ran(s.Seen))
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
	var parts []string
	for _, f := range []design.Finding{design.Held, design.Refuted, design.Unclear, design.NotRun} {
		if n := list.Count(s.Rows, func(r design.MatrixRow) bool { return r.Finding == f }); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, findings[f].Text))
		}
	}
	return fmt.Sprintf("%s over %s of traffic: of the hypotheses %s", t, plural(len(s.Rows), "kind"), join(parts))
}

func sweepTable(trials []measure.Measurement, slo measure.SLO) Table {
	var columns []trialColumn
	if slices.ContainsFunc(trials, func(m measure.Measurement) bool { return m.Trial.Why != "" }) {
		columns = append(columns, textColumn(Column{Name: "trial of", Wrap: true}, trialOf))
	}
	if all := sets(trials); len(all) > 1 {
		which := differing(all)
		describe := func(m *measure.Measurement) string { return describe(m.Trial.Knobs, which) }
		columns = slices.Insert(columns, 0, textColumn(Column{Name: "settings", Wrap: true}, describe))
	}
	columns = append(columns, loadColumns()...)
	for _, b := range tabulatedOfAll(slo) {
		if b.Quantile == 0.50 {
			mean := latencyColumn(measure.Bound{Metric: b.Metric}, slo)
			mean.Extra = true
			columns = append(columns, mean)
		}
		columns = append(columns, latencyColumn(b, slo))
	}
	columns = append(columns, textColumn(Column{Name: "output tok/s", Right: true, Extra: true}, func(m *measure.Measurement) string { return number(m.OutputTokens, 3) }),
		textColumn(Column{Name: "cache hits", Right: true, Extra: true}, func(m *measure.Measurement) string {
			if m.Server.HitRate == nil {
				return unknown
			}
			return percent(*m.Server.HitRate)
		}), trialColumn{Column{Name: "verdict"}, verdict},
		trialColumn{Column{Name: "note", Wrap: true, Extra: true}, func(m *measure.Measurement) Cell { return Cell{remark(m), Quiet} }})
	return tableOf(ran(trials), columns).known()
}

// trialOf is what a trial of a sweep is one of.
func trialOf(m *measure.Measurement) string { return m.Trial.Why }

// Imported builds the report of load points that other tools measured.
func Imported(folder string, trials []measure.Measurement) Document {
	d := Document{Title: fmt.Sprintf("%s in %s", plural(len(trials), "load point"), folder), Data: data(trials)}
	for _, k := range sets(trials) {
		mine := of(trials, k)
		tab := trialTable(mine, measure.SLO{})
		if len(sets(trials)) > 1 {
			tab.Caption = describe(k, differing(sets(trials)))
		}
		d.add(tab)
	}
	var notes note.Notes
	for i := range trials {
		notes = append(notes, trials[i].Warnings...)
	}
	addWarnings(&d, notes.Distinct())
	return d
}
