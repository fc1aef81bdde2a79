package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/model"
	"planner/plan"
	"planner/sweep/engine"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

type tomlTable struct {
	name string
	rows []tomlKey
}

// tomlKey describes one key of a table: its name, its meaning, and where it is read into and printed from.
type tomlKey struct {
	name, comment string
	binding
}

// traceFormats includes "", for detecting the format.
func traceFormats() []string {
	return append(list.Map(ingest.TraceFormats, func(f ingest.TraceFormat) string { return f.Name }), "")
}

func engineKinds() []string { return append([]string{"simulated"}, engine.Kinds()...) }

func unread() *Config {
	chat, _ := workload.Class("chat")
	return &Config{
		Demand:    plan.Demand{BurstIndex: 1, Headroom: 0.20, Spare: 1, Zones: 1},
		RateOf:    workload.RateOfBusiestHour,
		Objective: measure.SLO{Errors: 0.001},
		Engine: EngineSettings{
			Kind: "simulated", API: "completions", Stream: true, Launcher: "local", ReadyTimeout: 20 * time.Minute,
		},
		Workload:  workload.Workload{Turns: 1, Arrivals: workload.Poisson, Burstiness: 1, Timeout: 30 * time.Minute, Seed: 1},
		Search:    SearchSettings{Precision: 0.10, Confidence: 0.90, Warmup: Auto, Trial: Auto, Strategy: "race"},
		Cluster:   usualCluster(),
		Fleet:     unreadFleet(),
		OutputDir: "runs",
		draft: draft{
			objective: "latency", weights: []model.WeightFormat{model.FormatUnset}, kv: []model.KVFormat{model.KVAuto},
			space: map[string][]any{"tensor_parallel": {1}, "pipeline_parallel": {1}, "data_parallel": {1}, "expert_parallel": {false}},
			shape: chat, limits: sloLimits{measure.TTFT: {}, measure.TPOT: {}, measure.ITL: {}, measure.E2E: {}, measure.Goodput: {}},
		},
	}
}

// sections lists the tables of the file with their keys, in the order of printing and reading, each bound to
// the configuration. Strictness, defaults, the nearest key of a misspelt one, printing and the starter
// configuration all follow from it.
func (c *Config) sections() []tomlTable {
	return []tomlTable{
		{"demand", c.demandRows()}, {"slo", c.sloRows()}, {"model", c.modelRows()}, {"hardware", c.hardwareRows()},
		{"engine", c.engineRows()}, {"cluster", c.clusterRows()}, {"knobs", c.knobRows()}, {"workload", c.workloadRows()}, {"search", c.searchRows()},
		{"fleet", c.fleetRows()},
		{"output", []tomlKey{{"dir", "folder for run folders, relative to the current folder", filled().in(&c.OutputDir)}}},
	}
}

// Keys returns all keys of a configuration, each with its allowed words if it has a fixed set.
func Keys() map[string][]string {
	keys := map[string][]string{}
	for _, s := range unread().sections() {
		for _, k := range s.rows {
			keys[s.name+"."+k.name] = k.choices
		}
	}
	return keys
}

func (c *Config) demandRows() []tomlKey {
	return []tomlKey{
		{"rate", "requests/s at peak, the whole fleet", orNothing(numberIn(above(0))).in(&c.Demand.Rate)},
		{"tokens_per_day", `with slo.objective = "throughput": prompt and output tokens of every day; 0 = not given`, numberIn(atLeast(0)).in(&c.draft.tokensPerDay)},
		{"requests", `with slo.objective = "throughput": of one job, and its deadline; 0 = not given`, numberIn(atLeast(0)).in(&c.draft.job.Requests)},
		{"deadline", `until all requests of the job are done; "0s" = not given`, durationIn(atLeast(0)).in(&c.draft.job.Deadline)},
		{"rate_of", "what rate is of a trace, and with it --rate and every rate that is answered: mean busiest-hour busiest-minute",
			words(workload.RateOfMean, workload.RateOfBusiestHour, workload.RateOfBusiestMinute).in(&c.RateOf)},
		{"growth", "expected growth until the fleet is in place", numberIn(atLeast(0).atMost(10)).in(&c.Demand.Growth)},
		{"burst_index", "index of dispersion of arrivals in 10 s windows; 1 = Poisson", numberIn(above(0)).in(&c.Demand.BurstIndex)},
		{"mean_rate", "requests/s over the day; given, costs are stated at it too; 0 = not known", numberIn(atLeast(0)).in(&c.Demand.MeanRate)},
		{"max_gpus", "refuse plans above it; 0 = no limit", wholeIn(atLeast(0)).in(&c.Demand.MaxGPUs)},
		{"max_usd_per_hour", "refuse plans above it; 0 = no limit", numberIn(atLeast(0)).in(&c.Demand.MaxUSDPerHour)},
		{"headroom", "the fleet is sized for (1 + headroom) x the planned rate: 0.2 is a fifth more", numberIn(atLeast(0).atMost(10)).in(&c.Demand.Headroom)},
		{"spare_instances", "on top of what the load needs; 1 = N+1", wholeIn(atLeast(0)).in(&c.Demand.Spare)},
		{"availability", "of one instance; with target_availability; not applied unless both are given",
			orNothing(share()).in(&c.Demand.Availability)},
		{"target_availability", "of the fleet", orNothing(share()).in(&c.Demand.TargetAvailability)},
		{"zones", "failure domains; with more than one the fleet survives the loss of any", wholeIn(atLeast(1)).in(&c.Demand.Zones)},
	}
}

func (c *Config) sloRows() []tomlKey {
	objective := tomlKey{"objective", "latency, or throughput: no latency has a limit, and demand says how much is to be done until when", words("latency", "throughput").in(&c.draft.objective)}
	return append(append([]tomlKey{objective}, c.draft.limits.rows()...), tomlKey{"errors", "largest share of failed requests", numberIn(atLeast(0).below(1)).in(&c.Objective.Errors)})
}

func (c *Config) modelRows() []tomlKey {
	d := &c.draft
	return []tomlKey{
		{"name", "a catalog name or a Hugging Face id; llama-server: the path of a GGUF file", anyWord().in(&d.model)},
		{"config", "or a path to a Hugging Face config.json, which is then enough alone", pathname().in(&c.Model.Config)},
		{"weights", strings.Join(model.Names[model.WeightFormat](), " ") + `, or a list; "" = the model's own`, weightFormats().in(&d.weights)},
		{"kv_cache", "auto fp8, or a list", choice(enumerated[model.KVFormat]()).in(&d.kv)},
	}
}

func (c *Config) hardwareRows() []tomlKey {
	d := &c.draft
	return []tomlKey{
		{"gpu", "a catalog name, or a list to compare", choice(anyWord()).in(&d.gpus)},
		{"price_per_gpu_hour", `US dollars, or one a GPU: { "H100 SXM" = 2.99 }; by default the catalog's dated list price`,
			hourlyPrices().in(&d.price)},
		{"power_price_per_kwh", "US dollars", orNothing(numberIn(atLeast(0))).in(&c.PowerPrice)},
		{"price", "instead of both, all ways to pay for a GPU, or a table a GPU: { on_demand, reserved_1y, spot, purchase, amortise_years, " +
			"power_usd_per_kwh, hosting_usd_per_kw_month, pue, watts_per_gpu, basis, source }", tariffs().in(&d.tariff)},
		{"node_gpus", "GPUs that one link joins, a server or an NVL72 rack; wider instances cross nodes; 0 = the catalog's",
			wholeIn(atLeast(0)).in(&c.NodeGPUs)},
	}
}

func (c *Config) engineRows() []tomlKey {
	e, space := &c.Engine, c.draft.space
	return []tomlKey{
		{"kind", strings.Join(engineKinds(), " "), words(engineKinds()...).in(&e.Kind)},
		{"tensor_parallel", "or a list", knobIn(space, "tensor_parallel")},
		{"pipeline_parallel", "pipeline stages", knobIn(space, "pipeline_parallel")},
		{"data_parallel", "replicas of attention inside one instance", knobIn(space, "data_parallel")},
		{"expert_parallel", "mixture of experts: whole experts on each GPU of the tensor-parallel group", knobIn(space, "expert_parallel")},
		{"all2all_backend", "what takes tokens to experts in other replicas: " + strings.Join(model.Names[model.All2All](), " ") + "; auto = the release's default, allgather_reducescatter since 0.11",
			enumerated[model.All2All]().in(&e.Exchange.Backend)},
		{"dbo", "dual-batch overlap: half of a step's tokens travel to experts while the others are computed, by deepep_low_latency or deepep_high_throughput", truth().in(&e.Exchange.DBO)},
		{"eplb", "expert-parallel load balancing: experts are placed so that each GPU has the same load", truth().in(&e.Exchange.EPLB)},
		{"version", `of the engine that is simulated, "0.11.0"; "" = the newest known`, anyWord().in(&e.Version)},
		{"async_scheduling", "simulated: auto true false; auto = the release's default, true since 0.14 (pipeline stages: 0.15, draft models: 0.26)", switched().in(&e.Kernels.Async)},
		{"graphs", "simulated: auto full piecewise decode-only eager, the steps that replay CUDA graphs; auto = the release's default, full since 0.11",
			enumerated[model.GraphMode]().in(&e.Kernels.Graphs)},
		{"graph_tokens", "simulated: the largest step that replays a CUDA graph; 0 = the engine's default", wholeIn(atLeast(0)).in(&e.Kernels.GraphTokens)},
		{"moe_backend", "simulated: auto triton marlin flashinfer deepgemm cutlass, the kernels of experts in 4 bits or fp8 blocks; auto = those that the release prefers, as for a format that the chosen ones do not take",
			enumerated[model.ExpertKernels]().in(&e.Kernels.Experts)},
		{"allreduce_fusion", "simulated: auto true false, all-reduces joined with norms; auto follows the release", switched().in(&e.Kernels.FusedReduce)},
		{"sampler", "simulated: auto greedy sort triton flashinfer; auto = by the model's generation config, its top-p and top-k by sort up to 0.16, by triton from 0.17, by flashinfer from 0.21",
			enumerated[model.Sampler]().in(&e.Kernels.Sampler)},
		{"speculative", `tokens proposed ahead: { method = "mtp", tokens = 3, acceptance = 0.7 }; acceptance of each, or a list by position, or accepted = 2.1, the mean tokens of a step; model of eagle and draft`,
			speculation().in(&c.draft.speculative)},
		{"lora", "low-rank adapters that requests choose among, each as likely: { adapters = 32, slots = 8, rank = 16 }", lora().in(&e.LoRA)},
		{"calibration", "file from planner calibrate", pathname().in(&e.Calibration)},
		{"command", `kind = "command": argv; {port}, {model}, {max_num_seqs}, ... and {env:NAME} are filled in`, openly(inVariable).in(&e.Command)},
		{"url", `kind = "attach": where the server listens`, address().in(&e.Endpoint.URL)},
		{"served_name", `the model's name in requests; "" = the first of /v1/models`, anyWord().in(&e.ServedName)},
		{"launcher", "local slurm kubernetes", words("local", "slurm", "kubernetes").in(&e.Launcher)},
		{"api", "completions chat", words("completions", "chat").in(&e.API)},
		{"stream", "ask for tokens as they come", truth().in(&e.Stream)},
		{"headers", "sent with every request; {env:NAME} is filled in", tableOf(header()).in(&e.Endpoint.Headers)},
		{"env", "environment of the engine; {env:NAME} is filled in", tableOf(environment()).in(&e.Env)},
		{"extra_args", "put behind the engine's own arguments; {env:NAME} is filled in", openly(inVariable).in(&e.ExtraArgs)},
		{"ready_timeout", "from start until the engine answers", durationIn(above(0)).in(&e.ReadyTimeout)},
		{"api_key_env", "the NAME of an environment variable; the key itself is never read from a file nor written anywhere",
			variable().in(&e.Endpoint.APIKeyEnv)},
	}
}

func (c *Config) knobRows() []tomlKey {
	own := list.Filter(measure.KnobTable, func(n measure.Knob) bool { return !n.Placement })
	return list.Map(own, func(n measure.Knob) tomlKey { return tomlKey{n.Name, n.Help, knobIn(c.draft.space, n.Name)} })
}

func (c *Config) workloadRows() []tomlKey {
	d, w := &c.draft, &c.Workload
	return []tomlKey{
		{"class", "chat code long-context-qa summarization; or spell it out in prompt and output", class().in(&d.shape)},
		{"prompt", "tokens; dist: fixed (value), uniform (min, max), normal (mean, stddev), lognormal (median or mean, sigma), empirical (file)",
			lengths().in(&d.shape.Prompt)},
		{"output", "tokens, likewise", lengths().in(&d.shape.Output)},
		{"prefix", "shared prefixes, on top of prompt: { groups, tokens, prompts }; prompts > 0: so many distinct prompts per group, then reused",
			prefix().in(&d.shape.Prefix)},
		{"turns", "requests of one conversation", wholeIn(atLeast(1).atMost(workload.MostTurns)).in(&w.Turns)},
		{"think_time", "between two turns of a conversation", durationIn(atLeast(0)).in(&w.Think)},
		{"arrivals", "poisson constant gamma (with burstiness) trace", words(workload.Poisson, workload.Constant, workload.Gamma, workload.Trace).in(&w.Arrivals)},
		{"burstiness", "shape of gamma gaps: 1 = Poisson, below 1 burstier", numberIn(above(0).atMost(1e6)).in(&w.Burstiness)},
		{"trace", "file; it gives arrivals and lengths", pathname().in(&w.TraceFile)},
		{"trace_format", strings.Join(traceFormats(), " ") + `; "" = found out`, words(traceFormats()...).in(&d.traceFormat)},
		{"timeout", "of one request; it then gives up and counts as failed", durationIn(above(0)).in(&w.Timeout)},
		{"mix", `several named classes: [{ class = "chat", weight = 0.7 }, { name = "rag", weight = 0.3, prompt = {...}, output = {...}, prefix = {...}, slo = {...} }]`,
			mix(&d.shape).in(&d.mix)},
		{"seed", "drives every draw", seed().in(&w.Seed)},
	}
}

func (c *Config) searchRows() []tomlKey {
	s := &c.Search
	return []tomlKey{
		{"precision", "half-width of the interval on the maximum rate, relative", share().in(&s.Precision)},
		{"confidence", "of that interval", share().in(&s.Confidence)},
		{"warm_up", "auto, or a duration, for every trial", orAuto(durationIn(atLeast(0))).in(&s.Warmup)},
		{"trial", "window of a trial: auto = chosen by the search, or a duration", orAuto(durationIn(above(0))).in(&s.Trial)},
		{"min_requests", "of a trial; 0 = what the quantiles of the SLO need", wholeIn(atLeast(0)).in(&s.MinRequests)},
		{"budget", "engine time of all trials, the starts of engines on top; bounds a simulated engine only where it is given",
			orNothing(durationIn(above(0))).in(&c.draft.budget)},
		{"strategy", "race one-at-a-time grid", words("race", "one-at-a-time", "grid").in(&s.Strategy)},
		{"certify", "test one rate below the maximum on requests of its own, without any curve", truth().in(&s.Certify)},
	}
}

// runRows are the keys of [run], which are written by planner and not by users.
func (c *Config) runRows() []tomlKey {
	return []tomlKey{
		{"command", "what made this run folder", orNothing(anyWord()).in(&c.Run.Command)},
		{"args", "its arguments", arguments().in(&c.Run.Args)},
		{"flags", "its own flags", tableOf(anyWord()).in(&c.Run.Flags)},
		{"catalog", "GPUs and model of the user's own catalog", binding{func(n input) { n.r.putCatalog(n) }, func() string { return "" }, nil}},
	}
}

// optionKeys are the keys that correspond to options of vLLM, besides those of the knobs.
var optionKeys = map[string]string{
	"--enforce-eager": `engine.graphs = "eager"`, "--async-scheduling": "engine.async_scheduling", "--no-async-scheduling": "engine.async_scheduling",
	"--kv-cache-dtype": "model.kv_cache", "--quantization": "model.weights", "--dtype": "model.weights", "--moe-backend": "engine.moe_backend",
	"--all2all-backend": "engine.all2all_backend", "--enable-dbo": "engine.dbo = true", "--enable-eplb": "engine.eplb = true",
	"--speculative-config": "engine.speculative", "--enable-lora": "engine.lora", "--max-loras": "engine.lora", "--max-lora-rank": "engine.lora",
	"--long-prefill-token-threshold": `knobs.extra_args = ["--long-prefill-token-threshold 512"]`, "--enable-chunked-prefill": `knobs.extra_args = ["--no-enable-chunked-prefill"]`,
	"--cuda-graph-sizes": "engine.graph_tokens", "--cudagraph-capture-sizes": "engine.graph_tokens", "--max-cudagraph-capture-size": "engine.graph_tokens",
}

// unmodelled are options of vLLM that affect its speed but of which the simulated engine models only the
// default.
var unmodelled = []string{
	"--attention-backend", "--block-size", "--compilation-config", "--cpu-offload-gb", "--decode-context-parallel-size",
	"--dbo-decode-token-threshold", "--dbo-prefill-token-threshold", "--disable-sliding-window", "--eplb-config", "--kv-offloading-size", "--kv-transfer-config",
	"--max-long-partial-prefills", "--max-num-partial-prefills", "--prefill-context-parallel-size",
	"--scheduling-policy", "--stream-interval", "--swap-space",
}

// KeyOfOption returns the key that corresponds to an option of vLLM, with the value if the option implies one;
// "" if there is none.
func KeyOfOption(option string) string {
	if n, ok := measure.KnobOf(option); ok {
		return keyOf(n)
	}
	return optionKeys[option]
}

// instead suggests what an unknown key may mean: the key for an option of vLLM, that the option is not
// modelled, or the nearest key.
func instead(within, name string, all []tomlTable) string {
	option := "--" + strings.ReplaceAll(name, "_", "-")
	if key := KeyOfOption(option); key != "" {
		return fmt.Sprintf("what vLLM's %s sets is %s here", option, key)
	}
	if slices.Contains(unmodelled, option) {
		return fmt.Sprintf(`of vLLM's %s planner models the default alone; engine.extra_args = ["%s", ...] passes it to a real engine`, option, option)
	}
	if _, err := measure.ParseStat(name); within == "slo" && err == nil {
		return "want the metric of which it is, such as ttft." + name
	}
	return "the nearest valid key is " + nearestKey(within, name, all)
}
