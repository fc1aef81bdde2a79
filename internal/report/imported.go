package report

import (
	"fmt"

	"planner/internal/note"
	"planner/sweep/measure"
)

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
