package engines

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/secret"
	"planner/model"
	"planner/plan"
	"planner/plan/decide"
	"planner/sweep/engine"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// HandOver adds to a plan how its instances are started; nothing if that is unknown. Pools of classes serve the model
// that one pool for all would.
func HandOver(whole *config.Config, p *decide.Planned) {
	cfg := whole
	if p.Class != "" {
		cfg = whole.Pool(p.Class)
	}
	settings := recommended(cfg)
	settings.Model = ServedModel(whole)
	k := p.Offer.Knobs
	version, kvTokens := serverSaid(p.Background.Trials, k)
	var notes []string
	if n := roomForSamples(cfg, k, kvTokens); n > k.MaxModelLen {
		notes = append(notes, fmt.Sprintf("max_model_len %d, not the %d of the trials: the longest request to come need not be in the sample", n, k.MaxModelLen))
		k.MaxModelLen = n
	}
	command, err := settings.Command(k, engine.AnyPort)
	if err != nil || len(command.Args) == 0 {
		return
	}
	hidden := secret.Arguments(command.Args)
	argv := slices.Clone(command.Args)
	for i, arg := range argv {
		switch {
		case hidden[i]:
			argv[i] = secret.Hidden
		case arg == loopback:
			argv[i] = everywhere // planner measures on loopback, but instances serve other hosts
		}
	}
	if len(command.EnvKnobs) > 0 {
		argv = slices.Concat([]string{"env"}, command.EnvKnobs, argv)
	}
	served := &plan.Served{Name: cfg.Model.Name, Checkpoint: settings.Model, Weights: cmp.Or(k.Weights, settings.Format.Weights),
		KVCache: cmp.Or(k.KVCache, settings.Format.KV), ServedName: settings.ServedName}
	env := append(slices.Collect(maps.Keys(settings.Env)), secret.References(slices.Concat(argv, slices.Collect(maps.Values(settings.Env)))...)...)
	if !served.Local() {
		env = append(env, plan.HubToken)
	}
	if settings.APIKeyEnv != "" {
		env = append(env, settings.APIKeyEnv)
	}
	slices.Sort(env)
	e := &plan.Engine{
		Kind: settings.Kind, Simulated: cfg.Simulated(), Argv: argv, Port: engine.AnyPort, ReadyTimeout: settings.Timeouts.Ready,
		Env: slices.Compact(env), APIKeyEnv: settings.APIKeyEnv,
		Limits:   plan.Limits{ModelLen: k.MaxModelLen, Seqs: k.MaxNumSeqs, BatchedTokens: k.MaxNumBatchedTokens, KVTokens: kvTokens},
		Replicas: p.Fleet.Instances, GPUs: p.Fleet.GPUsPerInstance, NodeGPUs: cfg.GPUsPerNode(k.GPU),
		Notes: slices.Concat(notes, besides(command.Without), onNodes(cfg, k), simulatedNotes(cfg, k)),
	}
	if !cfg.Simulated() || e.Kind == "vllm" {
		e.Version = version
	}
	if e.Kind != "command" {
		e.HealthPath = "/health"
	}
	if command.File != "" {
		e.File = &plan.OptionFile{Path: command.File, Content: command.Content}
	}
	p.Handover.Engine, p.Handover.Model = e, served
}

// Addresses in command lines: of an engine that planner loads, and of one that serves other hosts.
const (
	loopback   = "127.0.0.1"
	everywhere = "0.0.0.0"
)

// recommended returns the engine settings that a plan recommends: the configuration's, or vLLM for a simulated
// engine.
func recommended(cfg *config.Config) engine.Settings {
	s := Settings(cfg)
	if s.Kind == "simulated" {
		s.Kind = "vllm"
		s.ExtraArgs = slices.Concat(kernelOptions(cfg.Engine.Kernels), s.ExtraArgs)
	}
	return s
}

// kernelOptions returns the vLLM options for settings of the simulated engine, if all releases have them.
func kernelOptions(k model.Kernels) (args []string) {
	switch k.Async {
	case model.On:
		args = append(args, "--async-scheduling")
	case model.Off:
		args = append(args, "--no-async-scheduling")
	}
	if k.Graphs == model.GraphsNone {
		args = append(args, "--enforce-eager")
	}
	return args
}

// onNodes says what the command of an instance on several nodes lacks.
func onNodes(cfg *config.Config, k measure.Knobs) []string {
	nodes, each := cfg.Spread(k.GPU, k.GPUs())
	if nodes == 1 {
		return nil
	}
	return []string{fmt.Sprintf("an instance spans %d nodes of %d GPUs: the command runs on each, with what joins them (of vLLM --nnodes, --node-rank, --master-addr and, "+
		"but on the first, --headless), as planner manifests writes it", nodes, each)}
}

// simulatedNotes says what the command for a simulated engine takes for granted, and which of its settings are not in it.
func simulatedNotes(cfg *config.Config, k measure.Knobs) (notes []string) {
	if cfg.Engine.Kind != "simulated" {
		return nil
	}
	if cfg.Engine.Speculation.Method == model.DraftEagle && cfg.Engine.DraftModel == "" {
		notes = append(notes, fmt.Sprintf("the command has %s for the head that proposes tokens, which engine.speculative.model names", unnamedHead))
	}
	switch served := ServedModel(cfg); {
	case cfg.Model.Config != "":
		notes = append(notes, fmt.Sprintf("the command loads %s, the folder of model.config, which must hold the whole checkpoint", served))
	case !strings.Contains(served, "/"):
		notes = append(notes, fmt.Sprintf("the command has the name %s, as the catalog knows no checkpoint of it (hf_repo): put an id or a path in its place", served))
	}
	if width := cfg.Deployment(k).CutGroups(); width > 0 {
		notes = append(notes, fmt.Sprintf("tensor_parallel %d cuts the %d columns of an MLP within their groups of 128 4-bit integers: vLLM loads only a checkpoint whose columns were padded to a multiple of %d",
			k.TensorParallel, width, 128*k.TensorParallel))
	}
	if whole := cfg.Deployment(k).LoadedWhole(model.EngineArgs{EngineVersion: cfg.Engine.Version}); whole > 0 {
		notes = append(notes, fmt.Sprintf("vLLM %s loads all weights, %.0f GB a GPU, before it quantises them, and they do not fit: serve a checkpoint in fp8", cfg.Engine.Version, whole/1e9))
	}
	kernels := cfg.Engine.Kernels
	kernels.Async = model.ByDefault
	if kernels.Experts == cfg.Model.Arch.ExpertKernels() {
		kernels.Experts = model.ExpertsByDefault // not of the configuration
	}
	if kernels.Graphs == model.GraphsNone {
		kernels.Graphs = model.GraphsByDefault
	}
	if kernels == (model.Kernels{}) {
		return notes
	}
	return append(notes, "not in the command, as its option differs from release to release: "+
		"what engine.graphs, graph_tokens, moe_backend, allreduce_fusion and sampler say")
}

// serverSaid returns the version that any trial's server reports, and the KV cache of that of a set of knobs.
func serverSaid(trials []measure.Measurement, k measure.Knobs) (version string, kvTokens int) {
	for i := range trials {
		server := &trials[i].Server
		version = cmp.Or(version, server.Engine.Version)
		if trials[i].Trial.Knobs == k && server.KVBlocks != nil && server.BlockTokens != nil {
			kvTokens = *server.KVBlocks * *server.BlockTokens
		}
	}
	return version, kvTokens
}

// roomForSamples is the longest request to allow if the workload is a sample, from a trace or a file of
// lengths, which need not contain the longest request to come: twice the longest there, as far as model and KV
// cache permit. It is 0 if the workload or the configuration limits the length of requests.
func roomForSamples(cfg *config.Config, k measure.Knobs, kvTokens int) int {
	w := &cfg.Workload
	sampled := w.Replayed() || slices.ContainsFunc(w.Shapes, func(s workload.Shape) bool {
		return s.Prompt.Dist == workload.Empirical || s.Output.Dist == workload.Empirical
	})
	if !sampled || cfg.Given("max_model_len") || k.MaxModelLen == 0 {
		return 0
	}
	room := 2 * k.MaxModelLen
	for _, held := range []int{cfg.Model.Arch.MaxPosition, kvTokens} {
		if held > 0 {
			room = min(room, held)
		}
	}
	return max(room, k.MaxModelLen)
}
