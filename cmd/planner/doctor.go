package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/doctor"
	"planner/internal/report"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check the machine before GPU hours are spent",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner doctor\n" +
			"         planner doctor planner.toml --json\n" +
			"Looks for engines, GPUs, ports, limits, clock, disk and memory, and sends half a second of load to itself. With a\n" +
			"configuration it looks for what that needs here, and asks a server that runs already for one token. Whether the\n" +
			"model fits is told by `estimate`, what a plan would run by `plan --dry-run`.\n" +
			"Exit code 0: no problem; 1: a problem.",
		Flags:  append(shared("set", "json", "catalog"), &cli.BoolFlag{Name: "no-self-test", Usage: "send no load to itself: --no-self-test"}),
		Action: p.doctor,
	}
}

func (p *program) doctor(c *cli.Context) error {
	var cfg *config.Config
	if c.Args().Present() {
		var err error
		if cfg, err = p.begin(c); err != nil {
			return err
		}
	}
	checks := doctor.Examine(c.Context, cfg, !c.Bool("no-self-test"))
	if c.Context.Err() != nil {
		return context.Cause(c.Context)
	}
	bad := slices.ContainsFunc(checks, func(x doctor.Check) bool { return x.State == doctor.Problem })
	told := struct {
		OK     bool           `json:"ok"`
		Checks []doctor.Check `json:"checks"`
	}{!bad, checks}
	if err := p.answer(c, told, report.Doctor(checks)); err != nil || !bad {
		return err
	}
	return exitStatus(exitFailed)
}
