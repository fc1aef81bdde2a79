package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/plan"
	"planner/search"
	"planner/sweep"
)

func (p *program) planCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "the main job: search knobs and rates, size and price the fleet, write a run folder",
		ArgsUsage: "CONFIG",
		Description: "Example: planner plan planner.toml\n" +
			"         planner plan planner.toml --set demand.rate=250 --json",
		Flags: join(configFlags(), []cli.Flag{certifyFlag(), outputFlag(), recordsFlag()}),
		Action: func(c *cli.Context) error {
			if _, err := onePositional(c, "configuration"); err != nil {
				return err
			}
			return p.answer(c, "plan", p.conclude)
		},
	}
}

func (p *program) estimateCommand() *cli.Command {
	return &cli.Command{
		Name:      "estimate",
		Usage:     "the same answer in seconds from the simulated engine alone, also entirely from flags",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner estimate --model llama-3.1-70b --weights fp8 --gpu \"H100 SXM\" --tp 4 --workload chat \\\n" +
			"           --rate 100 --slo ttft.p99=500ms --slo tpot.p99=50ms\n" +
			"         planner estimate planner.toml --gpu \"H100 SXM\" --gpu \"H200 SXM\" --tp 2 --tp 4",
		Flags:  join(shortcutFlags(), []cli.Flag{sloFlag()}, configFlags(), []cli.Flag{certifyFlag(), outputFlag(), recordsFlag()}),
		Action: func(c *cli.Context) error { return p.answer(c, "estimate", p.conclude) },
	}
}

func recordsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "records", Usage: "write the records of every simulated trial into the run folder"}
}

// answer runs `plan`, `estimate` and `search`: all that comes before what they
// conclude. A plan is always kept in a run folder, a search on a real engine too.
func (p *program) answer(c *cli.Context, command string, conclude func(*cli.Context, *config.Config, *sweep.Folder) error) error {
	cfg, done, err := p.begin(c, command)
	if err != nil || done {
		return err
	}
	if c.Bool("dry-run") {
		return p.dryDecision(cfg)
	}
	// What cannot be decided at all is said before a folder is made.
	if cfg.Simulated() {
		if _, err := p.newRun(c, cfg, ""); err != nil {
			return err
		}
	}
	always := command == "plan" || command == "search" && !cfg.Simulated()
	folder, err := p.newFolder(c, cfg, command, always)
	if err != nil {
		return err
	}
	return conclude(c, cfg, folder)
}

// newRun prepares the decision of a configuration; engines write their logs
// below dir.
func (p *program) newRun(c *cli.Context, cfg *config.Config, dir string) (*decision, error) {
	var b *bed
	var err error
	if cfg.Simulated() {
		b, err = simulatedBed(cfg, runtime.GOMAXPROCS(0))
	} else {
		b, err = p.liveBed(c, cfg, dir)
	}
	if err != nil {
		return nil, err
	}
	return newDecision(cfg, b)
}

// dryDecision lists what would be searched.
func (p *program) dryDecision(cfg *config.Config) error {
	runnable, _ := cfg.Candidates()
	priors := make([]search.Prior, len(runnable))
	for i, k := range runnable {
		priors[i].Knobs = k
	}
	return p.dryRun(cfg, priors)
}

// newFolder makes the run folder that the flags ask for, nil if none.
func (p *program) newFolder(c *cli.Context, cfg *config.Config, command string, always bool) (*sweep.Folder, error) {
	var folder sweep.Folder
	var err error
	switch path := c.String("output"); {
	case path != "":
		folder, err = sweep.CreateFolder(path, about(c, command), cfg.TOML())
	case always:
		folder, err = sweep.NewFolder(cfg.OutputDir, cfg.Model.Name, about(c, command), cfg.TOML())
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !c.Bool("quiet") {
		fmt.Fprintln(p.stderr, "run folder:", folder.Path)
	}
	return &folder, nil
}

// conclude runs a decision, on top of what its journal holds, and writes and
// prints the plan.
func (p *program) conclude(c *cli.Context, cfg *config.Config, folder *sweep.Folder) (err error) {
	d, err := p.newRun(c, cfg, folderPath(folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.bed.close()) }()
	if err := d.bed.recall(folder); err != nil {
		return err
	}
	if d.journal, err = openJournal(folder); err != nil {
		return err
	}
	defer d.journal.Close()
	d.keep = d.bed.keeper(folder, c.Bool("records"))
	started := time.Now()
	d.show = p.display(c)
	d.show.budget = budgetOf(cfg, len(d.groups))
	d.stop = p.signals.patience(d.show.say)
	d.bed.tell(d.show)
	made, err := d.decide(c.Context)
	d.show.Close()
	none := d.without(err)
	switch {
	case none != nil:
		none.view.Run = runFacts(started, folder)
		return p.refuse(c, none, folder)
	case errors.Is(err, sweep.ErrInterrupted):
		return errors.Join(hintResume(err, folder), p.soFar(c, d, made, folder))
	case err != nil:
		return err
	}
	made.Run = runFacts(started, folder)
	if folder != nil {
		if err := writeRun(*folder, made, d.background()); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = p.printJSON(made)
	} else {
		err = p.print(report.Plan(made, d.background()))
	}
	if err != nil {
		return err
	}
	return certifiedEnd(made.Evidence.Certificate)
}

// soFar reports what an interrupted run has found: made, where only the certificate
// was still to come, else what its searches know. It does not end the run: plan.json
// is written by a run that ends.
func (p *program) soFar(c *cli.Context, d *decision, made *plan.Plan, folder *sweep.Folder) error {
	if folder == nil || len(d.trials) == 0 {
		return nil
	}
	if made != nil {
		made.Warnings = append(made.Warnings, "interrupted: the rate is not certified yet")
	} else if made = d.unfinished(); made == nil {
		return nil // nothing is known yet that could be reported
	}
	doc := report.Plan(made, d.background())
	if err := writeReport(*folder, doc); err != nil {
		return err
	}
	if c.Bool("json") {
		return nil
	}
	return p.print(doc)
}

// unfinished is the plan by what the searches have found so far; nil where that
// is none.
func (d *decision) unfinished() *plan.Plan {
	made, err := d.solve()
	if err != nil {
		return nil
	}
	made.Warnings = append(made.Warnings, "interrupted: the search had not ended, and other knob sets may be better")
	if d.bed.live != nil {
		made.Warnings = append(made.Warnings, untrusted(d.trials, made.Offer.Knobs)...)
	}
	d.fitCurves(made)
	return made
}

// openJournal opens the journal of a run; without a folder there is none.
func openJournal(folder *sweep.Folder) (*sweep.Journal, error) {
	if folder == nil {
		return nil, nil
	}
	j, _, err := sweep.OpenJournal(folder.File(sweep.JournalFile))
	return j, err
}

// runFacts is what of a plan depends on clock and place.
func runFacts(started time.Time, folder *sweep.Folder) map[string]any {
	facts := map[string]any{"finished": time.Now().UTC().Format(time.RFC3339), "seconds": time.Since(started).Seconds(), "version": version}
	if folder != nil {
		facts["folder"] = folder.Path
	}
	return facts
}

// hintResume tells how to go on with an interrupted run.
func hintResume(err error, folder *sweep.Folder) error {
	if folder == nil || !errors.Is(err, sweep.ErrInterrupted) {
		return err
	}
	return fmt.Errorf("%w; go on with: planner resume %s", err, folder.Path)
}

// background is what the report shows beside the plan.
func (d *decision) background() report.Background {
	b := report.Background{Trials: d.trials, Subject: d.cfg.Workload.Class}
	if m := d.cfg.Model; m.Known {
		b.Subject = fmt.Sprintf("%s in %s, %s", m.Name, m.Precision.Weights, d.cfg.Workload.Class)
	}
	if d.chosen != nil {
		k, r := d.chosen.settled()
		b.Search, b.Server = &r, serverOf(d.cfg, k)
	}
	b.Engines = d.bed.engines()
	return b
}
