package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/measure"
)

func (p *program) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "two configurations, engines or runs: paired rounds, a test, an interval on the difference",
		ArgsUsage: "A B",
		Description: "Example: planner compare a.toml b.toml --rate 8 --rounds 8\n" +
			"         planner compare runs/before runs/after --json\n" +
			"Two configurations run in alternating rounds on the same requests. Two run folders are compared at the\n" +
			"loads that both have, two plans also by their maximum rates. Exit code 4: some figure stays undecided.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "rate", Usage: "requests per second, of both (default: 80 % of the smaller predicted maximum): --rate 8"},
			&cli.StringFlag{Name: "duration", Usage: "window of a round (default: 1,500 requests, at least 60s): --duration 300s"},
			&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s, at most the window): --warm-up 15s"},
			&cli.StringFlag{Name: "rounds", Value: "8", Usage: "rounds; each side runs once in each: --rounds 12"},
			&cli.StringFlag{Name: "seed", Usage: "seed of the first round: --seed 7"},
			&cli.StringFlag{Name: "confidence", Value: "0.95", Usage: "of the intervals: --confidence 0.9"},
			&cli.StringFlag{Name: "indifference", Value: "0.02", Usage: "relative difference below which two figures are the same: --indifference 0.05"},
			&cli.StringFlag{Name: "dialect", Usage: "request fields of an attached server: --dialect vllm"},
			outputFlag(), setFlag(), jsonFlag(), catalogFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "show what would run and end"},
		},
		Action: p.compare,
	}
}

func (p *program) compare(c *cli.Context) error {
	if c.Args().Len() != 2 {
		return usagef("compare: two configurations or two run folders expected, %d given; see 'planner compare --help'", c.Args().Len())
	}
	terms, err := compareTerms(c)
	if err != nil {
		return err
	}
	a, b := c.Args().Get(0), c.Args().Get(1)
	runA, errA := openRun(a)
	runB, errB := openRun(b)
	switch {
	case errA == nil && errB == nil:
		return p.compareRuns(c, runA, runB, terms)
	case errA == nil || errB == nil:
		return usagef("compare: %s and %s are not of one kind: two configurations or two run folders", a, b)
	}
	return p.compareConfigs(c, a, b, terms)
}

// terms are the terms of a comparison.
type terms struct {
	confidence, indifference float64
	rounds                   int
}

func compareTerms(c *cli.Context) (terms, error) {
	var t terms
	var err error
	if t.confidence, err = shareFlag(c, "confidence"); err != nil {
		return t, err
	}
	if t.indifference, err = shareFlag(c, "indifference"); err != nil {
		return t, err
	}
	t.rounds, err = countFlag(c, "rounds")
	return t, err
}

// shareFlag reads a number between 0 and 1.
func shareFlag(c *cli.Context, name string) (float64, error) {
	x, err := strconv.ParseFloat(c.String(name), 64)
	if err != nil || !(x > 0 && x < 1) {
		return 0, usagef("--%s: %q is not a share between 0 and 1", name, c.String(name))
	}
	return x, nil
}

// side is one of two configurations.
type side struct {
	name  string
	cfg   *config.Config
	bed   *bed
	knobs measure.Knobs
	// rate is the predicted maximum, 0 if nothing predicts it.
	rate float64
}

// newSide reads a configuration and predicts what it carries, where model and
// hardware are known.
func (p *program) newSide(c *cli.Context, path string) (*side, error) {
	cfg, err := p.configure(c, path, "compare")
	if err != nil {
		return nil, err
	}
	if err := launchable(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	runnable, _ := cfg.Candidates()
	s := &side{name: path, cfg: cfg, knobs: runnable[0]}
	if s.rate, err = predictedRate(cfg, s.knobs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// compareConfigs runs two configurations in alternating rounds.
func (p *program) compareConfigs(c *cli.Context, pathA, pathB string, t terms) (err error) {
	a, err := p.newSide(c, pathA)
	if err != nil {
		return err
	}
	b, err := p.newSide(c, pathB)
	if err != nil {
		return err
	}
	r, err := compareRounds(c, a, b, t.rounds)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return p.printRounds(r)
	}
	folder, err := p.compareFolder(c, a, b)
	if err != nil {
		return err
	}
	for _, s := range []*side{a, b} {
		if s.bed, err = p.bedOf(c, s.cfg, folderPath(folder)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.bed.close()) }()
	}
	pairs, stopped := p.runRounds(c, r, folder)
	if stopped != nil && (!errors.Is(stopped, sweep.ErrInterrupted) || len(pairs) == 0) {
		return stopped
	}
	out := report.Comparison{
		A: a.name, B: b.name, Test: tested, Confidence: t.confidence, Indifference: t.indifference,
		Rate: r.rate, Window: r.window, Rounds: t.rounds, Contrasts: contrast(pairs, t.confidence, t.indifference),
		Design:   r.design(),
		Warnings: append(r.doubts(), pairDoubts(pairs)...),
		Engines:  r.engines(),
		Trials:   inPairs(pairs),
	}
	if stopped != nil {
		out.Rounds = len(pairs)
		out.Warnings = append(out.Warnings, fmt.Sprintf("interrupted after %d of %d rounds", len(pairs), t.rounds))
		return errors.Join(stopped, p.compared(c, out, folder))
	}
	return cmp.Or(p.compared(c, out, folder), compareEnd(out))
}

// inPairs lists the measurements of pairs.
func inPairs(pairs []pair) []measure.Measurement {
	var all []measure.Measurement
	for _, x := range pairs {
		all = append(all, *x.a, *x.b)
	}
	return all
}

// compareFolder makes the run folder of a comparison: where the user asks for it,
// and always for real engines, which have logs. The configuration of A is the
// run's, that of B stands beside it.
func (p *program) compareFolder(c *cli.Context, a, b *side) (*sweep.Folder, error) {
	folder, err := p.newFolder(c, a.cfg, "compare", !a.cfg.Simulated() || !b.cfg.Simulated())
	if err != nil || folder == nil {
		return nil, err
	}
	return folder, folder.Write("config-b.toml", b.cfg.TOML())
}

// compared prints a comparison and keeps it where the user asked for a folder.
func (p *program) compared(c *cli.Context, out report.Comparison, folder *sweep.Folder) error {
	if folder != nil {
		if err := errors.Join(folder.WriteJSON("compare.json", comparisonView(out)), writeReport(*folder, report.Compare(out))); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return p.printJSON(comparisonView(out))
	}
	return p.print(report.Compare(out))
}

// compareEnd is how a comparison ends that ran to its end: undecided where some
// figure is.
func compareEnd(out report.Comparison) error {
	for _, x := range out.Contrasts {
		if x.Judgement == report.Undecided {
			return outcome(exitUndecided)
		}
	}
	return nil
}

// diskRun is a run folder that is compared.
type diskRun struct {
	path   string
	trials []measure.Measurement
	plan   *plan.Plan
}

// openRun reads a run folder.
func openRun(path string) (*diskRun, error) {
	folder, _, err := sweep.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	r := &diskRun{path: path}
	if r.trials, err = sweep.ReadJournal(folder.File(sweep.JournalFile)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(folder.File(sweep.PlanFile))
	if err != nil {
		return r, nil // a run without a plan
	}
	r.plan = &plan.Plan{}
	if err := json.Unmarshal(data, r.plan); err != nil {
		return nil, fmt.Errorf("%s: %w", folder.File(sweep.PlanFile), err)
	}
	return r, nil
}

// compareRuns compares what two runs have measured.
func (p *program) compareRuns(c *cli.Context, a, b *diskRun, t terms) error {
	out := report.Comparison{A: filepath.Clean(a.path), B: filepath.Clean(b.path), Test: tested, Confidence: t.confidence, Indifference: t.indifference}
	pairs, left := matched(a.trials, b.trials)
	if a.plan != nil && b.plan != nil {
		// The trials of a plan are where its search took it; only the maximum rates
		// are meant to be compared.
		out.Contrasts = contrastRates(a.plan.Offer.Rate, b.plan.Offer.Rate, t.confidence, t.indifference)
		out.Design = "the maximum rates of two plans"
		out.Test = "normal, from the plans' own intervals, which are taken as independent"
		if !slices.Equal(a.plan.Objective.Bounds, b.plan.Objective.Bounds) {
			out.Warnings = append(out.Warnings, "the two plans have different objectives")
		}
	} else {
		out.Contrasts = contrast(pairs, t.confidence, t.indifference)
		out.Design = loadPoints(len(pairs)) + fmt.Sprintf(" that both runs have; %d have no counterpart", left)
		out.Warnings = append(pairDoubts(pairs), seedDoubt(pairs)...)
	}
	if otherTraffic(a.trials, b.trials) {
		out.Warnings = append(out.Warnings, "the two runs are of different traffic: what differs may be its doing and not the engine's")
	}
	if len(out.Contrasts) == 0 {
		return usagef("compare: %s and %s have no load in common and no two plans: measure both at the same rates, as 'planner sweep --rates' does", a.path, b.path)
	}
	return cmp.Or(p.compared(c, out, nil), compareEnd(out))
}

// seedDoubt says when pairs were not of the same requests.
func seedDoubt(pairs []pair) []string {
	other := 0
	for _, x := range pairs {
		if x.a.Trial.Seed != x.b.Trial.Seed {
			other++
		}
	}
	if other == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d pairs had other requests (another seed): chance makes their differences larger", other, len(pairs))}
}

func loadPoints(n int) string {
	if n == 1 {
		return "1 load point"
	}
	return fmt.Sprintf("%d load points", n)
}
