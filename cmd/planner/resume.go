package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/measure"
)

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:        "resume",
		Usage:       "go on with an interrupted run; nothing measured is measured again",
		ArgsUsage:   "RUN",
		Description: "Example: planner resume runs/20261121T090000Z-llama-3.1-70b",
		Flags:       []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			folder, about, err := namedFolder(c)
			if err != nil {
				return err
			}
			if folder.Has(sweep.PlanFile) {
				if !c.Bool("quiet") {
					fmt.Fprintf(p.stderr, "planner: %s is finished; its report again, whatever was changed in its configuration since\n", folder.Path)
				}
				return p.again(c, folder, about, "text")
			}
			cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
			if err != nil {
				return err
			}
			switch about.Command {
			case "plan", "estimate":
				return p.conclude(c, cfg, &folder)
			case "search":
				return p.searchIn(c, cfg, &folder)
			case "sweep":
				return p.resumeSweep(c, cfg, about, &folder)
			}
			return usagef("resume: %s was made by 'planner %s', which has nothing to resume", folder.Path, about.Command)
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
			folder, about, err := namedFolder(c)
			if err != nil {
				return err
			}
			return p.again(c, folder, about, c.String("format"))
		},
	}
}

// namedFolder opens the run folder that the command line names.
func namedFolder(c *cli.Context) (sweep.Folder, sweep.About, error) {
	path, err := onePositional(c, "run folder")
	if err != nil {
		return sweep.Folder{}, sweep.About{}, err
	}
	folder, about, err := sweep.OpenFolder(path)
	if err != nil {
		return folder, about, usageError{err}
	}
	return folder, about, nil
}

// again prints the report of a run from its files.
func (p *program) again(c *cli.Context, folder sweep.Folder, about sweep.About, format string) error {
	if c.Bool("json") {
		format = "json"
	}
	doc, made, err := p.reread(c, folder, about)
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

// reread builds the report of a run from its files: of a plan by walking the
// journal again without running anything, of a single load point from its only
// measurement.
func (p *program) reread(c *cli.Context, folder sweep.Folder, about sweep.About) (report.Document, any, error) {
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
		background := report.Background{Trials: trials}
		// A journal of another version may not be walked any more; then the report
		// does without what only the search knew.
		if d, err := p.retrace(c, folder, about, trials); err == nil {
			background = d.background()
		}
		return report.Plan(&made, background), &made, nil
	case about.Command == "sweep":
		return p.rereadSweep(folder, about, trials)
	case about.Command == "search":
		return p.rereadSearch(c, folder, about, trials)
	case about.Command == "import":
		return report.Imported(folder.Path, trials), trials, nil
	case len(trials) == 1 && about.Command != "plan" && about.Command != "estimate":
		doc, err := p.rereadPoint(folder, about, trials[0])
		return doc, trials[0], err
	}
	d, err := p.retrace(c, folder, about, trials)
	if d != nil {
		if none := d.without(err); none != nil {
			return none.doc, none.view, nil
		}
	}
	return report.Document{}, nil, fmt.Errorf("%s has no plan yet; go on with: planner resume %s", folder.Path, folder.Path)
}

// rereadPoint builds the report of a run of one load point. What engines said
// is there where planner asked them.
func (p *program) rereadPoint(folder sweep.Folder, about sweep.About, m measure.Measurement) (report.Document, error) {
	if about.Command != "bench" {
		return report.Measurement(m), nil
	}
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
	if err != nil {
		return report.Document{}, err
	}
	e, err := readLogbook(cfg, folder)
	return report.MeasurementOn(m, e), err
}

// retrace walks the journal of a run again, without running anything, to know
// what its search knew.
func (p *program) retrace(c *cli.Context, folder sweep.Folder, about sweep.About, trials []measure.Measurement) (*decision, error) {
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
	if err != nil {
		return nil, err
	}
	d, err := p.newRun(c, cfg, folder.Path)
	if err != nil {
		return nil, err
	}
	if err := d.bed.recall(&folder); err != nil {
		return nil, err
	}
	d.bed.run, d.bed.parallel = notRun, 1
	d.journal, d.show = sweep.Recorded(trials), silent()
	_, err = d.decide(context.Background())
	return d, err
}

// notRun is the runner of a run that is only read.
func notRun(_ context.Context, t measure.Trial) (measure.Observation, error) {
	return measure.Observation{}, fmt.Errorf("trial %d: %w", t.Number, sweep.ErrNotRecorded)
}
