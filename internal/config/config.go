package config

import (
	"path/filepath"
	"slices"

	"planner/model"
	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Config is a configuration with every default in its place and every name
// resolved. [Load] makes it.
type Config struct {
	Demand    plan.Demand
	Objective measure.SLO
	Model     Model
	// GPUs lists the hardware to compare, in the order of the configuration.
	GPUs []GPU
	// PowerPrice is in US dollars per kWh; 0 means that power is not counted.
	PowerPrice float64
	Engine     Engine
	Space      Space
	Workload   workload.Workload
	Search     Search
	// OutputDir is where run folders are made, relative to the current folder.
	OutputDir string
	// Run is how the run folder was made whose configuration this is; its zero value
	// in any other.
	Run Call
	// Warnings say what a reader of the results should know of the configuration.
	Warnings []string

	need  Need
	draft draft
}

// draft is what the keys of the file write to and are printed from: the values as
// they were given, completed in place while they are resolved.
type draft struct {
	demand    plan.Demand
	rateGiven bool
	slo       measure.SLO
	model     modelText
	hardware  hardwareText
	engine    Engine
	space     Space
	load      load
	search    Search
	output    string
	run       Call
	own       [2][]model.Row // of the user's catalog, by table
}

// defaults is a draft of which nothing has been given yet.
func defaults() draft {
	return draft{
		demand: plan.Demand{BurstIndex: 1, Headroom: 0.20, Spare: 1, Zones: 1},
		slo:    measure.SLO{Errors: 0.001},
		model:  modelText{kv: "auto"},
		engine: engineDefaults(),
		load:   loadDefaults(),
		search: searchDefaults(),
		output: "runs",
	}
}

// Loader reads configurations. Its zero value knows the built-in catalog and every
// trace format of package ingest.
type Loader struct {
	// Catalog is where GPUs and models are looked up; nil means the built-in one.
	Catalog *model.Catalog
	// Trace reads traffic traces; nil means package ingest, whose doubts
	// about a log become warnings.
	Trace TraceReader
}

// Load reads a configuration with a zero [Loader].
func Load(file string, overrides []Override, need Need) (*Config, error) {
	return Loader{}.Load(file, overrides, need)
}

// Load reads the file, puts the overrides on top and resolves what the command
// needs. Without a file ("") the overrides are all there is. The error is a
// [Problems] with everything that is wrong.
func (l Loader) Load(file string, overrides []Override, need Need) (*Config, error) {
	catalog := l.Catalog
	if catalog == nil {
		var err error
		if catalog, err = model.NewCatalog(); err != nil {
			return nil, Problems{{Place: "catalog", Text: err.Error()}}
		}
	}
	src, problems, ok := readSource(file, overrides)
	if !ok {
		return nil, problems.sorted()
	}
	r := &reader{source: src, problems: problems, base: filepath.Dir(file), trace: l.Trace, catalog: catalog.Clone()}
	c := &Config{need: need, draft: defaults()}
	r.take(&c.draft)
	r.finish(c)
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return c, nil
}

// finish resolves a draft into a Config, section by section.
func (r *reader) finish(c *Config) {
	d, need := &c.draft, c.need
	r.checkDemand(d, need)
	r.checkSLO(d, need)
	r.checkEngine(d, need)
	r.checkSingle(d, need)
	c.Model = r.resolveModel(d, need)
	c.GPUs = r.resolveHardware(d, need)
	c.Workload = r.resolveWorkload(d, need)
	c.Demand, c.Objective, c.Engine = d.demand, d.slo, d.engine
	c.PowerPrice, c.Search, c.OutputDir = d.hardware.power, d.search, d.output
	c.Run, d.run = d.run, Call{}
	d.own = r.ownRows(c)
	r.checkTokens(c)
	c.fillSpace(d)
	if need.Search && c.attached() {
		r.warn("engine: an attached engine keeps the knobs that it runs with; none is searched")
	}
	if r.clean("knobs", "workload", "model") {
		r.checkLength(c)
	}
	if need.Engine != NoEngine && r.clean("knobs", "workload", "model", "hardware", "engine") {
		r.checkCandidates(c)
	}
	c.Warnings = slices.Clone(r.warnings)
}

// Simulated reports whether the command runs the simulated engine.
func (c *Config) Simulated() bool { return c.need.simulates(&c.draft) }

// FlatPrice returns the price of one GPU for an hour where the configuration gives
// a single one for all.
func (c *Config) FlatPrice() (usdPerHour float64, ok bool) {
	return c.draft.hardware.price.all, c.draft.hardware.price.given
}

// GPU returns the hardware of a name as [Config.Candidates] writes it.
func (c *Config) GPU(name string) (GPU, bool) {
	for _, g := range c.GPUs {
		if g.Hardware.Name == name {
			return g, true
		}
	}
	return GPU{}, false
}

// Deployment is the model on the GPUs of one configuration of [Config.Candidates].
func (c *Config) Deployment(k measure.Knobs) model.Deployment {
	g, _ := c.GPU(k.GPU)
	return model.Deployment{
		Arch: c.Model.Arch, Hardware: g.Hardware, Precision: c.Model.Precision,
		TP: k.TensorParallel, PP: k.PipelineParallel, DP: k.DataParallel, EP: k.ExpertParallel,
	}
}
