package design

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
)

// Judgement says how the second of two sides does against the first.
type Judgement string

// The judgements. Same means that the whole interval lies within the indifference, NotJudged that
// the figure is only shown.
const (
	Undecided Judgement = "undecided"
	Same      Judgement = "same"
	Better    Judgement = "better"
	Worse     Judgement = "worse"
	NotJudged Judgement = "not judged"
)

// Contrast compares one figure of two sides, in pairs.
type Contrast struct {
	// Figure is its name in files, such as "ttft.p99_ms"; Label is for readers.
	Figure string `json:"figure"`
	Label  string `json:"-"`
	// A and B are geometric means over the pairs, in ms, per second or as a share; of hit rates,
	// arithmetic.
	A float64 `json:"a"`
	B float64 `json:"b"`
	// Difference is B - A, Relative is B/A - 1, with intervals. P is the probability of a ratio as
	// far from 1 by chance, Adjusted that for all figures. NaN is not known.
	Difference stat.Difference `json:"difference"`
	Relative   stat.Difference `json:"relative"`
	P          float64         `json:"p"`
	Adjusted   float64         `json:"p_adjusted"`
	Pairs      int             `json:"pairs"`
	Judgement  Judgement       `json:"judgement"`
}

// Compared is the outcome of comparing two sides.
type Compared struct {
	A string `json:"a"`
	B string `json:"b"`
	// Design says what was paired with what, Test how it was tested.
	Design string `json:"design"`
	Test   string `json:"test"`
	Terms
	// Rate is the rate offered to both, Window, in seconds, and Rounds are those of the rounds; all
	// are nil if runs on disk were compared.
	Rate      *float64   `json:"rate_per_s"`
	Window    *float64   `json:"window_s"`
	Rounds    *int       `json:"rounds"`
	Contrasts []Contrast `json:"figures"`
	note.Warnings

	// Trials are those of the rounds.
	Trials []measure.Measurement `json:"-"`
}

// Files returns what a run folder keeps of the comparison, by file name.
func (c *Compared) Files() map[string]any { return map[string]any{"compare.json": c} }

// Terms are what a comparison is judged by.
type Terms struct {
	// Confidence is that of the intervals. Indifference is the relative difference below which two
	// figures count as the same.
	Confidence   float64 `json:"confidence"`
	Indifference float64 `json:"indifference"`
	// FailIfWorse is the relative difference by which no figure may be worse; at 0 the comparison
	// asks for every figure to be decided instead.
	FailIfWorse float64 `json:"fail_if_worse,omitempty"`
}

// Failed returns the figures that are worse by more than the terms allow: significantly worse after
// adjustment for all figures, and by more than FailIfWorse in the mean of the pairs.
func (c *Compared) Failed() []Contrast {
	return list.Filter(c.Contrasts, func(x Contrast) bool {
		return c.FailIfWorse > 0 && x.Judgement == Worse && math.Abs(x.Relative.Value) > c.FailIfWorse
	})
}

// Tested reports whether any figure was tested: a single pair says nothing about chance.
func (c *Compared) Tested() bool {
	return slices.ContainsFunc(c.Contrasts, func(x Contrast) bool { return !math.IsNaN(x.P) })
}

// answer is undecided if some figure is. With FailIfWorse it is infeasible if some figure is worse
// by more than that, and undecided only if none was tested.
func (c *Compared) answer() sweep.Answer {
	switch {
	case len(c.Failed()) > 0:
		return sweep.Answer{State: sweep.Infeasible, Value: c}
	case c.FailIfWorse > 0 && c.Tested():
		return sweep.Answer{State: sweep.Done, Value: c}
	}
	for _, x := range c.Contrasts {
		if x.Judgement == Undecided {
			return sweep.Answer{State: sweep.Undecided, Value: c}
		}
	}
	return sweep.Answer{State: sweep.Done, Value: c}
}

// CompareRuns compares the measurements of two run folders, at the loads that both have. doubts say
// what else differs between them.
func CompareRuns(paths [2]string, trials [2][]measure.Measurement, t Terms, doubts note.Notes) (sweep.Answer, error) {
	a, b := trials[0], trials[1]
	pairs, left := matched(a, b)
	other := list.Count(pairs, func(x pairing) bool { return x[0].Trial.Seed != x[1].Trial.Seed })
	c := &Compared{A: filepath.Clean(paths[0]), B: filepath.Clean(paths[1]), Test: tested, Terms: t,
		Contrasts: contrast(pairs, t), Warnings: slices.Concat(doubts, pairDoubts(pairs), note.If(other > 0, note.SeedsDiffer, other, len(pairs))).Warnings()}
	c.Design = fmt.Sprintf("%s that both runs have; %d have no counterpart", note.Count(len(pairs), "load point"), left)
	c.Warnings.AddIf(len(a) > 0 && len(b) > 0 && !a[0].Trial.Workload.Alike(b[0].Trial.Workload), note.TrafficDiffers)
	if len(c.Contrasts) == 0 {
		return sweep.Answer{}, fmt.Errorf("compare: %s and %s have no load in common: measure both at the same rates, as 'planner sweep --rates' does", paths[0], paths[1])
	}
	return c.answer(), nil
}
