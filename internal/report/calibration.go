package report

import (
	"fmt"
	"strings"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
)

// Calibration builds the report of a fit of the simulated engine's constants:
// what became of each, and how far the simulation is from each figure before
// and after.
func Calibration(r calibrate.File) Document {
	o := r.FittedTo
	d := Document{Title: fmt.Sprintf("Calibrated to %s on %s, vLLM %s", o.Model, o.GPU, o.EngineVersion)}
	d.section("Constants", constantsTable(r.Terms))
	d.section("Figures", residualTable(r.Residuals))
	d.section("Not for", Bullets{Items: []string{
		"another GPU than " + o.GPU,
		"another minor release of the engine than " + o.EngineVersion,
		fmt.Sprintf("another format than weights in %s and a KV cache in %s", o.Weights, o.KVCache),
	}})
	addWarnings(&d, note.FromTexts(r.Warnings))
	return d
}

func constantsTable(terms map[string]calibrate.TermFit) Table {
	t := Table{Columns: []Column{{Name: "constant"}, {Name: "before", Right: true}, {Name: "after", Right: true},
		{Name: "known to, before", Right: true}, {Name: "after", Right: true}, {Name: "moves the figures by", Right: true}, {Name: "note"}}}
	for _, term := range model.Terms() {
		f, note := terms[term.String()], ""
		if !f.Fitted {
			note = "left: the runs do not say"
		}
		t.Rows = append(t.Rows, []Cell{{Text: term.String()}, {Text: fmt.Sprintf("%.3g", f.Default)}, {Text: fmt.Sprintf("%.3g", f.Value)},
			{Text: fmt.Sprintf("%.0f %%", 100*f.Prior)}, {Text: fmt.Sprintf("%.0f %%", 100*f.Posterior)}, {Text: fmt.Sprintf("%.1f %%", f.Effect)}, {Text: note}})
	}
	return t
}

func residualTable(residuals []calibrate.Residual) Table {
	t := Table{Columns: []Column{{Name: "run", Right: true}, {Name: "figure"}, {Name: "measured", Right: true}, {Name: "simulated before", Right: true},
		{Name: "after", Right: true}, {Name: "off by", Right: true}}}
	for _, r := range residuals {
		t.Rows = append(t.Rows, []Cell{{Text: fmt.Sprint(r.Run)}, {Text: strings.ReplaceAll(r.Figure, "_", " ")}, {Text: inUnits(r.Measured)},
			{Text: inUnits(r.Measured * (1 + r.Before/100))}, {Text: inUnits(r.Measured * (1 + r.After/100))}, {Text: fmt.Sprintf("%+.1f %%", r.After)}})
	}
	return t
}

// inUnits prints milliseconds in their own scale.
func inUnits(ms float64) string { return latency(time.Duration(ms * float64(time.Millisecond))) }
