package main

import (
	"github.com/urfave/cli/v2"

	"planner/internal/config"
)

// configure reads the configuration of a command with the overrides of the command line.
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
	cfg.Run = config.Invocation{} // drop that of a configuration copied from a run
	p.warn(c, cfg.Warnings)
	return cfg, nil
}

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "write a commented starter configuration to standard output",
		Description: "Example: planner init --model llama-3.1-70b --gpu \"H100 SXM\" > planner.toml\n" +
			"         planner init --launcher slurm --gpu \"H100 SXM\" > planner.toml\n" +
			"         planner init --engine llama-server --model models/SmolLM2-135M.gguf > planner.toml",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", DefaultText: "llama-3.1-70b; model.gguf with llama-server",
				Usage: "model to fill in, by its name, the path of its config.json or, with llama-server, of its GGUF file: --model qwen3-32b"},
			&cli.StringFlag{Name: "gpu", DefaultText: "H100 SXM; none with llama-server", Usage: "GPU to fill in: --gpu \"H200 SXM\""},
			&cli.StringFlag{Name: "engine", DefaultText: "simulated; vllm with a launcher", Usage: "engine to fill in: --engine vllm"},
			&cli.StringFlag{Name: "launcher", Usage: "slurm or kubernetes, to fill in what their jobs need: --launcher slurm"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("init: takes no argument; it writes to standard output: planner init > planner.toml")
			}
			engine, launcher := c.String("engine"), c.String("launcher")
			if engine == "" && launcher != "" && launcher != "local" {
				engine = "vllm"
			}
			text, err := config.Template(c.String("model"), c.String("gpu"), engine, launcher)
			if err != nil {
				return usageError{err}
			}
			_, err = p.stdout.Write(text)
			return err
		},
	}
}
