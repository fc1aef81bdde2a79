package engines

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"planner/internal/config"
	"planner/internal/wire"
	"planner/model"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// Launchable refuses an engine that was not told what to load, before anything is written. A user's own command
// line may name its model itself.
func Launchable(cfg *config.Config) error {
	if err := spreadable(cfg); err != nil {
		return err
	}
	switch cfg.Engine.Kind {
	case "simulated":
		return errors.New("bench: measures a server that runs or is launched: give --url, or engine.kind in the configuration; 'planner simulate' asks the simulated engine")
	case "command", "attach":
		return nil
	}
	if runnable, _ := cfg.Candidates(); slices.ContainsFunc(runnable, func(k measure.Knobs) bool { return k.DataParallel > 1 }) && !engine.Replicates(cfg.Engine.Kind) {
		return fmt.Errorf("engine.data_parallel: %s has no option for it, and would be paid for GPUs that it leaves idle, want 1", cfg.Engine.Kind)
	}
	if engine.LoadsFile(cfg.Engine.Kind) && cfg.Model.File == "" {
		return fmt.Errorf("model: engine.kind %q is told what to load: give model.name, the path of a GGUF file", cfg.Engine.Kind)
	}
	if ServedModel(cfg) == "" {
		return fmt.Errorf("model: engine.kind %q is told what to load: give model.name, or model.config with the path of a Hugging Face config.json", cfg.Engine.Kind)
	}
	return nil
}

// spreadable refuses an engine over several nodes if it cannot run so.
func spreadable(cfg *config.Config) error {
	if cfg.Launcher() == "local" {
		return nil
	}
	runnable, _ := cfg.Candidates()
	for _, k := range runnable {
		nodes, each := cfg.Spread(k.GPU, k.GPUs())
		if nodes == 1 {
			continue
		}
		err := engine.Spreads(cfg.Engine.Kind, k)
		if cfg.Launcher() == "kubernetes" {
			err = errors.New("engine.launcher: kubernetes runs an engine in one pod, and so on one node, want slurm")
		}
		if err != nil {
			return fmt.Errorf("%w; or at most %d GPUs an instance, as %d fill %d nodes (hardware.node_gpus says how many one has)", err, each, k.GPUs(), nodes)
		}
	}
	return nil
}

// Settings returns how to start or reach the configured engine.
func Settings(cfg *config.Config) engine.Settings {
	e, precision := cfg.Engine, cfg.Model.Precision
	if n := cfg.Model.Arch.BlockSize(); n > 0 && (e.Kind == "vllm" || e.Kind == "simulated") {
		e.ExtraArgs = slices.Concat([]string{"--block-size", strconv.Itoa(n)}, e.ExtraArgs) // the last one counts
	}
	// Commands to be run by others say it; what planner starts runs a repository's code only if told to.
	const trust = "--trust-remote-code"
	if e.Kind == "simulated" && cfg.Model.Arch.TrustsRemoteCode(e.Version) && !slices.Contains(e.ExtraArgs, trust) {
		e.ExtraArgs = slices.Concat([]string{trust}, e.ExtraArgs)
	}
	return engine.Settings{
		Kind: e.Kind, Model: ServedModel(cfg), ServedName: e.ServedName, Argv: e.Command, ExtraArgs: e.ExtraArgs,
		Format: engine.Format{Weights: precision.Weights.String(), Stored: cfg.Model.Stored.String(), KV: precision.KV.String(),
			StoredKV: cfg.Model.Arch.NativeKV.String()},
		Options:  options(&cfg.Engine),
		Endpoint: e.Endpoint, Chat: e.API == "chat",
		Env: e.Env, Timeouts: engine.Timeouts{Ready: e.ReadyTimeout},
	}
}

// ServedModel is what an engine is told to load: the instruction-tuned checkpoint unless another is named, or
// the base checkpoint if all traffic is of the class named "code", without conversations or the chat API.
func ServedModel(cfg *config.Config) string {
	switch {
	case cfg.Model.File != "":
		return cfg.Model.File
	case cfg.Model.Config != "":
		return filepath.Dir(cfg.Model.Config)
	case cfg.Model.Arch.Repo == "":
		return cfg.Model.Name
	case !cfg.Model.Exact && (cfg.Engine.API == "chat" || cfg.Workload.Turns > 1 || slices.ContainsFunc(cfg.Workload.Names(), func(class string) bool { return class != "code" })):
		return cfg.Model.Arch.ChatCheckpoint()
	}
	return cfg.Model.Arch.Repo
}

// Client returns the load generator for the configured endpoint.
func Client(cfg *config.Config, dialect string) *load.Client {
	e := &cfg.Engine
	return &load.Client{URL: e.Endpoint.URL, Model: e.ServedName, Chat: e.API == "chat", Stream: e.Stream, Engine: dialect,
		Headers: e.Endpoint.Headers, APIKeyEnv: e.Endpoint.APIKeyEnv, Salt: uint64(time.Now().UnixNano()), Vocab: cfg.Model.Arch.Vocab}
}

// options returns the engine's configuration besides its knobs, by the names used in command lines.
func options(e *config.EngineSettings) map[string]string {
	named := map[string]string{}
	if l := e.LoRA; l.On() {
		named["lora_adapters"], named["lora_slots"], named["lora_rank"] = strconv.Itoa(l.Adapters), strconv.Itoa(l.Slots), strconv.Itoa(l.SlotRank())
	}
	if x := e.Exchange; x.Backend != model.All2AllByDefault {
		named["all2all_backend"] = x.Backend.String()
	}
	if e.Exchange.DBO {
		named["dbo"] = "true"
	}
	if e.Exchange.EPLB {
		named["eplb"] = "true"
	}
	s := &e.Speculation
	if s.Tokens == 0 {
		return named
	}
	name := e.DraftModel
	if s.Method == model.DraftEagle && name == "" {
		name = unnamedHead // not needed by a simulation
	}
	if a := s.Draft; a != nil && a.Repo != "" {
		name = a.Repo
	}
	// The value of vLLM's --speculative-config.
	words := struct {
		Method string `json:"method"`
		Tokens int    `json:"num_speculative_tokens"`
		Model  string `json:"model,omitempty"`
		Lookup int    `json:"prompt_lookup_max,omitempty"`
	}{Method: vllmMethods[s.Method], Tokens: s.Tokens, Model: name}
	if s.Method == model.DraftNGram {
		words.Lookup = 4
	}
	if text, err := wire.Marshal(words); err == nil {
		named["speculative"] = string(text)
	}
	return named
}

// unnamedHead stands for a head that is not named.
const unnamedHead = "HEAD"

// vllmMethods are vLLM's names for the methods.
var vllmMethods = map[model.DraftMethod]string{
	model.DraftMTP: "mtp", model.DraftEagle: "eagle3", model.DraftNGram: "ngram", model.DraftModel: "draft_model",
}
