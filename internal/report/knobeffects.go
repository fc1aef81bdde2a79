package report

import (
	"cmp"
	"fmt"
	"math"

	"planner/internal/list"
	"planner/plan"
	"planner/plan/decide"
	"planner/plan/effects"
	"planner/sweep/measure"
)

// addEffects ranks the knobs by their effect on the maximum rate, and maps the first two.
func addEffects(d *Document, p *plan.Plan, trials []measure.Measurement) {
	all := p.Evidence.Effects
	if len(all) == 0 {
		return
	}
	tab := table(left("knob"), right("best", "worst", "rate with the worst", "within (90 %)"), left("shown"))
	for i := range all {
		e := &all[i]
		tab.row(e.Knob, orDefault(e.Best), orDefault(e.Worst), signedShare(-e.Cost), signedShare(-e.High)+" to "+signedShare(-e.Low),
			either(e.Shown(), Cell{Text: "yes"}, Cell{"no", Quiet}))
	}
	settings := decide.Settings(p, trials)
	d.section("Which knob matters", tab, Paragraph{Text: fmt.Sprintf("Main effects on the maximum rate of one instance over %s that were tried, by a linear model of its logarithm; "+
		"a set is placed by its search, by what the chosen one shows at other rates where it had one trial, or by short runs of its own where it was dropped early.",
		plural(len(settings), "set")), Tone: Quiet})
	if len(all) > 1 {
		d.add(heatMap(settings, all[0].Knob, all[1].Knob))
	}
}

func orDefault(value string) string { return cmp.Or(value, "default") }

// heatMap tabulates the best rate for each pair of values of two knobs, over all others.
func heatMap(settings []effects.Setting, rowKnob, columnKnob string) Table {
	down, _ := measure.KnobNamed(rowKnob)
	across, _ := measure.KnobNamed(columnKnob)
	rows, columns := effects.Values(settings, down), effects.Values(settings, across)
	tab := table(left(down.Short), right(list.Map(columns, func(v string) string { return across.Short + " " + orDefault(v) })...))
	tab.Caption = "About the maximum rate in requests/s by " + down.Name + " (down) and " + across.Name + " (across), the best of all others"
	best := map[[2]string]float64{}
	for _, s := range settings {
		at := [2]string{down.Text(s.Knobs), across.Text(s.Knobs)}
		best[at] = max(best[at], s.Rate)
	}
	low, high := math.Inf(1), 0.0
	for _, v := range best {
		low, high = min(low, v), max(high, v)
	}
	for _, r := range rows {
		cells, shades := []Cell{{Text: orDefault(r)}}, []float64{0}
		for _, c := range columns {
			v := best[[2]string{r, c}]
			shade := either(v > 0 && high > low, 0.1+0.9*(v-low)/(high-low), 0)
			cells, shades = append(cells, Cell{Text: someOf(v, 3)}), append(shades, shade)
		}
		tab.Rows, tab.Shades = append(tab.Rows, cells), append(tab.Shades, shades)
	}
	return tab
}
