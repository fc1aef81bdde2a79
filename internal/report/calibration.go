package report

import (
	"fmt"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
	"planner/sweep/design"
)

// Calibration builds the report of a fit of the simulated engine's constants: the outcome for each, and the
// simulation's error in each figure before and after.
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
		f, ok := terms[term.String()]
		if !ok {
			continue
		}
		t.row(term, fmt.Sprintf("%.3g", f.Default), fmt.Sprintf("%.3g", f.Value),
			share(f.Prior), share(f.Posterior), percent(f.Effect/100), where(!f.Fitted, "left: the runs do not say"))
	}
	return t
}

func residualTable(residuals []calibrate.Residual) Table {
	t := table(right("run"), left("figure"), right("measured", "simulated before", "after", "off by"))
	for _, r := range residuals {
		t.row(fmt.Sprint(r.Run), strings.ReplaceAll(r.Figure, "_", " "), inUnits(r.Measured),
			inUnits(r.Measured*(1+r.Before/100)), inUnits(r.Measured*(1+r.After/100)), signedShare(r.After/100))
	}
	return t
}

func inUnits(ms float64) string { return latency(milliseconds(ms)) }

func probeDocument(p *design.Probed, e Engines) Document {
	d := Document{Title: fmt.Sprintf("Probed at %d load points in %s of the engine's time", len(p.Points), p.EngineTime.Round(time.Second)), Data: data(p.Seen)}
	used := list.Filter(p.Points, func(x design.ProbePoint) bool { return x.Used })
	held := list.Filter(p.Points, func(x design.ProbePoint) bool { return !x.Used })
	if p.TPOTError != nil {
		machine := ""
		if p.NoiseTPOT != nil {
			machine = fmt.Sprintf("differs from itself by %s and %s between the first two trials and the same ones later, in the mean", percent(*p.NoiseTPOT), percent(*p.NoiseTTFT)) +
				where(*p.NoiseTPOT > *p.TPOTError || *p.NoiseTTFT > *p.TTFTError, ": more than the error, so that only a quieter machine would show how good the fit is")
		}
		d.add(Facts{{"off by", fmt.Sprintf("%s of the time per output token and %s of the time to first token, in the mean of %d points that were not used",
			percent(*p.TPOTError), percent(*p.TTFTError), p.Scored), Plain}, {"the machine", machine, Plain}})
	}
	if len(held) > 0 {
		d.section("Predicted, then measured: points that were not used", probeTable(held))
	}
	d.section("Points that constants were fitted to, predicted by what was known before each", probeTable(used))
	if p.Calibration != nil {
		d.section("Constants", constantsTable(p.Calibration.Terms))
		d.add(Paragraph{Text: "The calibration is " + design.CalibrationFile + " in the run folder: name it in engine.calibration."})
	}
	addEngines(&d, &e, p.Seen, nil)
	addWarnings(&d, p.Warnings.Notes)
	return d
}

func probeTable(points []design.ProbePoint) Table {
	t := table(right("at once", "prompt", "output", "TPOT predicted", "measured", "off by", "TTFT predicted", "measured", "off by"))
	off := func(predicted, measured float64) string {
		return where(measured > 0, signedShare(predicted/measured-1))
	}
	for _, x := range points {
		t.row(fmt.Sprint(x.Concurrency), fmt.Sprint(x.Prompt), fmt.Sprint(x.Output),
			inUnits(x.PredictedTPOT), inUnits(x.TPOT), off(x.PredictedTPOT, x.TPOT),
			inUnits(x.PredictedTTFT), inUnits(x.TTFT), off(x.PredictedTTFT, x.TTFT))
	}
	return t
}
