package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"planner/internal/list"
	"planner/internal/parallel"
	"planner/model"
	"planner/sweep/measure"
)

// The fit is refused with fewer load points than fewestPoints, or if the largest is not fewestRange times the
// smallest. Below tellingNumber it comes with a warning, since an error of the equations would not show: one
// cost per step and one per request fit any two levels of load, whatever the true curve between them.
const (
	fewestPoints  = 2
	fewestRange   = 4.0
	tellingNumber = 3
)

// identified is the largest share of its prior's standard deviation that a term's posterior may keep: above it,
// the runs have said next to nothing about the term.
const identified = 0.95

// FitOptions say what is fitted, and to which engine.
type FitOptions struct {
	Deployment model.Deployment
	// Version is the release of the engine that was measured.
	Version string
	// Settings are that engine's other settings.
	Settings model.EngineFeatures
	// Constants are the starting values; the zero value stands for the defaults of the GPU and the release. A term
	// of 0 stays 0, as the front end's of times from an engine's own log, which exclude it.
	Constants model.Constants
	// Terms are fitted; nil means all.
	Terms []model.Doubt
	// Date is today's, for the file: the package reads no clock.
	Date string
	// Watch, if set, is told of every run that was simulated, from several goroutines: a fit of long runs
	// takes minutes.
	Watch func()
}

// Fit fits terms to measured runs by repeated simulation: Gauss-Newton steps on the logarithms of the terms,
// shortened until the simulated misfit falls, towards the maximum of the posterior. Priors have the widths of
// [model.SpreadFor] and are Student's t with two degrees of freedom, since hardware of another kind is far from
// the defaults. The curvature at the maximum gives each term's uncertainty; a term that is hardly better known
// than before and not far from its default is put back there, and the others are fitted again.
//
// Fit refuses overloaded runs and runs that cannot tell the terms apart: too few load points, or no term
// identified. A replayed trace may be overloaded, since the simulation of its schedule builds up the same
// backlog; then only its times per output token are fitted.
func Fit(runs []LoadPoint, o FitOptions) (File, error) {
	if err := o.complete(); err != nil {
		return File{}, err
	}
	if err := check(runs, &o); err != nil {
		return File{}, err
	}
	p := newRegression(runs, &o)
	leap := true
	for {
		if len(p.terms) == 0 {
			return File{}, fmt.Errorf("calibrate: the %d figures of %d runs identify no term: needed are runs at several concurrencies, from one request at a time to a full batch",
				len(p.figures), len(runs))
		}
		if err := p.solve(leap); err != nil {
			return File{}, err
		}
		dropped := p.dropWeakest()
		if !dropped && leap {
			return p.result(), nil
		}
		leap = !dropped
	}
}

// engine returns what is known of the measured engine except its knobs.
func (o *FitOptions) engine() model.EngineArgs {
	return model.EngineArgs{EngineVersion: o.Version, EngineFeatures: o.Settings}
}

func (o *FitOptions) complete() error {
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
		o.Constants = model.ConstantsFor(o.Deployment.Hardware, o.engine())
	}
	if o.Terms == nil {
		o.Terms = model.Terms()
	}
	return nil
}

// check refuses runs that must not be fitted to, or that are too few.
func check(runs []LoadPoint, o *FitOptions) error {
	for i := range runs {
		if err := runs[i].check(o); err != nil {
			return fmt.Errorf("calibrate: run %d: %w", i+1, err)
		}
		if err := runs[i].differs(&runs[0]); err != nil {
			return fmt.Errorf("calibrate: run %d: %w", i+1, err)
		}
	}
	at := loads(runs)
	if len(at) < fewestPoints || slices.Max(at) < fewestRange*slices.Min(at) {
		return fmt.Errorf("calibrate: %d load points tell costs of a step from costs of its requests badly: needed are at least %d rates or concurrencies, the largest at least %g times the smallest, or a trace with its records",
			len(at), fewestPoints, fewestRange)
	}
	return nil
}

func loads(runs []LoadPoint) []float64 {
	var all []float64
	for i := range runs {
		r := &runs[i]
		if r.Trial.Workload.Replayed() && len(r.Records) > 0 {
			all = append(all, 1, 2, 2*fewestRange) // a batch that fills and empties covers many loads
			continue
		}
		load := r.Trial.Rate
		if r.Trial.Closed() {
			load = float64(r.Trial.Concurrency)
		}
		if !slices.Contains(all, load) {
			all = append(all, load)
		}
	}
	return all
}

// regression is a fit under way. x holds the logarithms of the terms over their starting values.
type regression struct {
	o         *FitOptions
	runs      []LoadPoint
	figures   []figure
	terms     []model.Doubt
	prior     []float64
	before    []float64 // every figure at the starting values
	x         []float64
	now       []float64 // every figure at x
	best      float64   // the misfit at x
	robust    bool      // few figures are far off, and count little
	slopes    *mat.Dense
	posterior *mat.SymDense
	// predicted are the figures with constants that were simulated: each search begins at the same ones, and the
	// curvature at its end is that of its last step.
	predicted map[model.Constants][]float64
}

func newRegression(runs []LoadPoint, o *FitOptions) *regression {
	p := &regression{o: o, runs: runs, predicted: map[model.Constants][]float64{}}
	for i := range runs {
		for _, f := range runs[i].figures() {
			f.point = i
			p.figures = append(p.figures, f)
		}
	}
	p.allowForScatter()
	// Only requests that arrive together tell what taking each of them in costs from what a step of a slow host does.
	together := slices.ContainsFunc(runs, func(r LoadPoint) bool { return r.Trial.Concurrency > 1 })
	p.terms = slices.DeleteFunc(slices.Clone(o.Terms), func(t model.Doubt) bool {
		return o.Constants.Value(t, o.Deployment) == 0 || t == model.DoubtIntake && !together
	})
	spread := model.SpreadFor(o.Deployment, o.engine())
	p.prior = list.Map(p.terms, func(t model.Doubt) float64 { return spread[t] })
	return p
}

// allowForScatter adds to the figures' deviations the scatter between repetitions of the same trial: a machine
// whose speed varies from day to day tells no more than that.
func (p *regression) allowForScatter() {
	sum, freedom := map[string]float64{}, map[string]float64{}
	for i, f := range p.figures {
		var same []float64
		for k, g := range p.figures {
			if g.name != f.name || !p.runs[f.point].repeats(&p.runs[g.point]) {
				continue
			}
			if k < i {
				same = nil
				break // counted with the first of them
			}
			same = append(same, math.Log(g.measured))
		}
		if len(same) < 2 {
			continue
		}
		center := mean(same)
		for _, v := range same {
			sum[f.name] += (v - center) * (v - center)
		}
		freedom[f.name] += float64(len(same) - 1)
	}
	for i := range p.figures {
		f := &p.figures[i]
		if n := freedom[f.name]; n > 0 {
			f.sd = math.Hypot(f.sd, math.Sqrt(sum[f.name]/n))
		}
	}
}

func (p *regression) constants(x []float64) model.Constants {
	c := p.o.Constants
	for i, t := range p.terms {
		c = c.WithValue(t, p.o.Deployment, p.o.Constants.Value(t, p.o.Deployment)*math.Exp(x[i]))
	}
	return c
}

// predict simulates every run and returns its figures.
func (p *regression) predict(x []float64) ([]float64, error) {
	c := p.constants(x)
	if known, ok := p.predicted[c]; ok {
		return known, nil
	}
	records := make([][]measure.Record, len(p.runs))
	if err := parallel.Do(len(p.runs), func(i int) (err error) {
		records[i], err = p.runs[i].simulate(p.o, c)
		if p.o.Watch != nil {
			p.o.Watch()
		}
		return err
	}); err != nil {
		return nil, err
	}
	out := make([]float64, len(p.figures))
	for i, f := range p.figures {
		out[i] = f.of(records[f.point])
		if math.IsNaN(out[i]) || math.IsInf(out[i], 0) {
			return nil, fmt.Errorf("calibrate: run %d has %s, and no request of its load comes that far on the simulated engine: "+
				"its server stood still, or is another model, GPU or setting; leave it out", f.point+1, f.name)
		}
	}
	p.predicted[c] = out
	return out, nil
}

// misfit is the negative log posterior at x, up to a constant.
func (p *regression) misfit(x, predicted []float64) float64 {
	sum := 0.0
	for i, f := range p.figures {
		e := math.Log(predicted[i]/f.measured) / f.sd
		if sum += e * e; p.robust {
			sum += (freedom+1)*math.Log1p(e*e/freedom) - e*e
		}
	}
	for i := range x {
		sum += 3 * math.Log1p(x[i]*x[i]/(3*p.prior[i]*p.prior[i]))
	}
	return sum / 2
}

// The search: the most steps, the change of the misfit at which it ends, the distance over which slopes are
// taken, and the misfit per figure (half the squared number of deviations) above which the nearest maximum is
// not trusted. Then figures count as if they were of Student's t with so many degrees of freedom, if at most a share
// mostOff of them are farOff deviations off.
const (
	mostSteps = 30
	settled   = 1e-3
	distance  = 0.02
	poor      = 1

	freedom, farOff, mostOff = 4.0, 3.0, 0.25
)

// solve finds the maximum of the posterior. From the starting values slopes lead to the nearest one. If that
// fits badly, as on hardware of another kind, where a cost may count that GPUs hide, the search is repeated
// with each term in turn started far up: a host's launch time, for example, moves nothing until it exceeds the
// time of the GPU. While terms are being dropped the search goes on from where it was, without leaps.
func (p *regression) solve(leaps bool) error {
	var err error
	if leaps {
		p.x = make([]float64, len(p.terms))
		if p.before, err = p.predict(p.x); err != nil {
			return err
		}
	}
	if p.now, err = p.predict(p.x); err != nil {
		return err
	}
	p.best = p.misfit(p.x, p.now)
	if err := p.descend(); err != nil {
		return err
	}
	if leaps && p.best > poor*float64(len(p.figures)) {
		if err := p.setAside(); err != nil {
			return err
		}
	}
	for k := 0; leaps && !p.robust && k < len(p.terms) && p.best > poor*float64(len(p.figures)); k++ {
		for _, leap := range []float64{1.5, 3, 6} {
			nearest := *p
			p.x = make([]float64, len(p.terms))
			p.x[k] = leap
			if p.now, err = p.predict(p.x); err == nil {
				p.best = p.misfit(p.x, p.now)
				err = p.descend()
			}
			if err != nil || p.best > nearest.best-settled {
				*p = nearest
			}
		}
	}
	_, err = p.step() // the curvature at the end point
	return err
}

// setAside searches anew for constants that all but a few figures agree with, as if another program had slowed down
// some of the runs, and keeps to these if there are such.
func (p *regression) setAside() error {
	all := *p
	p.x, p.now, p.robust = make([]float64, len(p.terms)), p.before, true
	p.best = p.misfit(p.x, p.now)
	if err := p.descend(); err != nil {
		return err
	}
	if float64(list.Count(p.deviations(), isFarOff)) > mostOff*float64(len(p.figures)) {
		*p = all
	}
	return nil
}

// deviations returns by how many standard deviations each figure is off.
func (p *regression) deviations() []float64 {
	out := make([]float64, len(p.figures))
	for i, f := range p.figures {
		out[i] = math.Log(p.now[i]/f.measured) / f.sd
	}
	return out
}

func isFarOff(deviations float64) bool { return math.Abs(deviations) > farOff }

// descend goes from x to where no step along the slopes lowers the misfit.
func (p *regression) descend() error {
	for range mostSteps {
		step, err := p.step()
		if err != nil {
			return err
		}
		improved := false
		for share := 1.0; share > 0.1; share /= 2 {
			x := slices.Clone(p.x)
			floats.AddScaled(x, share, step)
			now, err := p.predict(x)
			if err != nil {
				continue
			}
			if m := p.misfit(x, now); m < p.best {
				improved = p.best-m > settled
				p.x, p.now, p.best = x, now, m
				break
			}
		}
		if !improved {
			break
		}
	}
	return nil
}

// step takes slopes by central differences and returns the Gauss-Newton step. It stores the slopes and the
// posterior's covariance.
func (p *regression) step() ([]float64, error) {
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
		w := 1 / (p.prior[k]*p.prior[k] + p.x[k]*p.x[k]/3)
		a.SetSym(k, k, w)
		b.SetVec(k, -w*p.x[k])
	}
	for i, f := range p.figures {
		w := 1 / (f.sd * f.sd)
		e := math.Log(p.now[i] / f.measured)
		if p.robust {
			w *= (freedom + 1) / (freedom + w*e*e)
		}
		for k := range n {
			b.SetVec(k, b.AtVec(k)-w*p.slopes.At(i, k)*e)
		}
		a.SymRankOne(a, w, p.slopes.RowView(i))
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

// dropWeakest removes the term whose posterior is nearest to its prior, if that is not identified, and reports
// whether it did. A term moved by two or more prior deviations counts as identified, even where it has moved so
// far that it no longer affects any figure.
func (p *regression) dropWeakest() bool {
	worst, at := identified, -1
	for k := range p.terms {
		if share := math.Sqrt(p.posterior.At(k, k)) / p.prior[k]; share > worst && math.Abs(p.x[k]) < 2*p.prior[k] {
			worst, at = share, k
		}
	}
	if at < 0 {
		return false
	}
	p.terms, p.x = slices.Delete(p.terms, at, at+1), slices.Delete(p.x, at, at+1)
	p.prior = slices.Delete(p.prior, at, at+1)
	return true
}
