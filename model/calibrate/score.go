package calibrate

import (
	"math"

	"planner/model"
	"planner/sweep/measure"
)

// Score is a prediction and the later measurement of the same.
type Score struct {
	Date        string  `toml:"date,omitempty" json:"date,omitempty"`
	Concurrency int     `toml:"concurrency" json:"concurrency"`
	Prompt      int     `toml:"prompt_tokens" json:"prompt_tokens"`
	Output      int     `toml:"output_tokens" json:"output_tokens"`
	Figure      string  `toml:"figure" json:"figure"`
	Predicted   float64 `toml:"predicted_ms" json:"predicted_ms"`
	Measured    float64 `toml:"measured_ms" json:"measured_ms"`
}

// Error is the relative error of the prediction.
func (s Score) Error() float64 { return s.Predicted/s.Measured - 1 }

// mostWider bounds the factor by which scores widen the spread: beyond it something else is wrong.
const mostWider = 10

// wider returns the root mean square of the predictions' errors over those expected of the equations, at least
// 1; it is 1 without scores.
func (f File) wider() float64 {
	sum, n := 0.0, 0
	for _, s := range f.Scores {
		expected := ttftDeviation
		if s.Figure == (measure.Bound{Metric: measure.TPOT}).String() {
			expected = tpotDeviation
		}
		if e := math.Log(s.Predicted / s.Measured); !math.IsNaN(e) && !math.IsInf(e, 0) {
			sum, n = sum+e*e/(expected*expected), n+1
		}
	}
	if n == 0 {
		return 1
	}
	return min(max(math.Sqrt(sum/float64(n)), 1), mostWider)
}

// Spread returns how far constants may still be off after the calibration was applied: terms by their
// posterior, to which half the previous spread is added in quadrature for another model or degree of
// parallelism, and all of it widened where predictions were off. The site is that of the calibration.
func (f File) Spread(dep model.Deployment, before model.Spread) model.Spread {
	dep = dep.Normal()
	same := dep.Arch.Name == f.FittedTo.Model && dep.TP == max(f.FittedTo.TensorParallel, 1)
	wider := f.wider()
	s := before.Times(wider)
	s[model.DoubtSite] = 0
	if same {
		s[model.DoubtEquations] = min(s[model.DoubtEquations], wider*model.Served.Error())
	} else {
		s[model.DoubtEquations] /= 2
	}
	for _, t := range model.Terms() {
		e, ok := f.Terms[t.String()]
		if !ok || !e.Fitted {
			continue
		}
		sd := wider * e.Posterior
		if !same {
			sd = math.Hypot(sd, before[t]/2)
		}
		s[t] = min(sd, max(before[t], wider*e.Posterior))
	}
	return s
}
