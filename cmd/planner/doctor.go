package main

import (
	"context"
	"os"
	"os/exec"
	"slices"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check the machine and a configuration before GPU hours are spent",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner doctor\n" +
			"         planner doctor planner.toml --json\n" +
			"Looks for engines, GPUs, ports, limits, clock, disk and memory, and sends half a second of load to itself. With a\n" +
			"configuration also: does the model fit, do the requests, and what a plan would cost in engine time.\n" +
			"Exit code 0: no problem; 1: a problem.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-estimate", Usage: "do not simulate the search to say what it would cost: --no-estimate"},
			&cli.BoolFlag{Name: "no-self-test", Usage: "send no load to itself: --no-self-test"},
			setFlag(), jsonFlag(), catalogFlag(),
		},
		Action: p.doctor,
	}
}

func (p *program) doctor(c *cli.Context) error {
	var cfg *config.Config
	dir := "runs"
	if c.Args().Present() {
		path, err := onePositional(c, "configuration")
		if err != nil {
			return err
		}
		if cfg, err = p.configure(c, path, "doctor"); err != nil {
			return err
		}
		dir = cfg.OutputDir
	}
	f := gather(c.Context, dir, !c.Bool("no-self-test"))
	w := wanted{}
	if cfg != nil {
		w = wantedOf(cfg, f.programs)
	}
	checks := machineChecks(f, w)
	if cfg != nil {
		more, err := configChecks(cfg)
		if err != nil {
			return err
		}
		checks = append(checks, more...)
		if !c.Bool("no-estimate") {
			checks = append(checks, p.costCheck(c, cfg))
		}
	}
	if err := c.Context.Err(); err != nil {
		return context.Cause(c.Context)
	}
	return p.diagnosed(c, checks)
}

// diagnosed prints the checks; a problem is an exit code.
func (p *program) diagnosed(c *cli.Context, checks []report.Check) error {
	bad := slices.ContainsFunc(checks, func(x report.Check) bool { return x.State == report.Problem })
	var err error
	if c.Bool("json") {
		err = p.printJSON(doctorJSON{!bad, checks})
	} else {
		err = p.print(report.Doctor(checks))
	}
	if err != nil {
		return err
	}
	if bad {
		return outcome(exitFailed)
	}
	return nil
}

// doctorJSON is the document of `doctor --json`.
type doctorJSON struct {
	OK     bool           `json:"ok"`
	Checks []report.Check `json:"checks"`
}

// wantedOf is what a configuration asks of the machine.
func wantedOf(cfg *config.Config, programs []engineProgram) wanted {
	runnable, _ := cfg.Candidates()
	w := wanted{kind: cfg.Engine.Kind, gpus: 1}
	for _, k := range runnable {
		w.gpus, w.share = max(w.gpus, k.GPUs()), max(w.share, k.GPUMemoryUtilization)
	}
	if len(cfg.GPUs) > 0 {
		w.gpu = cfg.GPUs[0].Hardware.Name
	}
	if !w.real() {
		return w
	}
	for _, known := range programs {
		if known.kind == w.kind {
			w.program, w.found = known.program, known.path
		}
	}
	if w.kind == "command" {
		w.program = cfg.Engine.Launch.Command[0]
		if path, err := exec.LookPath(w.program); err == nil {
			w.found = path
		}
	}
	return w
}

// keyIsSet reports whether the environment variable of the key is there.
func keyIsSet(name string) bool { return name == "" || os.Getenv(name) != "" }
