package main

import (
	"os"
	"path/filepath"
	"runtime"

	"planner/internal/config"
	"planner/internal/engines"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// ground returns where a configuration's trials run: the simulated engine, launched engines, or a running
// server. Where its files go is set once there is a run folder.
func (p *program) ground(r *run, cfg *config.Config) (sweep.Ground, error) {
	flags := r.flags()
	if cfg.Simulated() {
		sim, err := engines.Simulated(cfg)
		if err != nil {
			return sweep.Ground{}, err
		}
		sim.Gaps = r.cfg.Run.Command == "simulate"
		g := sweep.SimulatedGround(sim, runtime.GOMAXPROCS(0))
		g.Records = flags.is("records")
		return g, nil
	}
	if err := engines.Launchable(cfg); err != nil {
		return sweep.Ground{}, err
	}
	client := engines.Client(cfg, flags.values["dialect"])
	see := func(event any) { r.see(event) }
	bare := r.cfg.Run.Command == "bench" && cfg.Engine.Kind == "attach"
	live := &sweep.Live{Settings: engineSettings(cfg), Client: *client, See: see, Bare: bare}
	r.settle = append(r.settle, func(f *sweep.Folder) {
		live.Folder, live.Settings.Dir, live.Settings.Hurry = f, filepath.Join(f.Path, "engine"), p.signals.hurry
	})
	if bare || !cfg.Model.Known || len(cfg.GPUs) == 0 {
		return live.Ground(nil), nil
	}
	sim, err := engines.Simulated(cfg)
	if err != nil {
		return sweep.Ground{}, err
	}
	return live.Ground(sim), nil
}

// engineSettings says how to start or reach the configured engine; in a Slurm job, on all of its nodes.
func engineSettings(cfg *config.Config) engine.Settings {
	s := engines.Settings(cfg)
	if cfg.Run.Flags[partFlag] != "" && os.Getenv(slurmJob) != "" {
		s.Spread = cfg.Spread
	}
	return s
}

// engines returns what reports say of a run's engines: how they are started, and the telemetry of real ones.
func (r *run) engines() (report.Engines, error) {
	e := report.Engines{GPU: r.gpu}
	if r.ground.Run == nil {
		return e, nil
	}
	e.Start = func(k measure.Knobs) report.StartCommand { return engines.Start(r.cfg, k) }
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

// gpu returns the GPU with the name used in knobs, with its price.
func (r *run) gpu(name string) (config.GPU, bool) {
	g, ok := r.cfg.GPU(name)
	if !ok && r.second != nil {
		return r.second.GPU(name)
	}
	return g, ok
}
