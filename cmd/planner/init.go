package main

import (
	"github.com/urfave/cli/v2"

	"planner/internal/config"
)

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "write a commented starter configuration to standard output",
		Description: "Example: planner init --model llama-3.1-70b --gpu \"H100 SXM\" > planner.toml",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Value: "llama-3.1-70b", Usage: "model to fill in: --model qwen3-32b"},
			&cli.StringFlag{Name: "gpu", Value: "H100 SXM", Usage: "GPU to fill in: --gpu \"H200 SXM\""},
			&cli.StringFlag{Name: "engine", Value: "simulated", Usage: "engine to fill in: --engine vllm"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("init: takes no argument; it writes to standard output: planner init > planner.toml")
			}
			text, err := config.Template(c.String("model"), c.String("gpu"), c.String("engine"))
			if err != nil {
				return usageError{err}
			}
			_, err = p.stdout.Write(text)
			return err
		},
	}
}
