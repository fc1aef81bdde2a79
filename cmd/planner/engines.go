package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/engine"
)

// bed is what trials run on: the simulated engine or real ones.
type bed struct {
	// sim is the simulated engine of the configuration; nil where model or
	// hardware are not known. On a real engine it gives priors and a roofline.
	sim *sweep.Simulated
	// run runs a trial, parallel of them side by side.
	run      sweep.Runner
	parallel int
	// live is nil on the simulated engine.
	live *sweep.Live
}

// close stops whatever was started.
func (b *bed) close() error {
	if b.live == nil {
		return nil
	}
	return b.live.Close()
}

// simulatedBed runs trials in virtual time.
func simulatedBed(cfg *config.Config, parallel int) (*bed, error) {
	sim, err := simulated(cfg)
	if err != nil {
		return nil, err
	}
	return &bed{sim: sim, run: sim.Run, parallel: parallel}, nil
}

// liveBed runs trials on the engine of the configuration; its logs go into dir.
func (p *program) liveBed(c *cli.Context, cfg *config.Config, dir string) (*bed, error) {
	if cfg.Engine.Launch.Launcher != "local" {
		return nil, usagef("engine.launcher: %q is not built in yet, want \"local\"", cfg.Engine.Launch.Launcher)
	}
	e := cfg.Engine
	live := &sweep.Live{
		Settings: engine.Settings{
			Kind: e.Kind, Model: servedModel(cfg), ServedName: e.Endpoint.ServedName, Argv: e.Launch.Command, ExtraArgs: e.Launch.ExtraArgs,
			URL: e.Endpoint.URL, Env: e.Launch.Env, Headers: e.Endpoint.Headers, APIKeyEnv: e.Endpoint.APIKeyEnv, Chat: e.Endpoint.API == "chat",
			Limits: engine.Limits{Ready: e.Launch.ReadyTimeout}, Dir: filepath.Join(dir, "engine"),
		},
		Client: *clientOf(cfg, c.String("dialect")),
	}
	if !c.Bool("quiet") {
		live.Remark = func(s string) { fmt.Fprintln(p.stderr, "planner:", s) }
		live.Started = func(e *engine.Engine) { fmt.Fprintln(p.stderr, "planner: started:", e.Command) }
	}
	b := &bed{run: live.Run, parallel: 1, live: live}
	if cfg.Model.Known && len(cfg.GPUs) > 0 {
		sim, err := simulated(cfg)
		if err != nil {
			return nil, err
		}
		b.sim = sim
	}
	return b, nil
}

// recall tells real engines what an earlier process of the run learnt of knobs
// that do not run.
func (b *bed) recall(folder *sweep.Folder) error {
	if b.live == nil || folder == nil || !folder.Has(sweep.JournalFile) {
		return nil
	}
	seen, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
	if err != nil {
		return err
	}
	b.live.Recall(seen)
	return nil
}

// servedModel is what an engine is told to load.
func servedModel(cfg *config.Config) string {
	switch {
	case cfg.Model.Config != "":
		return filepath.Dir(cfg.Model.Config)
	case cfg.Model.Arch.Repo != "":
		return cfg.Model.Arch.Repo
	}
	return cfg.Model.Name
}
