package report

import (
	"fmt"
	"time"

	"planner/sweep/design"
)

// probeDocument is the report of a probe: what was predicted and what was measured, and what
// became of the constants.
func probeDocument(p *design.Probed, e Engines) Document {
	d := Document{Title: fmt.Sprintf("Probed at %d load points in %s of the engine's time", len(p.Points), p.EngineTime.Round(time.Second)), Data: data(p.Seen)}
	var used, held []design.ProbePoint
	for _, x := range p.Points {
		if x.Used {
			used = append(used, x)
		} else {
			held = append(held, x)
		}
	}
	if p.TPOTError != nil {
		facts := Facts{{Label: "off by", Text: fmt.Sprintf("%s of the time per output token and %s of the time to first token, in the mean of %d points that were not used",
			percent(*p.TPOTError), percent(*p.TTFTError), p.Scored)}}
		if p.NoiseTPOT != nil {
			facts = append(facts, Fact{Label: "the machine", Text: fmt.Sprintf("differs from itself by %s and %s between the first trial and the same one later%s", percent(*p.NoiseTPOT), percent(*p.NoiseTTFT), noisy(p))})
		}
		d.add(facts)
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

// noisy says where the machine's noise is larger than the errors.
func noisy(p *design.Probed) string {
	if *p.NoiseTPOT > *p.TPOTError || *p.NoiseTTFT > *p.TTFTError {
		return ": more than the error, so that only a quieter machine would show how good the fit is"
	}
	return ""
}

func probeTable(points []design.ProbePoint) Table {
	t := table(right("at once", "prompt", "output", "TPOT predicted", "measured", "off by", "TTFT predicted", "measured", "off by"))
	for _, x := range points {
		t.row(fmt.Sprint(x.Concurrency), fmt.Sprint(x.Prompt), fmt.Sprint(x.Output),
			inUnits(x.PredictedTPOT), inUnits(x.TPOT), fmt.Sprintf("%+.1f %%", 100*(x.PredictedTPOT/x.TPOT-1)),
			inUnits(x.PredictedTTFT), inUnits(x.TTFT), fmt.Sprintf("%+.1f %%", 100*(x.PredictedTTFT/x.TTFT-1)))
	}
	return t
}
