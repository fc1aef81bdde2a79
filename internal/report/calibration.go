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
	t := table(left("constant"), right("before", "after", "known to, before", "after", "moves the figures by"), left("note"))
	for _, term := range model.Terms() {
		f, note := terms[term.String()], ""
		if !f.Fitted {
			note = "left: the runs do not say"
		}
		t.row(term, fmt.Sprintf("%.3g", f.Default), fmt.Sprintf("%.3g", f.Value),
			fmt.Sprintf("%.0f %%", 100*f.Prior), fmt.Sprintf("%.0f %%", 100*f.Posterior), fmt.Sprintf("%.1f %%", f.Effect), note)
	}
	return t
}

func residualTable(residuals []calibrate.Residual) Table {
	t := table(right("run"), left("figure"), right("measured", "simulated before", "after", "off by"))
	for _, r := range residuals {
		t.row(fmt.Sprint(r.Run), strings.ReplaceAll(r.Figure, "_", " "), inUnits(r.Measured),
			inUnits(r.Measured*(1+r.Before/100)), inUnits(r.Measured*(1+r.After/100)), fmt.Sprintf("%+.1f %%", r.After))
	}
	return t
}

// inUnits prints milliseconds in their own scale.
func inUnits(ms float64) string { return latency(time.Duration(ms * float64(time.Millisecond))) }
