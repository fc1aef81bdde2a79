package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

func (p *program) sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "measured trials over a grid of rates and knobs, or a matrix of traffic; no search, no plan",
		ArgsUsage: "CONFIG",
		Description: "Example: planner sweep planner.toml --rates 1,2,5,10\n" +
			"         planner sweep planner.toml --rates 1:20:6 --strategy one-at-a-time\n" +
			"         planner sweep planner.toml --matrix\n" +
			"The lists of the configuration (knobs, GPUs, tensor_parallel) are crossed, or varied one at a time from the\n" +
			"first of each. Where prompts share prefixes, a cold and a warm prefix cache are trials of their own.",
		Flags: join([]cli.Flag{
			&cli.StringFlag{Name: "rates", Usage: "requests per second, listed or lowest:highest:number (default: shares of the predicted maximum): --rates 1:20:5"},
			&cli.StringFlag{Name: "strategy", Usage: "crossed or one-at-a-time (default: search.strategy of the configuration): --strategy one-at-a-time"},
			&cli.BoolFlag{Name: "matrix", Usage: "six kinds of traffic instead, each with a question, a hypothesis and its outcome: --matrix"},
			&cli.StringFlag{Name: "duration", Usage: "window of a trial (default: what a p99 needs; 3 minutes at most on a real engine): --duration 120s"},
			&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s): --warm-up 15s"},
			&cli.StringFlag{Name: "repeats", Value: "1", Usage: "how often each trial runs, on other requests each time: --repeats 3"},
			&cli.StringFlag{Name: "dialect", Usage: "request fields of an attached server: --dialect vllm"},
		}, configFlags(), []cli.Flag{outputFlag()}),
		Action: p.sweep,
	}
}

func (p *program) sweep(c *cli.Context) error {
	path, err := onePositional(c, "configuration")
	if err != nil {
		return err
	}
	cfg, done, err := p.begin(c, "sweep")
	if err != nil || done {
		return err
	}
	spec, err := sweepFlags(c, cfg)
	if err != nil {
		return err
	}
	s, err := newSweeping(cfg, spec)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return p.drySweep(s)
	}
	folder, err := p.sweepFolder(c, cfg, append([]string{path}, s.spec.args()...))
	if err != nil {
		return err
	}
	return p.runSweep(c, s, folder)
}

// sweepFlags reads what to sweep.
func sweepFlags(c *cli.Context, cfg *config.Config) (sweepSpec, error) {
	s := sweepSpec{matrix: c.Bool("matrix"), oneAtATime: cfg.Search.Strategy == "one-at-a-time"}
	var err error
	if s.repeats, err = countFlag(c, "repeats"); err != nil {
		return s, err
	}
	switch strategy := c.String("strategy"); strategy {
	case "":
	case "crossed", "one-at-a-time":
		s.oneAtATime = strategy == "one-at-a-time"
	default:
		return s, usagef("--strategy: %q is neither crossed nor one-at-a-time", strategy)
	}
	if c.IsSet("rates") {
		if s.rates, err = parseRates(c.String("rates")); err != nil {
			return s, usagef("--rates: %v", err)
		}
	}
	if s.matrix && (c.IsSet("rates") || c.IsSet("strategy") || s.repeats > 1) {
		return s, usagef("sweep: --matrix has its own rates and knobs; leave out --rates, --strategy and --repeats")
	}
	if s.window, err = durationFlag(c, "duration", 0, false); err != nil {
		return s, err
	}
	if s.warm, err = durationFlag(c, "warm-up", 0, false); err != nil || len(s.rates) == 0 {
		return s, err
	}
	return s, bounded(slices.Max(s.rates), s.warm+s.window)
}

// sweepFolder makes the run folder; its arguments are what resume goes by.
func (p *program) sweepFolder(c *cli.Context, cfg *config.Config, args []string) (*sweep.Folder, error) {
	made := sweep.About{Command: "sweep", Args: args, Version: version, Started: time.Now()}
	var folder sweep.Folder
	var err error
	if path := c.String("output"); path != "" {
		folder, err = sweep.CreateFolder(path, made, cfg.TOML())
	} else {
		folder, err = sweep.NewFolder(cfg.OutputDir, cfg.Model.Name+" sweep", made, cfg.TOML())
	}
	if err != nil {
		return nil, usageError{err}
	}
	if !c.Bool("quiet") {
		fmt.Fprintln(p.stderr, "run folder:", folder.Path)
	}
	return &folder, nil
}

// sweeping is a sweep with its trials.
type sweeping struct {
	cfg      *config.Config
	spec     sweepSpec
	trials   []measure.Trial
	rows     []matrixRow
	rejected []measure.Rejection
	seen     []measure.Measurement
	warnings []string
}

// newSweeping lists the trials of a sweep; it fails if none can run.
func newSweeping(cfg *config.Config, spec sweepSpec) (*sweeping, error) {
	s := &sweeping{cfg: cfg, spec: spec}
	sets, most, err := s.runnable()
	if err != nil {
		return nil, err
	}
	if spec.matrix {
		if len(sets) > 1 {
			s.warnings = append(s.warnings, fmt.Sprintf("the matrix runs on the first of %d sets of knobs", len(sets)))
		}
		s.rows, s.trials, err = matrixTrials(cfg, spec, sets[0])
		return s, err
	}
	if spec.oneAtATime {
		sets = oneAtATime(sets)
	}
	if len(spec.rates) == 0 {
		if most <= 0 {
			return nil, usagef("sweep: give rates: --rates 1,2,5 (without model and hardware nothing predicts what the engine carries)")
		}
		s.spec.rates = sharesOf(most)
	}
	s.trials = gridTrials(cfg, s.spec, sets)
	return s, nil
}

// runnable lists the sets of knobs that can run, with the highest rate that is
// predicted for one of them, and rejects the others.
func (s *sweeping) runnable() (sets []measure.Knobs, most float64, err error) {
	all, rejected := s.cfg.Candidates()
	s.rejected = rejected
	for _, k := range all {
		rate, err := predictedRate(s.cfg, k)
		if unable, ok := measure.IsRejection(err); ok {
			s.rejected = append(s.rejected, measure.Rejection{Knobs: k, Reason: unable.Reason})
			continue
		} else if err != nil {
			return nil, 0, err
		}
		sets, most = append(sets, k), max(most, rate)
	}
	if len(sets) == 0 {
		return nil, 0, &measure.Rejection{Knobs: s.rejected[0].Knobs, Reason: s.rejected[0].Reason}
	}
	return sets, most, nil
}

// sideBySide is how many trials a simulated sweep proposes together. It is a
// constant so that the journal does not depend on the machine.
const sideBySide = 8

// drive runs the trials that the journal does not hold yet.
func (s *sweeping) drive(ctx context.Context, loop sweep.Loop) error {
	for _, r := range s.rejected {
		if err := loop.Journal.Reject(r.Knobs, r.Reason); err != nil {
			return err
		}
	}
	size := 1
	if s.cfg.Simulated() {
		size = sideBySide
	}
	source := &gridSource{trials: s.trials, size: size}
	loop.Source = source
	told := loop.Observed
	loop.Observed = func(m measure.Measurement) {
		s.seen = append(s.seen, m)
		if told != nil {
			told(m)
		}
	}
	return loop.Drive(ctx)
}

// swept is what the sweep has brought so far.
func (s *sweeping) swept() report.Swept {
	out := report.Swept{Trials: s.seen, Rejected: s.rejected, Planned: len(s.trials), Objective: s.cfg.Objective, Warnings: s.warnings}
	for _, m := range s.seen {
		if m.Rejected != "" {
			out.Rejected = append(out.Rejected, measure.Rejection{Knobs: m.Trial.Knobs, Reason: m.Rejected})
		}
	}
	if t := report.Tally(s.seen); t.Trials > 0 && t.Invalid == t.Trials {
		out.Warnings = append(slices.Clone(out.Warnings), "no trial can be trusted: nothing is shown of the engine; `planner doctor` checks the machine")
	}
	if s.rows != nil {
		out.Rows = readMatrix(s.rows, s.seen)
	}
	return out
}

// runSweep runs a sweep on top of what the journal of its folder holds, and
// reports what it brought, also when it is interrupted.
func (p *program) runSweep(c *cli.Context, s *sweeping, folder *sweep.Folder) (err error) {
	b, err := p.bedOf(c, s.cfg, folder.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	j, err := openJournal(folder)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := b.recall(folder); err != nil {
		return err
	}
	show := p.display(c)
	b.tell(show)
	driven := s.drive(c.Context, sweep.Loop{Run: b.run, Journal: j, Parallel: b.parallel, Stop: p.signals.patience(show.say), Proposed: show.proposed,
		Keep:     b.keeper(folder, false),
		Observed: func(m measure.Measurement) { show.observed(m, search.Estimate{}, "") }})
	show.Close()
	if driven != nil && !errors.Is(driven, sweep.ErrInterrupted) {
		return driven
	}
	out := s.swept()
	out.Engines = b.engines()
	doc := report.Sweep(out)
	if err := errors.Join(writeReport(*folder, doc), folder.Write("sweep.csv", report.CSV{}.Print(doc)), folder.WriteJSON("sweep.json", sweepView(out))); err != nil {
		return err
	}
	if c.Bool("json") {
		err = p.printJSON(sweepView(out))
	} else {
		err = p.print(doc)
	}
	if err != nil || driven != nil {
		return errors.Join(hintResume(driven, folder), err)
	}
	return sweepEnd(out, s.cfg.Engine.Kind == "attach")
}

// sweepEnd is how a finished sweep ends: nothing could run, no trial can be trusted, or
// a hypothesis is neither held nor refuted. A server that planner did not start and that could
// not be measured is a failure of the sweep, no word on its limits.
func sweepEnd(out report.Swept, attached bool) error {
	ran := false
	for _, m := range out.Trials {
		ran = ran || m.Rejected == ""
	}
	if !ran && attached {
		return outcome(exitFailed)
	}
	if !ran {
		return outcome(exitInfeasible)
	}
	if t := report.Tally(out.Trials); t.Invalid == t.Trials {
		return outcome(exitUndecided)
	}
	for _, r := range out.Rows {
		if r.Finding == report.Unclear {
			return outcome(exitUndecided)
		}
	}
	return nil
}

// resumeSweep goes on with an interrupted sweep.
func (p *program) resumeSweep(c *cli.Context, cfg *config.Config, about sweep.About, folder *sweep.Folder) error {
	spec, err := parseSweepSpec(about.Args)
	if err != nil {
		return err
	}
	s, err := newSweeping(cfg, spec)
	if err != nil {
		return err
	}
	return p.runSweep(c, s, folder)
}

// rereadSweep walks the journal of a sweep again, without running anything.
func (p *program) rereadSweep(folder sweep.Folder, about sweep.About, trials []measure.Measurement) (report.Document, any, error) {
	spec, err := parseSweepSpec(about.Args)
	if err != nil {
		return report.Document{}, nil, err
	}
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For("sweep"))
	if err != nil {
		return report.Document{}, nil, err
	}
	s, err := newSweeping(cfg, spec)
	if err != nil {
		return report.Document{}, nil, err
	}
	err = s.drive(context.Background(), sweep.Loop{Run: notRun, Journal: sweep.Recorded(trials)})
	if err != nil && !errors.Is(err, sweep.ErrNotRecorded) {
		return report.Document{}, nil, err
	}
	out := s.swept()
	if out.Engines, err = readLogbook(cfg, folder); err != nil {
		return report.Document{}, nil, err
	}
	return report.Sweep(out), sweepView(out), nil
}

// drySweep lists what would run.
func (p *program) drySweep(s *sweeping) error {
	var load, requests float64
	before, servers := measure.Knobs{}, []report.Server{}
	for i, t := range s.trials {
		if i == 0 || t.Knobs != before {
			servers = append(servers, serverOf(s.cfg, t.Knobs))
			fmt.Fprintf(p.stdout, "%s\n", servers[len(servers)-1].Command)
			before = t.Knobs
		}
		fmt.Fprintf(p.stdout, "  %.4g requests/s for %v after %v of warm-up  %s\n", t.Rate, t.Window, t.Warmup, t.Why)
		span := (t.Warmup + t.Window + t.Cooldown).Seconds()
		load, requests = load+span, requests+span*t.Rate
	}
	for _, r := range s.rejected {
		fmt.Fprintf(p.stdout, "cannot run: %s: %s\n", serverOf(s.cfg, r.Knobs).Command, r.Reason)
	}
	if err := p.beside(servers...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "would run %d trials: %v of load, about %.0f requests\n", len(s.trials), time.Duration(load*float64(time.Second)).Round(time.Second), requests)
	return err
}

// sweepJSON is the document of `sweep --json`.
type sweepJSON struct {
	Planned  int                   `json:"trials_planned"`
	Trials   []measure.Measurement `json:"trials"`
	Rejected []measure.Rejection   `json:"rejected"`
	Rows     []report.MatrixRow    `json:"rows"`
	Warnings []string              `json:"warnings"`
}

func sweepView(s report.Swept) sweepJSON {
	v := sweepJSON{Planned: s.Planned, Trials: []measure.Measurement{}, Rejected: append([]measure.Rejection{}, s.Rejected...), Rows: s.Rows, Warnings: append([]string{}, s.Warnings...)}
	for _, m := range s.Trials {
		if m.Rejected == "" {
			v.Trials = append(v.Trials, m)
		}
	}
	return v
}

// bedOf is what the trials of a configuration run on: the simulated engine or
// real ones, which write their logs below dir.
func (p *program) bedOf(c *cli.Context, cfg *config.Config, dir string) (*bed, error) {
	if cfg.Simulated() {
		return simulatedBed(cfg, runtime.GOMAXPROCS(0))
	}
	return p.liveBed(c, cfg, dir)
}

// predictedRate is about the rate that knobs carry, by arithmetic; 0 where model
// or hardware are not known. Knobs that cannot run are an error of the simulated
// engine alone: a real one says so itself.
func predictedRate(cfg *config.Config, k measure.Knobs) (float64, error) {
	if !cfg.Model.Known || len(cfg.GPUs) == 0 {
		return 0, nil
	}
	engine, err := simulated(cfg)
	if err != nil {
		return 0, err
	}
	prior, err := priorFor(cfg, engine, k)
	if err != nil && !cfg.Simulated() {
		return 0, nil
	}
	return prior.Rate, err
}
