package calibrate

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"planner/model"
)

// File is a calibration: what [Fit] found, how well it agrees, and where it must not be used. Terms are keyed
// by name. [File.Apply] uses only their factors on the defaults, so that a term that covers several formats
// scales all of them.
type File struct {
	FittedTo Origin   `toml:"fitted_to"`
	NotFor   []string `toml:"not_for"`
	// Warnings say what a user should know before using it.
	Warnings  []string           `toml:"warnings,omitempty"`
	Terms     map[string]TermFit `toml:"terms"`
	Residuals []Residual         `toml:"residuals"`
	// Scores compare predictions of runs that it was not fitted to with what was measured.
	Scores []Score `toml:"scores,omitempty"`
}

// Origin is what a calibration was fitted to.
type Origin struct {
	Model string `toml:"model"`
	GPU   string `toml:"gpu"`
	// Engine is the kind of the engine that was measured; "" if the runs do not say.
	Engine         string `toml:"engine,omitempty"`
	EngineVersion  string `toml:"engine_version"`
	TensorParallel int    `toml:"tensor_parallel"`
	Weights        string `toml:"weights"`
	KVCache        string `toml:"kv_cache"`
	// Rates and Concurrencies are those of the runs; a replayed trace counts in Traces only.
	Rates         []float64 `toml:"rates_per_s,omitempty"`
	Concurrencies []int     `toml:"concurrencies,omitempty"`
	Traces        int       `toml:"traces,omitempty"`
	Date          string    `toml:"date,omitempty"`
}

// TermFit is the outcome of one term.
type TermFit struct {
	// Fitted says that the runs narrowed the term; otherwise Value is Default.
	Fitted bool    `toml:"fitted"`
	Factor float64 `toml:"factor"` // on the default
	// Default is the value before the fit and Value the one after it, in Unit: seconds, or a share of the data
	// sheet's peak.
	Default float64 `toml:"default"`
	Value   float64 `toml:"value"`
	Unit    string  `toml:"unit"`
	// Prior and Posterior are the relative standard deviations before and after the fit.
	Prior     float64 `toml:"prior_sd"`
	Posterior float64 `toml:"posterior_sd"`
	// Effect is by how much the change of this term alone moves the figures, to first order: a root mean
	// square, in percent.
	Effect float64 `toml:"effect_percent"`
}

// Residual compares one figure of one run with its simulation before and after the fit.
type Residual struct {
	Run      int     `toml:"run"` // counted from 1
	Figure   string  `toml:"figure"`
	Measured float64 `toml:"measured_ms"`
	Before   float64 `toml:"before_percent"`
	After    float64 `toml:"after_percent"`
}

func originOf(runs []LoadPoint, o *FitOptions) Origin {
	dep := o.Deployment.Normal()
	out := Origin{
		Model: dep.Arch.Name, GPU: dep.Hardware.Name, Engine: runs[0].Measurement.Server.Engine.Kind, EngineVersion: o.Version, TensorParallel: dep.TP,
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

func (p *regression) result() File {
	o := originOf(p.runs, p.o)
	out := File{FittedTo: o, Terms: map[string]TermFit{}, NotFor: []string{
		"another GPU than " + o.GPU,
		"another minor release of the engine than that of " + o.EngineVersion + ", or another model runner within it",
		fmt.Sprintf("weights other than %s or a KV cache other than %s", o.Weights, o.KVCache),
	}}
	if p.robust {
		var off []string
		for i, d := range p.deviations() {
			if run := strconv.Itoa(p.figures[i].point + 1); isFarOff(d) && !slices.Contains(off, run) {
				off = append(off, run)
			}
		}
		out.Warnings = append(out.Warnings, "runs that count little, as no constants suit both them and the others: "+strings.Join(off, ", ")+". Another program may have slowed the machine")
	}
	if n := len(loads(p.runs)); n < tellingNumber {
		out.Warnings = append(out.Warnings, fmt.Sprintf("it is fitted to %d load points: none is left that would show how well it holds at others", n))
	}
	for _, t := range model.Terms() {
		f := TermFit{Default: p.o.Constants.Value(t, p.o.Deployment), Prior: model.SpreadFor(p.o.Deployment, p.o.engine())[t], Unit: "s"}
		f.Value, f.Factor, f.Posterior = f.Default, 1, f.Prior
		switch {
		case f.Default == 0:
			continue
		case t.Efficiency():
			f.Unit = "share of the data sheet's peak"
		case t == model.DoubtSkinny:
			f.Unit = "ratio"
		}
		if k := slices.Index(p.terms, t); k >= 0 {
			f.Fitted = true
			f.Value = p.constants(p.x).Value(t, p.o.Deployment)
			f.Factor = f.Value / f.Default
			f.Posterior = math.Sqrt(p.posterior.At(k, k))
			f.Effect = 100 * p.effect(k)
			if moved := math.Abs(math.Log(f.Value / f.Default)); moved > 3*f.Prior {
				out.Warnings = append(out.Warnings, fmt.Sprintf("%s moved by %.1f of its standard deviations: the engine may do something that the equations do not know", t, moved/f.Prior))
			}
		}
		out.Terms[t.String()] = f
	}
	for i, f := range p.figures {
		out.Residuals = append(out.Residuals, Residual{Run: f.point + 1, Figure: f.name, Measured: 1e3 * f.measured,
			Before: 100 * (p.before[i]/f.measured - 1), After: 100 * (p.now[i]/f.measured - 1)})
	}
	return out
}

// effect returns the root mean square, over the figures, of what one term's change does.
func (p *regression) effect(k int) float64 {
	sum := 0.0
	for i := range p.figures {
		d := p.slopes.At(i, k) * p.x[k]
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(p.figures)))
}

// Write writes the calibration as TOML, terms in order of their names. It refuses what [Read] would refuse.
func (f File) Write(w io.Writer) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("write calibration: %w", err)
	}
	if _, err := io.WriteString(w, "# The simulated engine's constants, fitted to measured runs. Name this file in engine.calibration.\n\n"); err != nil {
		return fmt.Errorf("write calibration: %w", err)
	}
	if err := toml.NewEncoder(w).Encode(f); err != nil {
		return fmt.Errorf("write calibration: %w", err)
	}
	return nil
}

// Read reads what [File.Write] wrote. It refuses unknown keys, unknown terms and implausible factors.
func Read(r io.Reader) (File, error) {
	var f File
	meta, err := toml.NewDecoder(r).Decode(&f)
	if err != nil {
		return File{}, fmt.Errorf("read calibration: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return File{}, fmt.Errorf("read calibration: unknown key %s", unknown[0])
	}
	if err := f.check(); err != nil {
		return File{}, fmt.Errorf("read calibration: %w", err)
	}
	return f, nil
}

// farthest bounds the factors: one beyond it means that something else than a constant is off. Beside a processor that
// stands in for a GPU a running request costs some 3,000 times as much.
const farthest = 100_000

// check refuses a file that cannot be used.
func (f *File) check() error {
	if f.FittedTo.GPU == "" {
		return errors.New("fitted_to.gpu is missing")
	}
	v, err := model.ParseVersion(f.FittedTo.EngineVersion)
	if err != nil {
		return fmt.Errorf("fitted_to.engine_version: %w", err)
	}
	if v == (model.Version{}) {
		return errors.New("fitted_to.engine_version is missing")
	}
	for _, t := range model.Terms() { // not the map: the first mistake is always the same
		e, ok := f.Terms[t.String()]
		if ok && !(e.Factor > 1.0/farthest && e.Factor < farthest) {
			return fmt.Errorf("terms.%s.factor: %g is not between %g and %d", t, e.Factor, 1.0/farthest, farthest)
		}
	}
	for i, s := range f.Scores {
		if !(s.Predicted > 0 && s.Measured > 0) {
			return fmt.Errorf("scores: entry %d: predicted_ms and measured_ms must be above 0", i+1)
		}
	}
	for name := range f.Terms {
		if !slices.ContainsFunc(model.Terms(), func(t model.Doubt) bool { return t.String() == name }) {
			return fmt.Errorf("terms: allowed are %v", model.Terms())
		}
	}
	return nil
}

// Apply returns constants with the fitted terms for a deployment on a release of the engine. It refuses another
// GPU, another minor release, and other formats of weights or KV cache than were measured; other models and
// degrees of parallelism are allowed. An empty version is no release and is refused.
func (f File) Apply(dep model.Deployment, version string, c model.Constants) (model.Constants, error) {
	refuse := func(what, have, want string) (model.Constants, error) {
		return c, fmt.Errorf("calibration: it was fitted to %s %s and must not be used for %s", what, want, have)
	}
	if dep.Hardware.Name != f.FittedTo.GPU {
		return refuse("gpu", dep.Hardware.Name, f.FittedTo.GPU)
	}
	have, err := model.ParseVersion(version)
	if err != nil {
		return c, fmt.Errorf("calibration: %w", err)
	}
	want, err := model.ParseVersion(f.FittedTo.EngineVersion)
	if err != nil {
		return c, fmt.Errorf("calibration: %w", err)
	}
	if have != want {
		return refuse("engine version", "version "+version, f.FittedTo.EngineVersion)
	}
	if err := dep.Validate(); err != nil {
		return c, fmt.Errorf("calibration: %w", err)
	}
	dep = dep.Normal()
	if w := dep.Precision.Weights.String(); f.FittedTo.Weights != "" && w != f.FittedTo.Weights {
		return refuse("weights", w, f.FittedTo.Weights)
	}
	if kv := dep.Precision.KV.String(); f.FittedTo.KVCache != "" && kv != f.FittedTo.KVCache {
		return refuse("kv_cache", kv, f.FittedTo.KVCache)
	}
	for _, t := range model.Terms() {
		e, ok := f.Terms[t.String()]
		if layer, fitted := f.Terms[model.DoubtLayer.String()]; !ok && fitted && t == model.DoubtLaunch {
			// Before 2026-11-27 launches were fixed at 0.35 ms and scaled with the layer term.
			c.Fixed.Launch = 0.35e-3 * layer.Factor
			c.Fixed.LaunchAll *= layer.Factor
		}
		if !ok || !e.Fitted {
			continue
		}
		c = c.WithValue(t, dep, c.Value(t, dep)*e.Factor)
	}
	return c, nil
}
