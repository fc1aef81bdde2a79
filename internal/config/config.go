package config

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/list"
	"planner/model"
	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Config is a configuration with all defaults filled in and all names resolved. [Load] makes it.
type Config struct {
	Demand plan.Demand
	// RateOf says which rate of a trace Demand.Rate, loads and answers refer to.
	RateOf    workload.RateOf
	Objective measure.SLO
	Model     ServedModel
	// GPUs lists the GPUs to compare, in the order of the configuration.
	GPUs []GPU
	// PowerPrice is in US dollars per kWh; 0 means that power is not counted.
	PowerPrice float64
	// NodeGPUs is the number of GPUs in a node; 0 means the catalog's.
	NodeGPUs int
	Engine   EngineSettings
	Cluster  Cluster
	// Space holds the values to try of each knob, by its name. A knob without values is left to the engine.
	Space    map[string][]any
	Workload workload.Workload
	Search   SearchSettings
	// Fleet is what is replayed over time.
	Fleet FleetSettings
	// OutputDir is where run folders are made, relative to the current folder.
	OutputDir string
	// Run is the command that made the run folder of this configuration; zero in any other configuration.
	Run Invocation
	// Warnings are what a reader of the results should know of the configuration.
	Warnings []string

	draft draft
}

// draft is what the command needs, and names and file paths as written. They are completed in place while they
// are resolved, so that they can be printed.
type draft struct {
	need      Need
	objective string
	// job is the work to do if no latency has a limit: tokensPerDay, or job.Requests until job.Deadline.
	job          plan.Job
	tokensPerDay float64
	limits       sloLimits
	model        string
	gpus         []string
	price        eachGPU[float64]     // prices in the older notation
	tariff       eachGPU[plan.Tariff] // prices in the newer notation
	weights      []model.WeightFormat // the choices
	kv           []model.KVFormat
	space        map[string][]any // values that were given, or are printed as if they were
	shape        workload.Shape   // of the workload outside its mix
	mix          []component
	traceFormat  string
	speculative  speculative
	budget       time.Duration
	own          [2][]model.Row // rows of the user's catalog, by table
}

// Load reads a configuration with the built-in catalog, see [LoadWith].
func Load(file string, overrides []Override, need Need) (*Config, error) {
	catalog, err := model.NewCatalog()
	if err != nil {
		return nil, Problems{{Text: err.Error(), at: place{file: "catalog"}}}
	}
	return LoadWith(catalog, file, overrides, need)
}

// LoadWith reads the file, applies the overrides and resolves what the command needs; GPUs and models are
// looked up in the catalog. Without a file ("") there are only the overrides. The error is a [Problems] with
// everything that is wrong.
func LoadWith(catalog *model.Catalog, file string, overrides []Override, need Need) (*Config, error) {
	r := newReader(file, catalog.Clone())
	c := unread()
	c.draft.need = need
	if r.read(overrides) {
		r.take(c)
		r.finish(c)
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return c, nil
}

// finish resolves and checks what was written, section by section.
func (r *reader) finish(c *Config) {
	r.checkDemand(c)
	r.resolveSLO(c)
	c.Search.Budget, c.Search.BudgetGiven = cmp.Or(c.draft.budget, usualBudget), c.draft.budget > 0
	r.at("search.warm_up").refuseIf(c.draft.need.Limit && c.draft.need.Engine && c.Search.Warmup == 0, // a fixed length of 0, which leaves the search no choice
		`is "0s", want "auto" or a duration above 0: an engine that is still empty carries more than it can keep up`)
	r.checkEngine(c)
	c.spreadFormats()
	r.checkSingle(c)
	r.resolveModel(c)
	r.resolveHardware(c)
	r.checkCluster(c)
	r.resolveWorkload(c)
	c.draft.own = r.ownRows(c)
	r.checkTokens(c)
	r.resolveFleet(c)
	c.fillSpace()
	r.resolveSpeculative(c)
	r.checkLoRA(c)
	r.warnUnusedEngine(c)
	r.warnIf(c.draft.need.Search && c.attached(), "engine: an attached engine keeps the knobs that it runs with; none is searched")
	if r.clean("knobs", "workload", "model") {
		r.checkLength(c)
	}
	r.resolveJob(c)
	if c.draft.need.Engine && r.clean("knobs", "workload", "model", "hardware", "engine") {
		r.checkCandidates(c)
	}
	c.Warnings = slices.Clone(r.warnings)
}

func (r *reader) checkDemand(c *Config) {
	if c.draft.need.Demand && !r.given("demand.rate") && c.draft.objective != throughput {
		r.absent("demand.rate", "is missing, want the peak load of the whole fleet in requests/s, such as 100")
	}
	d := &c.Demand
	r.warnIf((d.Availability > 0) != (d.TargetAvailability > 0), "demand: availability and target_availability are applied only when both are given")
	r.warnIf(d.MeanRate > d.Rate && d.Rate > 0, "demand: mean_rate %s is above the peak rate %s", number(d.MeanRate), number(d.Rate))
}

// Simulated reports whether the command runs the simulated engine.
func (c *Config) Simulated() bool {
	return c.draft.need.Engine && (c.draft.need.Simulated || c.Engine.Kind == "simulated")
}

// GPU returns the GPU with a name as used by [Config.Candidates].
func (c *Config) GPU(name string) (GPU, bool) {
	return list.Find(c.GPUs, func(g GPU) bool { return g.Hardware.Name == name })
}

// Deployment returns the model on the GPUs of one of [Config.Candidates].
func (c *Config) Deployment(k measure.Knobs) model.Deployment {
	g, _ := c.GPU(k.GPU)
	return model.Deployment{
		Arch: c.Model.Arch, Hardware: g.Hardware, Precision: c.Precision(k),
		TP: k.TensorParallel, PP: k.PipelineParallel, DP: k.DataParallel, EP: k.ExpertParallel,
		NodeGPUs: c.NodeGPUs,
	}
}

// Need says what a command uses of a configuration. Sections that it does not use may be missing, but are
// checked if present.
type Need struct {
	// Demand requires demand.rate.
	Demand bool
	// Limit requires at least one latency limit.
	Limit bool
	// Workload reads the files named in the workload.
	Workload bool
	// Fleet requires traffic over time and a policy to serve it.
	Fleet bool
	// InTime checks traffic over time if it is given.
	InTime bool
	// Engine requires what the engine needs: model and hardware for a simulated one, the URL for an attached
	// one. It is the one that engine.kind names, unless Simulated selects the simulated one.
	Engine, Simulated bool
	// Lists accepts lists of knobs, GPUs and degrees of parallelism.
	Lists bool
	// Search tries the standard lists for knobs that are not given; otherwise the engine's defaults apply.
	Search bool
	// OwnLengths says that requests are not as long as the workload's.
	OwnLengths bool
}

// needs are the needs of each command.
var needs = map[string]Need{
	"plan":      {Demand: true, Limit: true, Workload: true, InTime: true, Engine: true, Lists: true, Search: true},
	"estimate":  {Demand: true, Limit: true, Workload: true, InTime: true, Engine: true, Simulated: true, Lists: true, Search: true},
	"simulate":  {Workload: true, Engine: true, Simulated: true},
	"serve-sim": {Workload: true, Engine: true, Simulated: true},
	"search":    {Limit: true, Workload: true, Engine: true},
	"bench":     {Workload: true, Engine: true},
	"compare":   {Workload: true, Engine: true},
	"probe":     {Workload: true, Engine: true, OwnLengths: true},
	"fleet":     {Limit: true, Workload: true, Fleet: true, Engine: true, Simulated: true},
	"fit":       {Demand: true, Limit: true},
	"sweep":     {Workload: true, Engine: true, Lists: true},
	"doctor":    {Workload: true, Engine: true, Lists: true},
	"calibrate": {Workload: true, Engine: true, Lists: true},
}

// For returns what a command needs; an unknown command needs nothing.
func For(command string) Need { return needs[command] }

// SearchSettings configures the search for a maximum rate.
type SearchSettings struct {
	// Precision is the relative half-width of the interval on the maximum rate.
	Precision float64
	// Confidence is the level of that interval.
	Confidence float64
	// Warmup is the length of the load before each trial's window, and Trial that of the window; Auto leaves it
	// to the search.
	Warmup, Trial time.Duration
	// MinRequests is the minimum per trial; 0 means what the quantiles of the objective need.
	MinRequests int
	// Budget is the engine time of all trials together. BudgetGiven says that the user set it; otherwise it
	// does not bound a simulated engine.
	Budget      time.Duration
	BudgetGiven bool
	// Strategy is "race", "one-at-a-time" or "grid".
	Strategy string
	// Certify adds a test of one rate after the search, which needs no curve.
	Certify bool
}

// Auto is a duration left to the search.
const Auto time.Duration = -1

// usualBudget is the default engine time of a search.
const usualBudget = time.Hour
