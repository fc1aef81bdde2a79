package main

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep/measure"
)

// bedOf is what the trials of a configuration run on: the simulated engine or
// real ones, which write their logs below dir.
func (p *program) bedOf(c *cli.Context, cfg *config.Config, dir string) (*bed, error) {
	if cfg.Simulated() {
		return simulatedBed(cfg, runtime.GOMAXPROCS(0))
	}
	return p.liveBed(c, cfg, dir)
}

// predictedRate is about the rate that knobs carry, by arithmetic; 0 where model
// or hardware are not known. Knobs that cannot run are an error of the simulated
// engine alone: a real one says so itself.
func predictedRate(cfg *config.Config, k measure.Knobs) (float64, error) {
	if !cfg.Model.Known || len(cfg.GPUs) == 0 {
		return 0, nil
	}
	engine, err := simulated(cfg)
	if err != nil {
		return 0, err
	}
	prior, err := priorFor(cfg, engine, k)
	if err != nil && !cfg.Simulated() {
		return 0, nil
	}
	return prior.Rate, err
}
