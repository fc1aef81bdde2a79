package report

import (
	"fmt"
	"slices"

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
	var notes []string
	for i := range trials {
		for _, w := range trials[i].Warnings {
			if !slices.Contains(notes, w) {
				notes = append(notes, w)
			}
		}
	}
	addWarnings(&d, notes)
	return d
}
