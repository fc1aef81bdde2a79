package calibrate

import (
	"errors"
	"fmt"
	"io"

	"github.com/BurntSushi/toml"

	"planner/model"
)

// File is a calibration as it is stored: what [Fit] found, and when it must not be
// used. Values are multiples of the defaults, so that a term that covers several
// formats moves all of them.
type File struct {
	FittedTo  fileOrigin          `toml:"fitted_to"`
	NotFor    []string            `toml:"not_for"`
	Warnings  []string            `toml:"warnings,omitempty"`
	Terms     map[string]fileTerm `toml:"terms"`
	Residuals []fileResidual      `toml:"residuals"`
}

type fileOrigin struct {
	Model          string    `toml:"model"`
	GPU            string    `toml:"gpu"`
	EngineVersion  string    `toml:"engine_version"`
	TensorParallel int       `toml:"tensor_parallel"`
	Weights        string    `toml:"weights"`
	KVCache        string    `toml:"kv_cache"`
	Rates          []float64 `toml:"rates_per_s,omitempty"`
	Concurrencies  []int     `toml:"concurrencies,omitempty"`
	Traces         int       `toml:"traces,omitempty"`
	Date           string    `toml:"date,omitempty"`
}

type fileTerm struct {
	Fitted    bool    `toml:"fitted"`
	Factor    float64 `toml:"factor"` // on the default
	Default   float64 `toml:"default"`
	Value     float64 `toml:"value"`
	Unit      string  `toml:"unit"`
	Prior     float64 `toml:"prior_sd"`
	Posterior float64 `toml:"posterior_sd"`
	Effect    float64 `toml:"effect_percent"`
}

type fileResidual struct {
	Run      int     `toml:"run"`
	Figure   string  `toml:"figure"`
	Measured float64 `toml:"measured_ms"`
	Before   float64 `toml:"before_percent"`
	After    float64 `toml:"after_percent"`
}

// NewFile puts a result into the form that is stored.
func NewFile(r Result) File {
	o := r.FittedTo
	f := File{
		FittedTo: fileOrigin(o),
		Warnings: r.Warnings, Terms: map[string]fileTerm{},
		NotFor: []string{
			"another GPU than " + o.GPU,
			"another minor release of the engine than that of " + o.EngineVersion + ", or another model runner within it",
			fmt.Sprintf("weights other than %s or a KV cache other than %s", o.Weights, o.KVCache),
		},
	}
	for _, t := range r.Terms {
		unit := "s"
		if t.Term.Efficiency() {
			unit = "share of the data sheet's peak"
		}
		f.Terms[t.Term.String()] = fileTerm{Fitted: t.Fitted, Factor: t.Value / t.Default, Default: t.Default, Value: t.Value,
			Unit: unit, Prior: t.Prior, Posterior: t.Posterior, Effect: 100 * t.Effect}
	}
	for _, e := range r.Residuals {
		f.Residuals = append(f.Residuals, fileResidual{Run: e.Run, Figure: e.Figure, Measured: 1e3 * e.Measured,
			Before: 100 * (e.Before/e.Measured - 1), After: 100 * (e.After/e.Measured - 1)})
	}
	return f
}

// Write writes the calibration as TOML, terms in order of their names. It refuses what
// [Read] would refuse.
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

// Read reads what [File.Write] wrote. It refuses unknown keys, unknown terms and factors
// that say that something else is off.
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

// farthest is a factor that would mean that something else than a constant is off. A
// step costs a processor that stands in for a GPU some thirty times what it costs that.
const farthest = 100

// check refuses what cannot be used.
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
	if len(f.Terms) != countKnown(f.Terms) {
		return fmt.Errorf("terms: allowed are %v", model.Terms())
	}
	return nil
}

// countKnown counts the terms whose names are known.
func countKnown(terms map[string]fileTerm) int {
	n := 0
	for _, t := range model.Terms() {
		if _, ok := terms[t.String()]; ok {
			n++
		}
	}
	return n
}

// Apply returns constants with the fitted terms for a deployment on a release of the
// engine. It refuses another GPU, another minor release, and other formats of weights or
// KV cache than those that were measured; another model or degree of parallelism may use
// what was fitted. An empty version stands for no release and is refused.
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
	r, err := model.NewRoofline(dep, c, model.EngineArgs{EngineVersion: version})
	if err != nil {
		return c, fmt.Errorf("calibration: %w", err)
	}
	dep = r.Deployment() // with the checkpoint's own formats filled in
	if w := dep.Precision.Weights.String(); f.FittedTo.Weights != "" && w != f.FittedTo.Weights {
		return refuse("weights", w, f.FittedTo.Weights)
	}
	if kv := dep.Precision.KV.String(); f.FittedTo.KVCache != "" && kv != f.FittedTo.KVCache {
		return refuse("kv_cache", kv, f.FittedTo.KVCache)
	}
	for _, t := range model.Terms() {
		e, ok := f.Terms[t.String()]
		if !ok || !e.Fitted {
			continue
		}
		c = c.WithValue(t, dep, c.Value(t, dep)*e.Factor)
	}
	return c, nil
}
