package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/progress"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/cluster"
	"planner/sweep/measure"
)

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:        "resume",
		Usage:       "go on with an interrupted run, or one whose engines failed; nothing measured is measured again",
		ArgsUsage:   "RUN",
		Description: "Example: planner resume runs/20261121T090000Z-llama-3.1-70b",
		Flags: append(shared("json"), // the others are for parts without a shared file system
			&cli.StringFlag{Name: "seed", Hidden: true}, &cli.BoolFlag{Name: "stream", Hidden: true}),
		Action: func(c *cli.Context) error {
			if seed := c.String("seed"); seed != "" {
				if err := cluster.Unpack(seed, c.Args().First()); err != nil {
					return err
				}
			}
			r, done, err := p.reopen(c, true)
			if err != nil {
				return err
			}
			if done != nil {
				if !c.Bool("quiet") {
					fmt.Fprintf(p.stderr, "planner: %s is finished; its report again, whatever was changed in its configuration since\n", r.folder.Path)
				}
				if err := p.printAs(c, "text", done.Report, done.Answer); err != nil || done.ExitCode == 0 {
					return err
				}
				return exitStatus(done.ExitCode)
			}
			if err := r.startable(); err != nil {
				return err
			}
			return p.conduct(c, r)
		},
	}
}

func (p *program) reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "print a run folder's report again",
		ArgsUsage:   "RUN",
		Description: "Example: planner report runs/first --format markdown > report.md",
		Flags: append(shared("json"),
			&cli.StringFlag{Name: "format", Value: "text", Usage: strings.Join(reportFormats(), ", ") + ": --format html"},
			&cli.StringFlag{Name: "table", Value: report.TrialsSheet, Usage: "of --format csv, of a plan: trials, alternatives or sensitivity: --table alternatives"},
			&cli.IntFlag{Name: "trial", Usage: "only the trial of this number, in time: --trial 12"}),
		Action: func(c *cli.Context) error {
			if c.IsSet("trial") {
				return p.reportTrial(c, c.Int("trial"))
			}
			r, done, err := p.reopen(c, false)
			if err != nil {
				return err
			}
			if done != nil {
				return p.printAs(c, c.String("format"), done.Report, done.Answer)
			}
			trials, err := r.held()
			if err != nil {
				return err
			}
			answer, err := sweep.Replay(trials, r.study)
			if err != nil {
				return err
			}
			if answer.Value == nil {
				return fmt.Errorf("%s has no report yet; go on with: planner resume %s", r.folder.Path, r.folder.Path)
			}
			doc, err := r.document(c.Context, answer, func() *progress.Display { return p.display(c, r) })
			if err != nil {
				return err
			}
			return p.printAs(c, c.String("format"), doc, answer.Value)
		},
	}
}

// reopen opens the run folder that the command line names: with its answer if it has finished, otherwise ready
// to be resumed. With again, a finished run whose engines failed, or that lacks files, is resumed, too.
func (p *program) reopen(c *cli.Context, again bool) (*run, *stored, error) {
	folder, about, err := openedFolder(c)
	if err != nil {
		return nil, nil, err
	}
	r := &run{folder: &folder}
	var done stored
	var damage error
	_, measured := experimentOf(about.Command)
	data, err := folder.Read(storedFile)
	switch {
	case err == nil:
		if damage = json.Unmarshal(data, &done); damage != nil {
			break
		}
		missing := slices.DeleteFunc(slices.Clone(done.Files), folder.Has)
		switch left := journalSize(&folder); {
		case left < done.Journal && done.ExitCode != exitFailed:
			what := "this is the report as it was"
			if again {
				what = "what is lost is measured again"
			}
			fmt.Fprintf(p.stderr, "planner: %s is damaged: %s was made of %d bytes of it, and %d are left; %s\n",
				folder.File(sweep.JournalFile), storedFile, done.Journal, left, what)
			if !again {
				return r, &done, nil
			}
		case left != done.Journal:
		case !again, done.ExitCode != exitFailed && (len(missing) == 0 || !measured):
			return r, &done, nil
		case done.ExitCode != exitFailed:
			fmt.Fprintf(p.stderr, "planner: %s lacks %s: its files are made again\n", folder.Path, strings.Join(missing, ", "))
		default:
			fmt.Fprintf(p.stderr, "planner: the engines of %s failed; they are tried again\n", folder.Path)
			if err := folder.ForgetFailures(); err != nil {
				return nil, nil, err
			}
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, nil, err
	}
	remedy := about.Command
	if measured {
		remedy = "resume " + folder.Path
	}
	switch {
	case damage != nil && (!measured || about.Command == "fleet" && !again): // these keep no journal
		return nil, nil, fmt.Errorf("%s is damaged (%w); make it again with: planner %s", folder.File(storedFile), damage, remedy)
	case damage != nil:
		fmt.Fprintf(p.stderr, "planner: %s is damaged (%v): the answer is made again\n", folder.File(storedFile), damage)
	case !measured:
		return nil, nil, usagef("%s was made by 'planner %s', which has nothing to resume", folder.Path, about.Command)
	}
	return r, nil, p.configured(r, about)
}

func (p *program) configured(r *run, about sweep.About) (err error) {
	if r.cfg, err = config.Load(r.folder.File(sweep.ConfigFile), nil, config.For(about.Command)); err != nil {
		return err
	}
	r.cfg.Run.Command = cmp.Or(r.cfg.Run.Command, about.Command)
	if about.Command == "compare" {
		if r.second, err = config.Load(r.folder.File(secondConfig), nil, config.For(about.Command)); err != nil {
			return err
		}
	}
	return p.prepare(r)
}

func (p *program) reportTrial(c *cli.Context, number int) error {
	folder, about, err := openedFolder(c)
	if err != nil {
		return err
	}
	r := &run{folder: &folder}
	trials, err := r.held()
	if err != nil {
		return err
	}
	trials = slices.DeleteFunc(trials, func(m measure.Measurement) bool { return !m.Ran() })
	m, ok := list.Find(trials, func(m measure.Measurement) bool { return m.Trial.Number == number })
	if !ok {
		return usagef("report: %s has no trial %d; its trials are 1 to %d", folder.Path, number, len(trials))
	}
	if err := p.configured(r, about); err != nil {
		return err
	}
	if w := m.Trial.Workload; w != nil && w.Replayed() && len(w.Replay) == 0 {
		w.Replay = r.cfg.Workload.Replay
	}
	told, err := r.engines()
	if err != nil {
		return err
	}
	told.Seen = slices.DeleteFunc(told.Seen, func(s sweep.EngineTelemetry) bool { return s.Trial != number })
	doc, err := report.Trial(m, told)
	if err != nil {
		return err
	}
	return p.printAs(c, c.String("format"), doc, m)
}

func (r *run) held() ([]measure.Measurement, error) {
	if r.folder == nil || !r.folder.Has(sweep.JournalFile) {
		return nil, nil
	}
	return sweep.ReadJournal(r.folder.File(sweep.JournalFile))
}

func reportFormats() []string { return []string{"text", "json", "markdown", "html", "csv"} }

// printAs prints a report in a format; answer is printed for JSON.
func (p *program) printAs(c *cli.Context, format string, doc report.Document, answer any) error {
	if c.Bool("json") {
		format = "json"
	}
	var err error
	switch format {
	case "text":
		_, tty := terminal(p.stdout)
		_, err = p.stdout.Write(report.Text(doc, p.width(), tty && os.Getenv("NO_COLOR") == ""))
	case "json":
		return p.printJSON(answer)
	case "markdown":
		_, err = p.stdout.Write(report.Markdown(doc))
	case "html":
		_, err = p.stdout.Write(report.HTML(doc))
	case "csv":
		sheet, ok := doc.Sheet(cmp.Or(c.String("table"), report.TrialsSheet))
		if !ok {
			return usagef("report: this one has no table %q; allowed: %s, and of a plan %s, %s", c.String("table"), report.TrialsSheet, report.AlternativesSheet, report.SensitivitySheet)
		}
		_, err = p.stdout.Write(sheet.CSV())
	default:
		return usagef("report: unknown format %q; allowed: %s", format, strings.Join(reportFormats(), ", "))
	}
	return err
}
