package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep"
)

// begin reads the configuration of a command with at most one file. When the
// user only wants to see the configuration, begin prints it and is done.
func (p *program) begin(c *cli.Context, command string) (cfg *config.Config, done bool, err error) {
	path := ""
	if c.Args().Present() {
		if path, err = onePositional(c, "configuration"); err != nil {
			return nil, false, err
		}
	}
	cfg, err = p.configure(c, path, command)
	if err != nil {
		return nil, false, err
	}
	if c.Bool("print-config") {
		_, err := p.stdout.Write(cfg.TOML())
		return cfg, true, err
	}
	if slices.Contains([]string{"plan", "search", "sweep"}, command) {
		err = launchable(cfg)
	}
	return cfg, false, err
}

// launchable refuses an engine that nobody told what to load, before anything is
// written. A command line of the user's own may name its model itself.
func launchable(cfg *config.Config) error {
	own := slices.Contains([]string{"simulated", "command", "attach"}, cfg.Engine.Kind)
	if own || servedModel(cfg) != "" {
		return nil
	}
	return usagef("model: engine.kind %q is told what to load: give model.name, or model.config with the path of a Hugging Face config.json", cfg.Engine.Kind)
}

// about describes the call for the run folder.
func about(c *cli.Context, command string) sweep.About {
	return sweep.About{Command: command, Args: c.Args().Slice(), Version: version, Started: time.Now()}
}

// join concatenates lists of flags.
func join(lists ...[]cli.Flag) []cli.Flag { return slices.Concat(lists...) }

// without drops flags by name.
func without(flags []cli.Flag, names ...string) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool { return slices.Contains(names, f.Names()[0]) })
}
