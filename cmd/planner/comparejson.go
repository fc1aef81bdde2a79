package main

import (
	"planner/internal/report"
	"planner/internal/units"
)

// comparisonJSON is the document of `compare --json`.
type comparisonJSON struct {
	A            string         `json:"a"`
	B            string         `json:"b"`
	Design       string         `json:"design"`
	Test         string         `json:"test"`
	Confidence   float64        `json:"confidence"`
	Indifference float64        `json:"indifference"`
	Rate         *float64       `json:"rate_per_s"`
	Window       *float64       `json:"window_s"`
	Rounds       *int           `json:"rounds"`
	Figures      []contrastJSON `json:"figures"`
	Warnings     []string       `json:"warnings"`
}

// contrastJSON is one figure of a comparison, null for what is not known.
type contrastJSON struct {
	Figure     string           `json:"figure"`
	A          float64          `json:"a"`
	B          float64          `json:"b"`
	Difference changeJSON       `json:"difference"`
	Relative   changeJSON       `json:"relative"`
	P          *float64         `json:"p"`
	Adjusted   *float64         `json:"p_adjusted"`
	Pairs      int              `json:"pairs"`
	Judgement  report.Judgement `json:"judgement"`
}

// changeJSON is a difference with its interval.
type changeJSON struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

func comparisonView(c report.Comparison) comparisonJSON {
	v := comparisonJSON{A: c.A, B: c.B, Design: c.Design, Test: c.Test, Confidence: c.Confidence, Indifference: c.Indifference,
		Rate: known(c.Rate), Window: known(c.Window.Seconds()), Figures: []contrastJSON{}, Warnings: append([]string{}, c.Warnings...)}
	if c.Rounds > 0 {
		v.Rounds = &c.Rounds
	}
	for _, x := range c.Contrasts {
		v.Figures = append(v.Figures, contrastJSON{
			Figure: x.Name, A: x.A, B: x.B, Difference: changeJSON{units.Finite(x.Difference), units.Finite(x.Low), units.Finite(x.High)},
			Relative: changeJSON{units.Finite(x.Relative), units.Finite(x.RelativeLow), units.Finite(x.RelativeHigh)},
			P:        units.Finite(x.P), Adjusted: units.Finite(x.Adjusted), Pairs: x.Pairs, Judgement: x.Judgement,
		})
	}
	return v
}
