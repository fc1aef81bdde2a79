package report

import (
	"fmt"
	"strings"
	"time"

	"planner/sweep/measure"
)

// Judgement says how the second of two things does against the first. The zero
// value is Undecided: what was not shown is not the same.
type Judgement int

// The judgements. Same means that the whole interval lies within what the user
// does not care about.
const (
	Undecided Judgement = iota
	Same
	Better
	Worse
)

var judgementNames = []string{"undecided", "same", "better", "worse"}

// String is the judgement's name in files.
func (j Judgement) String() string {
	if j < Undecided || j > Worse {
		return "undecided"
	}
	return judgementNames[j]
}

// MarshalText writes the judgement's name.
func (j Judgement) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// Contrast is one figure of two things, in pairs.
type Contrast struct {
	// Name is the figure's in files, such as "ttft.p99_ms"; Label is for readers.
	Name, Label string
	// A and B are the means over the pairs, in milliseconds or per second. NaN is
	// not known, here and below.
	A, B float64
	// Difference is B - A, Relative B over A less 1, each with an interval; P is the
	// probability of a ratio as far from 1 by chance, Adjusted for all figures.
	Difference, Low, High               float64
	Relative, RelativeLow, RelativeHigh float64
	P, Adjusted                         float64
	Pairs                               int
	Judgement                           Judgement
}

// Comparison is the outcome of comparing two things.
type Comparison struct {
	A, B string
	// Design says what was paired with what, and Test how it was tested.
	Design, Test string
	// Confidence is that of the intervals. Indifference is the relative
	// difference below which two figures count as the same.
	Confidence, Indifference float64
	// Rate is what was offered to both, 0 if the pairs have several; Window and
	// Rounds are those of the rounds, 0 if runs on disk were compared.
	Rate      float64
	Window    time.Duration
	Rounds    int
	Contrasts []Contrast
	Warnings  []string
	// Engines is nil where none were started or asked; Trials are those of the
	// rounds.
	Engines *Engines
	Trials  []measure.Measurement
}

// Compare builds the report of a comparison.
func Compare(c Comparison) Document {
	d := Document{Title: compared(&c), Data: contrastData(c.Contrasts)}
	facts := Pairs{{Label: "A", Text: c.A}, {Label: "B", Text: c.B}, {Label: "pairs", Text: c.Design}, {Label: "test", Text: c.Test},
		{Label: "the same", Text: "a whole interval within " + percent(c.Indifference) + " of no difference; what is neither that nor clearly different is undecided"}}
	d.add(facts, contrastTable(&c))
	addEngines(&d, c.Engines, c.Trials, nil)
	addWarnings(&d, c.Warnings)
	return d
}

// compared is the outcome in one line.
func compared(c *Comparison) string {
	by := map[Judgement][]string{}
	for _, x := range c.Contrasts {
		by[x.Judgement] = append(by[x.Judgement], x.Label)
	}
	n := len(c.Contrasts)
	switch {
	case n == 0:
		return "Nothing of A and B can be compared"
	case len(by[Same]) == n:
		return fmt.Sprintf("No difference: A and B are within %s of each other in all %d figures", percent(c.Indifference), n)
	case len(by[Undecided]) == n:
		return "Undecided: no figure shows a difference, and none shows that there is none"
	}
	var parts []string
	for _, j := range []Judgement{Better, Worse, Same, Undecided} {
		names := by[j]
		if len(names) == 0 {
			continue
		}
		word := map[Judgement]string{Better: "better", Worse: "worse", Same: "the same", Undecided: "undecided"}[j]
		if len(names) > 3 {
			parts = append(parts, fmt.Sprintf("%s in %d figures", word, len(names)))
		} else {
			parts = append(parts, word+" in "+join(names))
		}
	}
	return "B against A: " + strings.Join(parts, "; ")
}

func contrastTable(c *Comparison) Table {
	tab := Table{
		Caption: "Relative differences with their " + percent(c.Confidence) + " intervals, each by itself; p is adjusted for all figures together (Holm).",
		Columns: []Column{{Name: "figure"}, {Name: "A", Right: true}, {Name: "B", Right: true}, {Name: "difference", Right: true, Extra: true}, {Name: "relative", Right: true},
			{Name: "interval", Right: true}, {Name: "p", Right: true, Extra: true}, {Name: "pairs", Right: true, Extra: true}, {Name: "B is"}},
	}
	for _, x := range c.Contrasts {
		interval := unknown
		if finite(x.RelativeLow) && finite(x.RelativeHigh) {
			interval = signedShare(x.RelativeLow) + " to " + signedShare(x.RelativeHigh)
		}
		tab.Rows = append(tab.Rows, []Cell{{Text: x.Label}, {Text: number(x.A, 4)}, {Text: number(x.B, 4)}, {Text: plus(x.Difference, number(x.Difference, 3))}, {Text: signedShare(x.Relative)},
			{Text: interval}, {Text: probability(x.Adjusted)}, {Text: count(x.Pairs)}, judged(x.Judgement)})
	}
	return tab
}

func judged(j Judgement) Cell {
	switch j {
	case Better:
		return Cell{"better", Good}
	case Worse:
		return Cell{"worse", Bad}
	case Same:
		return Cell{"the same", Plain}
	}
	return Cell{"undecided", Doubt}
}

// signedShare prints a relative difference with its sign.
func signedShare(share float64) string {
	if !finite(share) {
		return unknown
	}
	text := strings.TrimPrefix(fixed(100*share, 1), "-")
	if strings.Trim(text, "0.") == "" {
		return text + " %"
	}
	if share < 0 {
		return "-" + text + " %"
	}
	return "+" + text + " %"
}

// plus leads a text with the sign of a positive figure.
func plus(v float64, text string) string {
	if v > 0 && finite(v) {
		return "+" + text
	}
	return text
}

// probability prints p to two digits, and what is tiny as such.
func probability(p float64) string {
	switch {
	case !finite(p):
		return unknown
	case p < 0.001:
		return "< 0.001"
	}
	return number(p, 2)
}

func contrastData(all []Contrast) Data {
	d := Data{Header: []string{"figure", "a", "b", "difference", "difference_low", "difference_high", "relative", "relative_low", "relative_high", "p", "p_adjusted", "pairs", "judgement"}}
	for _, x := range all {
		row := []string{x.Name}
		for _, v := range []float64{x.A, x.B, x.Difference, x.Low, x.High, x.Relative, x.RelativeLow, x.RelativeHigh, x.P, x.Adjusted} {
			row = append(row, raw(v))
		}
		d.Rows = append(d.Rows, append(row, count(x.Pairs), x.Judgement.String()))
	}
	return d
}
