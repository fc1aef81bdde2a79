package main

import (
	"github.com/urfave/cli/v2"

	"planner/internal/config"
)

// configure reads the configuration that a command names, with what the command
// line puts on top.
func (p *program) configure(c *cli.Context, path, command string) (*config.Config, error) {
	over, err := overrides(c)
	if err != nil {
		return nil, err
	}
	catalog, err := config.ReadCatalog(c.String("catalog"))
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadWith(catalog, path, over, config.For(command))
	if err != nil {
		return nil, err
	}
	cfg.Run = config.Invocation{} // of the run that a copied configuration comes from
	p.warn(c, cfg.Warnings)
	return cfg, nil
}
