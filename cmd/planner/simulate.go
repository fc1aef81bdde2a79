package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/measure"
)

func (p *program) simulateCommand() *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "one load point on the simulated engine",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner simulate planner.toml --rate 8 --duration 300s\n" +
			"         planner simulate planner.toml --concurrency 16 --requests 160 --json\n" +
			"Starts from an empty engine and a cold prefix cache. Exit code 0: no SLO, or met; 3 missed; 4 unsure.",
		Flags: join(loadFlags("default 0s"), configFlags(), without(shortcutFlags(), "rate", "growth", "headroom", "spare"),
			[]cli.Flag{sloFlag(), outputFlag()}),
		Action: p.simulate,
	}
}

func (p *program) simulate(c *cli.Context) error {
	cfg, done, err := p.begin(c, "simulate")
	if err != nil || done {
		return err
	}
	engine, err := simulated(cfg)
	if err != nil {
		return err
	}
	engine.Gaps = true
	t, err := loadPoint(c, cfg)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return p.printTrial(cfg, t)
	}
	t.Number = 1
	o, err := engine.Run(c.Context, t)
	if err != nil {
		return err
	}
	m := measure.Reduce(t, o)
	if path := c.String("output"); path != "" {
		if err := p.keep(c, cfg, path, "simulate", m); err != nil {
			return err
		}
	}
	return p.measured(c, m)
}

// measured prints one measurement; its verdict is the command's exit code.
func (p *program) measured(c *cli.Context, m measure.Measurement) error {
	return p.concluded(c, m, report.Measurement(m))
}

// concluded prints one measurement, whose report is doc.
func (p *program) concluded(c *cli.Context, m measure.Measurement, doc report.Document) error {
	var err error
	if c.Bool("json") {
		err = p.printJSON(m)
	} else {
		err = p.print(doc)
	}
	if err != nil {
		return err
	}
	switch {
	case m.Rejected != "":
		return outcome(exitInfeasible)
	case m.Verdict == nil:
		return nil
	case m.Verdict.State == measure.Missed:
		return outcome(exitInfeasible)
	case m.Verdict.State == measure.Unsure:
		return outcome(exitUndecided)
	}
	return nil
}

// printTrial says what would run.
func (p *program) printTrial(cfg *config.Config, t measure.Trial) error {
	load := fmt.Sprintf("open loop at %g requests/s for %v after %v of warm-up", t.Rate, t.Window, t.Warmup)
	switch {
	case t.Closed():
		load = fmt.Sprintf("closed loop of %d slots, %d requests", t.Concurrency, t.Requests)
	case t.Rate == 0:
		load = fmt.Sprintf("the trace once on its own clock, %d requests in %v", len(t.Workload.Replay), t.Window.Round(time.Second))
	}
	server := serverOf(cfg, t.Knobs)
	fmt.Fprintf(p.stdout, "would run: %s\nengine: %s\n", load, server.Command)
	return p.beside(server)
}

// keep writes a run folder with one measurement.
func (p *program) keep(c *cli.Context, cfg *config.Config, path, command string, m measure.Measurement) error {
	folder, err := sweep.CreateFolder(path, about(c, command), cfg.TOML())
	if err != nil {
		return err
	}
	j, _, err := sweep.OpenJournal(folder.File(sweep.JournalFile))
	if err != nil {
		return err
	}
	defer j.Close()
	return j.Add(m)
}
