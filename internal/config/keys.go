package config

import (
	"slices"
	"strings"
	"time"

	"planner/model"
	"planner/plan"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// keyRow describes one key of the file: its full name, what it means, and where it
// is read into and printed from.
type keyRow struct {
	name, comment string
	binding
}

// Words that keys may say.
var (
	engineKinds   = []string{"simulated", "vllm", "sglang", "trtllm", "tgi", "llama-server", "lmdeploy", "command", "attach"}
	weightFormats = []string{"bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"}
	// traceFormats may be "" to find the format out.
	traceFormats = func() (names []string) {
		for _, f := range ingest.TraceFormats() {
			names = append(names, f.Name)
		}
		return append(names, "")
	}()
)

// unread is a configuration of which nothing has been given yet.
func unread() *Config {
	return &Config{
		Demand:    plan.Demand{BurstIndex: 1, Headroom: 0.20, Spare: 1, Zones: 1},
		Objective: measure.SLO{Errors: 0.001},
		Engine: EngineSettings{
			Kind:     "simulated",
			Endpoint: EndpointSettings{API: "completions", Stream: true, Headers: map[string]string{}},
			Launch: Launch{
				Launcher: "local", Command: []string{}, Env: map[string]string{}, ExtraArgs: []string{},
				ReadyTimeout: 20 * time.Minute,
			},
		},
		Search:    Search{Precision: 0.10, Confidence: 0.90, Budget: time.Hour, Strategy: "race"},
		OutputDir: "runs",
		draft: draft{
			space: Space{"tensor_parallel": {1}, "pipeline_parallel": {1}, "data_parallel": {1}, "expert_parallel": {false}},
			load: workloadText{component: component{class: "chat"}, turns: 1, arrivals: workload.Poisson, burstiness: 1,
				timeout: 30 * time.Minute, seed: 1},
		},
	}
}

// keys lists the keys of the file in their order, in sections, with their places in a
// configuration. Strictness, defaults, the nearest key of a misspelt one, printing and
// the starter configuration all follow from it.
func (c *Config) keys() []keyRow {
	return slices.Concat(c.demandKeys(), c.sloKeys(), c.modelKeys(), c.engineKeys(), c.knobKeys(), c.workloadKeys(), c.searchKeys())
}

func (c *Config) demandKeys() []keyRow {
	return []keyRow{
		{"demand.rate", "requests/s at peak, the whole fleet", optional(positive.in(&c.Demand.Rate), &c.draft.rateGiven)},
		{"demand.growth", "expected growth until the fleet is in place", nonNegative.in(&c.Demand.Growth)},
		{"demand.burst_index", "index of dispersion of arrivals in 10 s windows; 1 = Poisson", positive.in(&c.Demand.BurstIndex)},
		{"demand.mean_rate", "requests/s over the day; given, costs are stated at it too; 0 = not known", nonNegative.in(&c.Demand.MeanRate)},
		{"demand.max_gpus", "refuse plans above it; 0 = no limit", wholeFrom(0).in(&c.Demand.MaxGPUs)},
		{"demand.max_usd_per_hour", "refuse plans above it; 0 = no limit", nonNegative.in(&c.Demand.MaxUSDPerHour)},
		{"demand.headroom", "the fleet is sized for (1 + headroom) x the planned rate", nonNegative.in(&c.Demand.Headroom)},
		{"demand.spare_instances", "on top of what the load needs; 1 = N+1", wholeFrom(0).in(&c.Demand.Spare)},
		{"demand.availability", "of one instance; with target_availability; not applied unless both are given",
			orNothing(share).in(&c.Demand.Availability)},
		{"demand.target_availability", "of the fleet", orNothing(share).in(&c.Demand.TargetAvailability)},
		{"demand.zones", "failure domains; with more than one the fleet survives the loss of any", wholeFrom(1).in(&c.Demand.Zones)},
	}
}

func (c *Config) sloKeys() []keyRow {
	bounds := func(m measure.Metric) binding { return boundsOn(m, &c.Objective) }
	return []keyRow{
		{"slo.ttft", `time to first token: any of { p50 | p90 | p95 | p99 | "p99.9" | mean = limit }`, bounds(measure.TTFT)},
		{"slo.tpot", "time per output token after the first, one figure a request", bounds(measure.TPOT)},
		{"slo.itl", "time between two tokens, one figure a token", bounds(measure.ITL)},
		{"slo.e2e", "time of a whole request", bounds(measure.E2E)},
		{"slo.goodput", "least share of requests within all of its limits at once: { share = 0.95, any of ttft, tpot, e2e = limit }",
			goodputOf(&c.Objective)},
		{"slo.errors", "largest share of failed requests", shareOrZero.in(&c.Objective.Errors)},
	}
}

// modelKeys are the keys of [model] and [hardware].
func (c *Config) modelKeys() []keyRow {
	d := &c.draft
	return []keyRow{
		{"model.name", "a catalog name or a Hugging Face id in the catalog", anyWord.in(&d.model)},
		{"model.config", "or a path to a Hugging Face config.json, which is then enough alone", pathname.in(&c.Model.Config)},
		{"model.weights", strings.Join(weightFormats, " ") + `; "" = the model's own`, named(model.ParseWeightFormat, append(weightFormats, "")...).in(&c.Model.Precision.Weights)},
		{"model.kv_cache", "auto fp8", named(model.ParseKVFormat, "auto", "fp8").in(&c.Model.Precision.KV)},

		{"hardware.gpu", "a catalog name, or a list to compare", choice(anyWord).in(&d.gpus)},
		{"hardware.price_per_gpu_hour", `US dollars, or one a GPU: { "H100 SXM" = 2.99 }; by default the catalog's dated list price`,
			perGPU.in(&d.price)},
		{"hardware.power_price_per_kwh", "US dollars", nonNegative.in(&c.PowerPrice)},
	}
}

func (c *Config) engineKeys() []keyRow {
	e, space := &c.Engine, c.draft.space
	return []keyRow{
		{"engine.kind", strings.Join(engineKinds, " "), words(engineKinds...).in(&e.Kind)},
		{"engine.tensor_parallel", "or a list", space.binding("tensor_parallel")},
		{"engine.pipeline_parallel", "pipeline stages", space.binding("pipeline_parallel")},
		{"engine.data_parallel", "replicas of attention inside one instance", space.binding("data_parallel")},
		{"engine.expert_parallel", "mixture of experts: whole experts on each GPU of the tensor-parallel group", space.binding("expert_parallel")},
		{"engine.version", `of the engine that is simulated, "0.11.0"; "" = the newest known`, anyWord.in(&e.Version)},
		{"engine.calibration", "file from planner calibrate", pathname.in(&e.Calibration)},
		{"engine.command", `kind = "command": argv; {port}, {model}, {max_num_seqs}, ... are filled in`, arguments.in(&e.Launch.Command)},
		{"engine.url", `kind = "attach": where the server listens`, address.in(&e.Endpoint.URL)},
		{"engine.served_name", `the model's name in requests; "" = the first of /v1/models`, anyWord.in(&e.Endpoint.ServedName)},
		{"engine.launcher", "local slurm kubernetes", words("local", "slurm", "kubernetes").in(&e.Launch.Launcher)},
		{"engine.api", "completions chat", words("completions", "chat").in(&e.Endpoint.API)},
		{"engine.stream", "ask for tokens as they come", truth.in(&e.Endpoint.Stream)},
		{"engine.headers", "sent with every request", namedWords(checkHeader).in(&e.Endpoint.Headers)},
		{"engine.env", "environment of the engine", namedWords(checkVariable).in(&e.Launch.Env)},
		{"engine.extra_args", "put behind the engine's own arguments", arguments.in(&e.Launch.ExtraArgs)},
		{"engine.ready_timeout", "from start until the engine answers", period.in(&e.Launch.ReadyTimeout)},
		{"engine.api_key_env", "the NAME of an environment variable; the key itself is never read from a file nor written anywhere",
			variable.in(&e.Endpoint.APIKeyEnv)},
	}
}

// knobKeys are the keys of [knobs]: all that is not about GPUs.
func (c *Config) knobKeys() []keyRow {
	var keys []keyRow
	for _, n := range measure.KnobTable {
		if !n.Placement {
			keys = append(keys, keyRow{keyOf(n), n.Help, c.draft.space.binding(n.Name)})
		}
	}
	return keys
}

func (c *Config) workloadKeys() []keyRow {
	l := &c.draft.load
	return []keyRow{
		{"workload.class", "chat code long-context-qa summarization; or spell it out in prompt and output", words(workload.ClassNames()...).in(&l.class)},
		{"workload.prompt", "tokens; dist: fixed (value), uniform (min, max), normal (mean, stddev), lognormal (median or mean, sigma), empirical (file)",
			pointer(lengths).in(&l.prompt)},
		{"workload.output", "tokens, likewise", pointer(lengths).in(&l.output)},
		{"workload.prefix", "shared prefixes, on top of prompt: { groups, tokens, prompts }; prompts > 0: so many distinct prompts per group, then reused",
			pointer(prefix).in(&l.prefix)},
		{"workload.turns", "requests of one conversation", wholeFrom(1).in(&l.turns)},
		{"workload.think_time", "between two turns of a conversation", pause.in(&l.think)},
		{"workload.arrivals", "poisson constant gamma (with burstiness) trace", words(workload.Poisson, workload.Constant, workload.Gamma, workload.Trace).in(&l.arrivals)},
		{"workload.burstiness", "shape of gamma gaps: 1 = Poisson, below 1 burstier", numberIn(numberRange{low: 0, above: true, high: 1e6}).in(&l.burstiness)},
		{"workload.trace", "file; it gives arrivals and lengths", pathname.in(&l.trace)},
		{"workload.trace_format", strings.Join(traceFormats, " ") + `; "" = found out`, words(traceFormats...).in(&l.format)},
		{"workload.timeout", "of one request; it then gives up and counts as failed", period.in(&l.timeout)},
		{"workload.mix", `several named classes: [{ class = "chat", weight = 0.7 }, { name = "rag", weight = 0.3, prompt = {...}, output = {...}, prefix = {...} }]`,
			mix.in(&l.mix)},
		{"workload.seed", "drives every draw", anySeed.in(&l.seed)},
	}
}

// searchKeys are the keys of [search] and [output].
func (c *Config) searchKeys() []keyRow {
	s := &c.Search
	return []keyRow{
		{"search.precision", "half-width of the interval on the maximum rate, relative", share.in(&s.Precision)},
		{"search.confidence", "of that interval", share.in(&s.Confidence)},
		{"search.warm_up", "auto, or a duration, for every trial", orAuto(pause).in(&s.Warmup)},
		{"search.trial", "window of a trial: auto = chosen by the search, or a duration", orAuto(period).in(&s.Trial)},
		{"search.min_requests", "of a trial; 0 = what the quantiles of the SLO need", wholeFrom(0).in(&s.MinRequests)},
		{"search.budget", "engine time, all trials; bounds a simulated engine only where it is given",
			optional(period.in(&s.Budget), &s.BudgetGiven)},
		{"search.strategy", "race one-at-a-time grid", words("race", "one-at-a-time", "grid").in(&s.Strategy)},
		{"search.certify", "test one rate below the maximum on requests of its own, without any curve", truth.in(&s.Certify)},

		{"output.dir", "folder for run folders, relative to the current folder", filled.in(&c.OutputDir)},
	}
}

// runKeys are the keys of [run], which planner writes and users do not.
func (c *Config) runKeys() []keyRow {
	return []keyRow{
		{"run.command", "what made this run folder", orNothing(anyWord).in(&c.Run.Command)},
		{"run.args", "its arguments", arguments.in(&c.Run.Args)},
		{"run.flags", "its own flags", namedWords(nil).in(&c.Run.Flags)},
		{"run.catalog", "GPUs and model of the user's own catalog", binding{take: func(n input) { n.r.putCatalog(n) }}},
	}
}

// sections lists the sections in the order of the file.
func sections(keys []keyRow) []string {
	var names []string
	for _, k := range keys {
		section, _ := splitKey(k.name)
		names = append(names, section)
	}
	return slices.Compact(names)
}

// splitKey cuts a full key into section and name.
func splitKey(name string) (section, rest string) {
	section, rest, _ = strings.Cut(name, ".")
	return section, rest
}
