package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"planner/model"
	"planner/sweep/measure"
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

// The fit is refused below so many load points that differ enough, and warned of below
// the number that would show an error of the equations: two levels of load are met by
// one cost of a step and one of its requests, whatever the true curve between them.
const (
	fewestPoints  = 2
	fewestRange   = 4.0
	tellingNumber = 3
)

// identified is the share of its prior's width that a term's posterior may keep at most:
// above, the runs have said next to nothing about it.
const identified = 0.95

// Fit fits terms to measured runs by simulating each run again and again: Gauss-Newton
// steps on the logarithms of the terms, taken only as far as the simulated misfit falls,
// with normal priors of [model.SpreadFor] (the maximum of the posterior). The curvature
// there says how well a term is known; one that is hardly known better than before is
// put back to its default and the others are fitted again.
//
// Fit refuses overloaded runs and runs that cannot tell one term from another: too few
// load points, or none of the terms identified. A replayed trace may be overloaded, as
// its backlog is in its schedule; only times per output token are fitted then.
func Fit(runs []Run, o Options) (Result, error) {
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	if err := check(runs, &o); err != nil {
		return Result{}, err
	}
	p := newProblem(runs, &o)
	for {
		if len(p.terms) == 0 {
			return Result{}, fmt.Errorf("calibrate: the %d figures of %d runs identify no term: needed are runs at several concurrencies, from one request at a time to a full batch",
				len(p.figures), len(runs))
		}
		if err := p.solve(); err != nil {
			return Result{}, err
		}
		if !p.dropWeakest() {
			return p.result(runs), nil
		}
	}
}

// complete fills in defaults.
func (o *Options) complete() error {
	if err := o.Deployment.Validate(); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	v, err := model.ParseVersion(o.Version)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	if v == (model.Version{}) {
		return errors.New("calibrate: the release of the measured engine is not known")
	}
	if o.Constants == (model.Constants{}) {
		o.Constants = model.ConstantsFor(o.Deployment.Hardware, o.Version)
	}
	if o.Terms == nil {
		o.Terms = model.Terms()
	}
	return nil
}

// check refuses runs that must not be fitted to, or that are too few.
func check(runs []Run, o *Options) error {
	for i := range runs {
		if err := runs[i].check(o); err != nil {
			return fmt.Errorf("calibrate: run %d: %w", i+1, err)
		}
	}
	loads := loadPoints(runs)
	if len(loads) < fewestPoints || slices.Max(loads) < fewestRange*slices.Min(loads) {
		return fmt.Errorf("calibrate: %d load points tell costs of a step from costs of its requests badly: needed are at least %d rates or concurrencies, the largest at least %g times the smallest, or a trace with its records",
			len(loads), fewestPoints, fewestRange)
	}
	return nil
}

// loadPoints lists the different loads of the runs.
func loadPoints(runs []Run) []float64 {
	var loads []float64
	for i := range runs {
		r := &runs[i]
		if r.Trial.Workload.Replayed() && len(r.Records) > 0 {
			loads = append(loads, 1, 2, 2*fewestRange) // a batch that fills and empties is many load points
			continue
		}
		load := r.Trial.Rate
		if r.Trial.Closed() {
			load = float64(r.Trial.Concurrency)
		}
		if !slices.Contains(loads, load) {
			loads = append(loads, load)
		}
	}
	return loads
}

// check refuses a run that cannot be fitted to.
func (r *Run) check(o *Options) error {
	k := r.Trial.Knobs
	switch {
	case r.Trial.Workload == nil:
		return errors.New("the workload is not recorded, so it cannot be simulated")
	case !r.Trial.Closed() && r.Trial.Window <= 0:
		return errors.New("how long it lasted is not recorded, so it cannot be simulated")
	case r.Measurement.Rejected != "":
		return fmt.Errorf("nothing was measured: %s", r.Measurement.Rejected)
	case r.queueing() && !r.Trial.Workload.Replayed():
		return errors.New("overloaded: it shows a queue, not the engine")
	case r.Records == nil && !r.Measurement.Valid:
		return errors.New("its figures cannot be trusted")
	case k.TensorParallel > 0 && k.TensorParallel != max(o.Deployment.TP, 1):
		return fmt.Errorf("tensor_parallel %d, but the calibration is for %d", k.TensorParallel, max(o.Deployment.TP, 1))
	case k.GPU != "" && k.GPU != o.Deployment.Hardware.Name:
		return fmt.Errorf("gpu %s, but the calibration is for %s", k.GPU, o.Deployment.Hardware.Name)
	case len(r.Records) > 0 && len(r.Records) != len(r.Trial.Schedule()):
		return fmt.Errorf("%d records for a schedule of %d requests", len(r.Records), len(r.Trial.Schedule()))
	}
	return nil
}

// problem is a fit under way. x are logarithms of terms over their defaults.
type problem struct {
	o         *Options
	runs      []Run
	figures   []runFigure
	terms     []model.Term
	prior     []float64
	before    []float64 // every figure at the defaults
	x         []float64
	now       []float64 // every figure at x
	slopes    *mat.Dense
	posterior *mat.SymDense
}

// runFigure is a figure and the run it belongs to.
type runFigure struct {
	run int
	figure
}

func newProblem(runs []Run, o *Options) *problem {
	p := &problem{o: o, runs: runs, terms: slices.Clone(o.Terms)}
	frontend := false
	for i := range runs {
		for _, f := range runs[i].figures(runs[i].queueing()) {
			p.figures = append(p.figures, runFigure{i, f})
		}
		frontend = frontend || !runs[i].EngineTimes
	}
	p.allowForScatter()
	if !frontend {
		p.terms = slices.DeleteFunc(p.terms, func(t model.Term) bool { return t == model.TermFrontend })
	}
	for _, t := range p.terms {
		p.prior = append(p.prior, priorOf(t, o.Deployment))
	}
	return p
}

// priorOf is the relative standard deviation of a term before any run.
func priorOf(t model.Term, dep model.Deployment) float64 {
	s := model.SpreadFor(dep)
	switch t {
	case model.TermFrontend:
		return s.Frontend
	case model.TermStep:
		return s.Step
	case model.TermLayer:
		return s.Layer
	case model.TermRequest:
		return s.Request
	case model.TermWeights:
		return s.Weights
	case model.TermKV:
		return s.KV
	default:
		return s.Prefill
	}
}

// constants returns the constants at x.
func (p *problem) constants(x []float64) model.Constants {
	c := p.o.Constants
	for i, t := range p.terms {
		v := p.o.Constants.Value(t, p.o.Deployment) * math.Exp(x[i])
		if t.Efficiency() {
			v = min(v, highestShare)
		}
		c = c.WithValue(t, p.o.Deployment, v)
	}
	return c
}

// highestShare is more of a data sheet's peak than any kernel was seen to reach.
const highestShare = 0.97

// predict simulates every run and returns the figures.
func (p *problem) predict(x []float64) ([]float64, error) {
	c := p.constants(x)
	records := make([][]measure.Record, len(p.runs))
	for i := range p.runs {
		var err error
		if records[i], err = p.runs[i].simulate(p.o, c); err != nil {
			return nil, err
		}
	}
	out := make([]float64, len(p.figures))
	for i, f := range p.figures {
		out[i] = f.of(records[f.run])
		if math.IsNaN(out[i]) || math.IsInf(out[i], 0) {
			return nil, fmt.Errorf("calibrate: run %d: the simulation does not show %s", f.run+1, f.name)
		}
	}
	return out, nil
}

// misfit is the negative logarithm of the posterior at x, up to a constant.
func (p *problem) misfit(x, predicted []float64) float64 {
	sum := 0.0
	for i, f := range p.figures {
		e := math.Log(predicted[i]/f.measured) / f.sd
		sum += e * e
	}
	for i := range x {
		sum += x[i] * x[i] / (p.prior[i] * p.prior[i])
	}
	return sum / 2
}

// The search: steps at most, the change at which it ends, and the distance over which
// slopes are taken.
const (
	mostSteps = 30
	settled   = 1e-3
	distance  = 0.02
)

// solve finds the maximum of the posterior.
func (p *problem) solve() error {
	p.x = make([]float64, len(p.terms))
	var err error
	if p.now, err = p.predict(p.x); err != nil {
		return err
	}
	p.before = p.now
	best := p.misfit(p.x, p.now)
	for range mostSteps {
		step, err := p.step()
		if err != nil {
			return err
		}
		improved := false
		for share := 1.0; share > 0.1; share /= 2 {
			x := slices.Clone(p.x)
			for i := range x {
				x[i] += share * step[i]
			}
			now, err := p.predict(x)
			if err != nil {
				return err
			}
			if m := p.misfit(x, now); m < best {
				improved = best-m > settled
				p.x, p.now, best = x, now, m
				break
			}
		}
		if !improved {
			break
		}
	}
	_, err = p.step() // the curvature where it ended
	return err
}

// step takes slopes by central differences and returns the Gauss-Newton step. It keeps
// the slopes and the posterior's covariance.
func (p *problem) step() ([]float64, error) {
	n := len(p.terms)
	p.slopes = mat.NewDense(len(p.figures), n, nil)
	for k := range n {
		var side [2][]float64
		for s, sign := range [2]float64{-1, 1} {
			x := slices.Clone(p.x)
			x[k] += sign * distance
			var err error
			if side[s], err = p.predict(x); err != nil {
				return nil, err
			}
		}
		for i := range p.figures {
			p.slopes.Set(i, k, math.Log(side[1][i]/side[0][i])/(2*distance))
		}
	}
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for k := range n {
		w := 1 / (p.prior[k] * p.prior[k])
		a.SetSym(k, k, w)
		b.SetVec(k, -w*p.x[k])
	}
	for i, f := range p.figures {
		w := 1 / (f.sd * f.sd)
		e := math.Log(p.now[i] / f.measured)
		for k := range n {
			b.SetVec(k, b.AtVec(k)-w*p.slopes.At(i, k)*e)
			for j := k; j < n; j++ {
				a.SetSym(k, j, a.At(k, j)+w*p.slopes.At(i, k)*p.slopes.At(i, j))
			}
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, errors.New("calibrate: the terms cannot be told apart")
	}
	p.posterior = mat.NewSymDense(n, nil)
	if err := chol.InverseTo(p.posterior); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	var x mat.VecDense
	if err := chol.SolveVecTo(&x, b); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return x.RawVector().Data, nil
}

// dropWeakest takes out the term whose posterior is nearest to its prior, if it is not
// identified, and reports whether it did.
func (p *problem) dropWeakest() bool {
	worst, at := identified, -1
	for k := range p.terms {
		if share := math.Sqrt(p.posterior.At(k, k)) / p.prior[k]; share > worst {
			worst, at = share, k
		}
	}
	if at < 0 {
		return false
	}
	p.terms = slices.Delete(p.terms, at, at+1)
	p.prior = slices.Delete(p.prior, at, at+1)
	return true
}
