package design

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/note"
	"planner/model/calibrate"
	"planner/sweep"
	"planner/sweep/measure"
)

// ProbePoint is a load point of a probe.
type ProbePoint struct {
	Trial       int    `json:"trial"`
	Concurrency int    `json:"concurrency"`
	Prompt      int    `json:"prompt_tokens"`
	Output      int    `json:"output_tokens"`
	Why         string `json:"why"`
	// Used says that the constants were fitted to it.
	Used bool `json:"used"`
	// What was predicted before it ran, with what was known then, and what was measured.
	PredictedTPOT float64 `json:"predicted_tpot_ms"`
	TPOT          float64 `json:"tpot_ms"`
	PredictedTTFT float64 `json:"predicted_ttft_ms"`
	TTFT          float64 `json:"ttft_ms"`
}

// Probed is the answer of a probe.
type Probed struct {
	Points []ProbePoint `json:"points"`
	// Calibration is nil until there are enough points to fit.
	Calibration *calibrate.File `json:"calibration"`
	// TPOTError and TTFTError are mean absolute errors, relative, on the points that were not
	// used; NoiseTPOT and NoiseTTFT by how much the machine differs from itself.
	TPOTError  *float64      `json:"tpot_error"`
	TTFTError  *float64      `json:"ttft_error"`
	NoiseTPOT  *float64      `json:"tpot_noise"`
	NoiseTTFT  *float64      `json:"ttft_noise"`
	EngineTime time.Duration `json:"engine_time_s"`
	// Scored is how many points the errors are means of.
	Scored int `json:"scored"`
	note.Warnings

	Seen []measure.Measurement `json:"-"`
}

// CalibrationFile is the calibration of a probe in its run folder.
const CalibrationFile = "engine.calibration"

// Files are what a run folder keeps of it, by name.
func (p *Probed) Files() map[string]any {
	files := map[string]any{"probe.json": p}
	var b bytes.Buffer
	if p.Calibration != nil && p.Calibration.Write(&b) == nil {
		files[CalibrationFile] = b.Bytes()
	}
	return files
}

// Answer is the calibration with its score.
func (p *ProbeStudy) Answer() (sweep.Answer, error) {
	if len(p.seen) == 0 {
		return sweep.Answer{}, nil
	}
	out := &Probed{EngineTime: p.spent, Seen: p.seen}
	a := sweep.Answer{State: sweep.Done, Value: out}
	for i := range p.seen {
		p.tell(out, i)
	}
	p.noise(out)
	if p.fitted == nil {
		a.State = sweep.Failed
		why := cmp.Or(p.problem, fmt.Errorf("%d of %d trials can be trusted", len(p.used), len(p.seen)))
		out.Notes = append(out.Notes, note.Text(why.Error()))
		return a, nil
	}
	out.Notes = append(out.Notes, note.FromTexts(p.fitted.Warnings)...)
	file := *p.fitted
	file.Scores = p.scores(out)
	out.Calibration = &file
	return a, nil
}

func (p *ProbeStudy) tell(out *Probed, i int) {
	m := &p.seen[i]
	if m.Rejected.Text != "" || m.Trial.Workload == nil {
		out.Notes = append(out.Notes, note.Text(fmt.Sprintf("trial %d: %s", i+1, cmp.Or(m.Rejected.Text, "its traffic is not recorded"))))
		return
	}
	shape := m.Trial.Workload.Shapes[0]
	f := p.forecast[i+1]
	point := ProbePoint{
		Trial: i + 1, Concurrency: m.Trial.Concurrency, Prompt: shape.Prompt.Value, Output: shape.Output.Value, Why: m.Trial.Why,
		Used:          slices.ContainsFunc(p.used, func(u calibrate.LoadPoint) bool { return u.Trial.Number == m.Trial.Number }),
		PredictedTPOT: 1e3 * f.TPOT, TPOT: 1e3 * m.TPOT.Mean.Seconds(), PredictedTTFT: 1e3 * f.TTFT, TTFT: 1e3 * m.TTFT.Mean.Seconds(),
	}
	out.Points = append(out.Points, point)
	if tpot := m.TPOT.Mean; tpot > 0 && tpot < p.least && !out.Notes.Has(note.FasterThanRead) {
		out.Notes = append(out.Notes, note.New(note.FasterThanRead, tpot.Round(10*time.Microsecond), p.least.Round(10*time.Microsecond)))
	}
	if !usable(m) {
		why := m.Complaint()
		if why == "" && len(m.Warnings) > 0 {
			why = m.Warnings[0].String()
		}
		out.Notes = append(out.Notes, note.Text(fmt.Sprintf("trial %d cannot be trusted: %s", i+1, why)))
	}
}

// noise compares the first trial with its repetition.
func (p *ProbeStudy) noise(out *Probed) {
	if len(p.seen) < p.spec.Points || len(out.Points) < p.spec.Points {
		return
	}
	a, b := out.Points[0], out.Points[p.spec.Points-1]
	if a.TPOT > 0 && b.TPOT > 0 && a.TTFT > 0 && b.TTFT > 0 {
		out.NoiseTPOT, out.NoiseTTFT = new(math.Abs(math.Log(b.TPOT/a.TPOT))), new(math.Abs(math.Log(b.TTFT/a.TTFT)))
	}
}

// scores are the predictions of points that were not used, with their mean errors.
func (p *ProbeStudy) scores(out *Probed) []calibrate.Score {
	var scores []calibrate.Score
	var tpot, ttft []float64
	for _, x := range out.Points {
		if x.Used || !usable(&p.seen[x.Trial-1]) || x.Trial <= p.spec.Points || !(x.PredictedTPOT > 0 && x.TPOT > 0 && x.TTFT > 0) {
			continue
		}
		s := calibrate.Score{Date: p.spec.Date, Concurrency: x.Concurrency, Prompt: x.Prompt, Output: x.Output}
		s.Figure, s.Predicted, s.Measured = "tpot.mean", x.PredictedTPOT, x.TPOT
		scores, tpot = append(scores, s), append(tpot, math.Abs(s.Error()))
		s.Figure, s.Predicted, s.Measured = "ttft.mean", x.PredictedTTFT, x.TTFT
		scores, ttft = append(scores, s), append(ttft, math.Abs(s.Error()))
	}
	if out.Scored = len(tpot); out.Scored > 0 {
		out.TPOTError, out.TTFTError = new(stat.Mean(tpot, nil)), new(stat.Mean(ttft, nil))
	}
	return scores
}
