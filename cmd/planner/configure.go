package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/model"
	"planner/sweep"
)

// configure reads the configuration that a command names, with what the command
// line puts on top.
func (p *program) configure(c *cli.Context, path, command string) (*config.Config, error) {
	over, err := overrides(c)
	if err != nil {
		return nil, err
	}
	catalog, err := loadCatalog(c.String("catalog"))
	if err != nil {
		return nil, err
	}
	loader := config.Loader{Catalog: catalog}
	cfg, err := loader.Load(path, over, config.For(command))
	if err != nil {
		return nil, err
	}
	if !c.Bool("quiet") {
		for _, w := range cfg.Warnings {
			fmt.Fprintln(p.stderr, "planner: warning:", w)
		}
	}
	return cfg, nil
}

// simulated is the simulated engine of a configuration.
func simulated(cfg *config.Config) (*sweep.Simulated, error) {
	s := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}
	if cfg.Engine.Calibration == "" {
		return s, nil
	}
	apply, err := readCalibration(cfg.Engine.Calibration)
	if err != nil {
		return nil, err
	}
	s.Constants = apply
	return s, nil
}

// readCalibration reads a file that `planner calibrate` wrote.
func readCalibration(path string) (func(model.Deployment, model.Constants) model.Constants, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	return nil, fmt.Errorf("calibration %s: not understood", path)
}
