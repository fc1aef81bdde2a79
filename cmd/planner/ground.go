package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// ground is where the trials of a configuration run: the simulated engine, engines that
// are launched, or a server that runs already. What it learns where its files go
// only once there is a run folder.
func (p *program) ground(r *run, cfg *config.Config) (sweep.Ground, error) {
	flags := r.flags()
	if cfg.Simulated() {
		sim, err := simulated(cfg)
		if err != nil {
			return sweep.Ground{}, err
		}
		sim.Gaps = r.cfg.Run.Command == "simulate"
		g := sweep.SimulatedGround(sim, processors())
		g.Records = flags.is("records")
		return g, nil
	}
	if err := launchable(cfg); err != nil {
		return sweep.Ground{}, err
	}
	client := clientOf(cfg, flags.values["dialect"])
	see := func(event any) { r.see(event) }
	if r.cfg.Run.Command == "bench" && cfg.Engine.Kind == "attach" {
		e := &sweep.Attached{Settings: engineSettings(cfg), Client: *client, See: see}
		r.settle = append(r.settle, func(f *sweep.Folder) { e.Folder = f })
		return e.Ground(), nil
	}
	live := &sweep.Live{Settings: engineSettings(cfg), Client: *client, See: see}
	r.settle = append(r.settle, func(f *sweep.Folder) {
		live.Folder, live.Settings.Dir, live.Settings.Hurry = f, filepath.Join(f.Path, "engine"), p.signals.hurrying()
	})
	if !cfg.Model.Known || len(cfg.GPUs) == 0 {
		return live.Ground(nil), nil
	}
	sim, err := simulated(cfg)
	if err != nil {
		return sweep.Ground{}, err
	}
	return live.Ground(sim), nil
}

// launchable refuses an engine that nobody told what to load, before anything is
// written. A command line of the user's own may name its model itself.
func launchable(cfg *config.Config) error {
	switch cfg.Engine.Kind {
	case "simulated":
		return usagef("bench: measures a server that runs or is launched: give --url, or engine.kind in the configuration; 'planner simulate' asks the simulated engine")
	case "command", "attach":
		return nil
	}
	if engine.LoadsFile(cfg.Engine.Kind) {
		return fileThere(cfg)
	}
	if servedModel(cfg) == "" {
		return usagef("model: engine.kind %q is told what to load: give model.name, or model.config with the path of a Hugging Face config.json", cfg.Engine.Kind)
	}
	return nil
}

// fileThere refuses an engine that loads a file where there is none.
func fileThere(cfg *config.Config) error {
	if cfg.Model.File == "" {
		return usagef("model: engine.kind %q is told what to load: give model.name, the path of a GGUF file", cfg.Engine.Kind)
	}
	if _, err := os.Stat(cfg.Model.File); err != nil && cfg.Launcher() != "kubernetes" {
		return usagef("model.name: %w", err)
	}
	return nil
}

// engineSettings say how to start or reach the engine of the configuration.
func engineSettings(cfg *config.Config) engine.Settings {
	e, precision := cfg.Engine, cfg.Model.Precision
	s := engine.Settings{
		Kind: e.Kind, Model: servedModel(cfg), ServedName: e.Endpoint.ServedName, Argv: e.Launch.Command, ExtraArgs: e.Launch.ExtraArgs,
		Format:  engine.Format{Weights: precision.Weights.String(), Stored: cfg.Model.Stored.String(), KV: precision.KV.String()},
		Options: cfg.EngineOptions(),
		Access:  engine.Access{URL: e.Endpoint.URL, Headers: e.Endpoint.Headers, APIKeyEnv: e.Endpoint.APIKeyEnv, Chat: e.Endpoint.API == "chat"},
		Env:     e.Launch.Env, Timeouts: engine.Timeouts{Ready: e.Launch.ReadyTimeout},
	}
	if cfg.Run.Flags[partFlag] != "" && os.Getenv(slurmJob) != "" {
		s.Spread = cfg.Spread
	}
	return s
}

// servedModel is what an engine is told to load: to converse with, a checkpoint that was
// tuned for it, unless another is named.
func servedModel(cfg *config.Config) string {
	switch {
	case cfg.Model.File != "":
		return cfg.Model.File
	case cfg.Model.Config != "":
		return filepath.Dir(cfg.Model.Config)
	case cfg.Model.Arch.Repo == "":
		return cfg.Model.Name
	case !cfg.Model.Exact && (cfg.Engine.Endpoint.API == "chat" || slices.Contains(cfg.Workload.Names(), "chat")):
		return cfg.Model.Arch.ChatCheckpoint()
	}
	return cfg.Model.Arch.Repo
}

// clientOf is the load generator for the configuration's endpoint.
func clientOf(cfg *config.Config, dialect string) *load.Client {
	e := cfg.Engine.Endpoint
	return &load.Client{URL: e.URL, Model: e.ServedName, Chat: e.API == "chat", Stream: e.Stream, Engine: dialect, Headers: e.Headers,
		APIKeyEnv: e.APIKeyEnv, Salt: uint64(time.Now().UnixNano()), Vocab: cfg.Model.Arch.Vocab}
}

// engines is what reports tell of the engines of a run: how they are started, and what
// was seen of real ones.
func (r *run) engines() (report.Engines, error) {
	e := report.Engines{GPU: r.gpu}
	if r.ground.Run == nil {
		return e, nil
	}
	if r.cfg != nil {
		e.Start = func(k measure.Knobs) report.StartCommand { return serverOf(r.cfg, k) }
	}
	if r.ground.Virtual && r.ground.Predict != nil {
		e.Timeline = r.ground.Predict.Timeline
	}
	if r.folder == nil || r.ground.Virtual {
		return e, nil
	}
	e.Timeline = r.folder.Timeline
	var err error
	e.Seen, err = r.folder.ReadEngineTelemetry()
	return e, err
}

// gpu finds a GPU by the name that knobs have, with its price.
func (r *run) gpu(name string) (config.GPU, bool) {
	g, ok := r.cfg.GPU(name)
	if !ok && r.second != nil {
		return r.second.GPU(name)
	}
	return g, ok
}
