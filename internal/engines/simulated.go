// Package engines turns a configuration into what serves it: a simulated engine, or how a real one is started,
// reached and handed over.
package engines

import (
	"bytes"
	"cmp"
	"fmt"

	"planner/internal/config"
	"planner/internal/input"
	"planner/model"
	"planner/model/calibrate"
	"planner/sweep"
)

// Simulated returns the simulated engine of a configuration. A calibration must hold for every instance that
// the configuration names, and the engine is simulated as that which was measured.
func Simulated(cfg *config.Config) (*sweep.Simulated, error) {
	s := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version, Settings: cfg.Engine.Features()}
	if cfg.Engine.Calibration == "" {
		return s, nil
	}
	file, err := readCalibration(cfg.Engine.Calibration)
	if err != nil {
		return nil, err
	}
	s.Settings = s.Settings.Following(file.FittedTo.Engine)
	release := cmp.Or(cfg.Engine.Version, sweep.NewestKnown)
	runnable, _ := cfg.Candidates()
	for _, k := range runnable {
		dep := cfg.Deployment(k)
		if _, err := file.Apply(dep, release, model.ConstantsFor(dep.Hardware, s.Args(k))); err != nil {
			return nil, fmt.Errorf("engine.calibration: %s: %w", cfg.Engine.Calibration, err)
		}
	}
	s.Constants = func(dep model.Deployment, c model.Constants) model.Constants {
		fitted, err := file.Apply(dep, release, c)
		if err != nil {
			return c
		}
		return fitted
	}
	s.Known = file.Spread
	return s, nil
}

// readCalibration reads a file written by `planner calibrate`. Constants that it does not fit keep their
// values.
func readCalibration(path string) (calibrate.File, error) {
	data, err := input.ReadFile(path, input.Settings)
	if err != nil {
		return calibrate.File{}, fmt.Errorf("calibration: %w", err)
	}
	if line, err := input.CheckTOML(string(data)); err != nil {
		return calibrate.File{}, fmt.Errorf("calibration %s:%d: holds %w", path, line, err)
	}
	file, err := calibrate.Read(bytes.NewReader(data))
	if err != nil {
		return file, fmt.Errorf("calibration %s: %w", path, err)
	}
	return file, nil
}
