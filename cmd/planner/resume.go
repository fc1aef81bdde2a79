package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/plan"
	"planner/sweep"
)

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:        "resume",
		Usage:       "go on with an interrupted run; nothing measured is measured again",
		ArgsUsage:   "RUN",
		Description: "Example: planner resume runs/20261121T090000Z-llama-3.1-70b",
		Flags:       []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			path, err := onePositional(c, "run folder")
			if err != nil {
				return err
			}
			folder, about, err := sweep.OpenFolder(path)
			if err != nil {
				return usageError{err}
			}
			if folder.Has(sweep.PlanFile) {
				return p.again(c, folder, "text")
			}
			switch about.Command {
			case "plan", "estimate":
			default:
				return usagef("resume: %s was made by 'planner %s', which has nothing to resume", path, about.Command)
			}
			cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
			if err != nil {
				return err
			}
			d, err := p.newRun(cfg)
			if err != nil {
				return err
			}
			return p.conclude(c, d, &folder)
		},
	}
}

func (p *program) reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "print a run folder's report again",
		ArgsUsage:   "RUN",
		Description: "Example: planner report runs/first --format markdown > report.md",
		Flags: []cli.Flag{jsonFlag(),
			&cli.StringFlag{Name: "format", Value: "text", Usage: "text, json, markdown, html or csv: --format html"}},
		Action: func(c *cli.Context) error {
			path, err := onePositional(c, "run folder")
			if err != nil {
				return err
			}
			folder, _, err := sweep.OpenFolder(path)
			if err != nil {
				return usageError{err}
			}
			return p.again(c, folder, c.String("format"))
		},
	}
}

// again prints the report of a run from its files.
func (p *program) again(c *cli.Context, folder sweep.Folder, format string) error {
	if c.Bool("json") {
		format = "json"
	}
	doc, made, err := p.reread(folder)
	if err != nil {
		return err
	}
	switch format {
	case "text":
		return p.print(doc)
	case "json":
		return p.printJSON(made)
	case "markdown":
		_, err = p.stdout.Write(report.Markdown{}.Print(doc))
	case "html":
		_, err = p.stdout.Write(report.HTML{}.Print(doc))
	case "csv":
		_, err = p.stdout.Write(report.CSV{}.Print(doc))
	default:
		return usagef("report: unknown format %q; allowed: text, json, markdown, html, csv", format)
	}
	return err
}

// reread builds the report of a run from plan.json and the journal; of a run
// without a plan, from its only measurement.
func (p *program) reread(folder sweep.Folder) (report.Document, any, error) {
	trials, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
	if err != nil {
		return report.Document{}, nil, err
	}
	data, err := os.ReadFile(folder.File(sweep.PlanFile))
	switch {
	case err == nil:
		var made plan.Plan
		if err := json.Unmarshal(data, &made); err != nil {
			return report.Document{}, nil, fmt.Errorf("%s: %w", folder.File(sweep.PlanFile), err)
		}
		return report.Plan(&made, report.Background{Trials: trials}), &made, nil
	case len(trials) == 1:
		return report.Measurement(trials[0]), trials[0], nil
	}
	return report.Document{}, nil, fmt.Errorf("%s has no plan yet; go on with: planner resume %s", folder.Path, folder.Path)
}
