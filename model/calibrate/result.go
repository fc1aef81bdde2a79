package calibrate

import (
	"fmt"
	"math"
	"slices"

	"planner/model"
)

// Result is a calibration: the terms, what they were fitted to, and how well.
type Result struct {
	FittedTo  Origin
	Terms     []TermFit
	Residuals []Residual
	// Warnings say what a reader should know before using it.
	Warnings []string
}

// TermFit is what became of one term.
type TermFit struct {
	Term model.Term
	// Default is the value before, Value the one after, in the unit of the term: seconds,
	// or a share of the data sheet's peak.
	Default, Value float64
	// Fitted says that the runs narrowed the term; if not, Value is Default.
	Fitted bool
	// Prior and Posterior are relative standard deviations before and after.
	Prior, Posterior float64
	// Effect is how far the fit of this term alone moves the figures, root mean square, as a
	// share.
	Effect float64
}

// Residual compares one figure of one run, in seconds, with the simulation before and
// after the fit.
type Residual struct {
	Run                     int // counted from 1
	Figure                  string
	Measured, Before, After float64
}

// Origin is what a calibration was fitted to.
type Origin struct {
	Model          string
	GPU            string
	EngineVersion  string
	TensorParallel int
	Weights        string
	KVCache        string
	// Rates and Concurrencies of the runs; a replayed trace is in neither.
	Rates         []float64
	Concurrencies []int
	Traces        int
	Date          string
}

// originOf describes runs.
func originOf(runs []LoadPoint, o *Options) Origin {
	r, err := model.NewRoofline(o.Deployment, o.Constants, model.EngineArgs{EngineVersion: o.Version})
	dep := o.Deployment
	if err == nil {
		dep = r.Deployment() // with the checkpoint's own formats filled in
	}
	out := Origin{
		Model: dep.Arch.Name, GPU: dep.Hardware.Name, EngineVersion: o.Version, TensorParallel: max(dep.TP, 1),
		Weights: dep.Precision.Weights.String(), KVCache: dep.Precision.KV.String(), Date: o.Date,
	}
	for i := range runs {
		t := &runs[i].Trial
		switch {
		case t.Closed():
			out.Concurrencies = append(out.Concurrencies, t.Concurrency)
		case t.Rate > 0:
			out.Rates = append(out.Rates, t.Rate)
		default:
			out.Traces++
		}
	}
	return out
}

// result puts together what was found.
func (p *regression) result(runs []LoadPoint) Result {
	out := Result{FittedTo: originOf(runs, p.o)}
	if n := len(loads(runs)); n < tellingNumber {
		out.Warnings = append(out.Warnings, fmt.Sprintf("it is fitted to %d load points: none is left that would show how well it holds at others", n))
	}
	for _, t := range model.Terms() {
		f := TermFit{Term: t, Default: p.o.Constants.Value(t, p.o.Deployment), Prior: priorOf(t, p.o.Deployment)}
		f.Value, f.Posterior = f.Default, f.Prior
		if k := slices.Index(p.terms, t); k >= 0 {
			f.Fitted = true
			f.Value = p.constants(p.x).Value(t, p.o.Deployment)
			f.Posterior = math.Sqrt(p.posterior.At(k, k))
			f.Effect = p.effect(k)
			if moved := math.Abs(math.Log(f.Value / f.Default)); moved > 3*f.Prior {
				out.Warnings = append(out.Warnings, fmt.Sprintf("%s moved by %.1f of its standard deviations: the engine may do something that the equations do not know", t, moved/f.Prior))
			}
		}
		out.Terms = append(out.Terms, f)
	}
	for i, f := range p.figures {
		out.Residuals = append(out.Residuals, Residual{Run: f.point + 1, Figure: f.name, Measured: f.measured, Before: p.before[i], After: p.now[i]})
	}
	return out
}

// effect is the root mean square over the figures of what one term's change brings.
func (p *regression) effect(k int) float64 {
	sum := 0.0
	for i := range p.figures {
		d := p.slopes.At(i, k) * p.x[k]
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(p.figures)))
}
