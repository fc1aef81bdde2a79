package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/note"
	"planner/plan/decide"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/ingest"
	"planner/sweep/measure"
)

func (p *program) compare(c *cli.Context) error {
	if c.Args().Len() != 2 {
		return usagef("compare: two configurations or two run folders expected, %d given; see 'planner compare --help'", c.Args().Len())
	}
	a, b := c.Args().Get(0), c.Args().Get(1)
	_, _, errA := sweep.OpenFolder(a)
	_, _, errB := sweep.OpenFolder(b)
	switch {
	case errA == nil && errB == nil:
		return p.compareRuns(c, a, b)
	case errA == nil || errB == nil:
		other, why := a, errA
		if errA == nil {
			other, why = b, errB
		}
		if info, err := os.Stat(other); err != nil || info.IsDir() {
			return usagef("compare: %w", why)
		}
		return usagef("compare: %s and %s are not of one kind: two configurations or two run folders", a, b)
	}
	var r run
	var err error
	if r.cfg, err = p.configure(c, a, "compare"); err != nil {
		return err
	}
	if r.second, err = p.configure(c, b, "compare"); err != nil {
		return err
	}
	return p.start(c, &r)
}

func (p *program) compareRuns(c *cli.Context, a, b string) error {
	f := flagsOf(c)
	terms := compareTerms(f)
	if err := cmp.Or(f.err, refuse(c, "is for two configurations; what two run folders hold is compared as it is",
		"rate", "duration", "warm-up", "rounds", "seed", "set", "catalog", "dialect", "dry-run", "output")); err != nil {
		return err
	}
	paths, trials := [2]string{a, b}, [2][]measure.Measurement{}
	for i, path := range paths {
		var err error
		if trials[i], err = sweep.ReadJournal(sweep.Folder{Path: path}.File(sweep.JournalFile)); err != nil {
			return err
		}
	}
	differ := ""
	if one, other := serverOf(a), serverOf(b); one != nil && other != nil {
		differ = strings.Join(config.ServersDiffer(one, other, true), ", ")
	}
	answer, err := design.CompareRuns(paths, trials, terms, note.If(differ != "", note.ServersDiffer, differ))
	if err != nil {
		return usageError{err}
	}
	return p.conclude(c, &run{}, answer, nil)
}

func (p *program) fitCommand() *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "curve, knee, maximum rate and plan from results that are on disk",
		ArgsUsage: "RESULTS...",
		Description: "Example: planner fit measured.csv --slo ttft.p99=500ms --rate 100 \\\n" +
			"           --gpus-per-instance 8 --headroom 0.2 --spare 0 --price 2.99\n" +
			"Reads run folders and CSV files with a header such as rate_per_s,ttft_p50_ms,ttft_p99_ms.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "configuration with demand and limits: --config planner.toml"},
			&cli.StringFlag{Name: "gpus-per-instance", Value: "1", Usage: "GPUs of the instance that was measured: --gpus-per-instance 8"},
			&cli.StringFlag{Name: "gpu", Usage: "name of the GPU that was measured (default: that of the run): --gpu \"H100 SXM\""},
		}, without(declared(shortcuts), "model", "model-config", "weights", "kv-cache", "gpu", "tp", "engine-version", "workload"),
			shared("slo", "set", "json", "catalog")),
		Action: p.fit,
	}
}

func (p *program) fit(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("fit: missing results; see 'planner fit --help'")
	}
	m := decide.Measured{GPU: c.String("gpu")}
	f := flagsOf(c)
	gpus := f.count("gpus-per-instance")
	if f.err != nil {
		return f.err
	}
	if c.IsSet("gpus-per-instance") {
		m.GPUs = gpus
	}
	trials, err := readResults(c.Args().Slice(), &m)
	if err == nil {
		err = sameServer("fit", c.Args().Slice())
	}
	if err == nil {
		m.Catalog, err = config.ReadCatalog(c.String("catalog"))
	}
	if err != nil {
		return err
	}
	if c.IsSet("gpu") {
		if _, err := m.Catalog.GPU(m.GPU); err != nil { // a name not in the catalog is fine
			p.warn(c, []string{"--gpu: " + err.Error()})
		}
	}
	r, answer, err := p.planAgain(c, trials)
	switch {
	case err != nil:
		return err
	case r == nil:
		r = &run{}
		path, command := fittedBy(c), "fit"
		simulated := slices.ContainsFunc(trials, func(m measure.Measurement) bool { return m.Server.Engine.Kind == "simulated" })
		own := simulated && path != c.String("config")
		if own {
			command = "estimate"
		}
		if r.cfg, err = p.configure(c, path, command); err != nil {
			return err
		}
		switch {
		case own: // with the uncertainty of the constants, as in a plan
			if r.ground, err = p.ground(r, r.cfg); err != nil {
				return err
			}
		case simulated:
			p.warn(c, []string{"fit: what is not known of the simulated engine's constants is not in the interval; it is where one run folder is given, without --config"})
		}
	case answer.State != sweep.Unfinished:
		return p.conclude(c, r, answer, nil)
	case r.ground.Virtual && r.follower == nil: // the simulated engine runs the trials that other limits require
		if err = p.prepare(r); err != nil {
			return err
		}
		return p.conduct(c, r)
	case len(r.cfg.Pools()) > 0:
		return usagef("fit: %s was searched for the limits that each class had; for others copy its %s, change them there, and plan anew with it", c.Args().First(), sweep.ConfigFile)
	}
	m.Ground = r.ground
	if answer, err = decide.Fit(r.cfg, trials, m); err != nil {
		return usageError{err}
	}
	return p.conclude(c, r, answer, nil)
}

// fittedBy returns the configuration that a command line names, or that of its only run folder.
func fittedBy(c *cli.Context) string {
	if folder, _, err := sweep.OpenFolder(c.Args().First()); err == nil && c.Args().Len() == 1 && !c.IsSet("config") {
		return folder.File(sweep.ConfigFile)
	}
	return c.String("config")
}

// planAgain decides again on the trials of a plan, if its run folder is all that the command line names, by
// that plan's configuration with the overrides of the flags. The run is nil for other results, or if a
// configuration is given. The answer is unfinished if other limits would have required trials that the journal
// lacks.
func (p *program) planAgain(c *cli.Context, trials []measure.Measurement) (again *run, answer sweep.Answer, _ error) {
	folder, about, err := sweep.OpenFolder(c.Args().First())
	if c.Args().Len() > 1 || c.IsSet("config") || err != nil || about.Command != "plan" && about.Command != "estimate" {
		return nil, answer, nil
	}
	if err = refuse(c, "is in the folder of the plan", "gpu", "gpus-per-instance"); err != nil {
		return nil, answer, err
	}
	again = &run{}
	if again.cfg, err = p.configure(c, folder.File(sweep.ConfigFile), about.Command); err != nil {
		return nil, answer, err
	}
	again.cfg.Run = config.Invocation{Command: about.Command}
	if err = p.prepare(again); err != nil {
		return nil, answer, err
	}
	var found []decide.SearchResults // none if made by an earlier version or interrupted
	if folder.ReadJSON(searchedFile, &found) == nil {
		if study := again.study.(decide.PlanStudy); study.Recall(found, trials) {
			answer, err = study.Answer()
			return again, answer, err
		}
		if err = p.prepare(again); err != nil { // without the recalled results
			return nil, answer, err
		}
	}
	answer, err = sweep.Replay(trials, again.study)
	if errors.Is(err, sweep.ErrOtherTrials) {
		answer, err = sweep.Answer{}, nil
	}
	return again, answer, err
}

// serverOf returns the configuration of a run folder; nil if it names no model, as for results of other tools.
func serverOf(path string) *config.Config {
	cfg, err := config.Load(sweep.Folder{Path: path}.File(sweep.ConfigFile), nil, config.For("calibrate"))
	if err != nil || cfg.Model.Name == "" {
		return nil
	}
	return cfg
}

// sameServer refuses run folders of servers that differ from the first one known.
func sameServer(command string, paths []string) error {
	var first *config.Config
	var at string
	for _, path := range paths {
		cfg := serverOf(path)
		if first == nil {
			first, at = cfg, path
		}
		if first == nil || cfg == nil {
			continue
		}
		if differ := config.ServersDiffer(first, cfg, false); len(differ) > 0 {
			return usagef("%s: %s and %s are of different servers: %s; %[1]s those of one server at a time", command, at, path, strings.Join(differ, ", "))
		}
	}
	return nil
}

// readResults reads run folders, result files and folders of them; doubts about the latter are added to m.
func readResults(paths []string, m *decide.Measured) (all []measure.Measurement, err error) {
	var files []string
	for _, path := range paths {
		folder, _, err := openFolder(path)
		if info, errStat := os.Stat(path); errStat == nil && info.IsDir() && !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return nil, err
			}
			trials, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
			if err != nil {
				return nil, err
			}
			all = append(all, trials...)
			continue
		}
		files = append(files, path)
	}
	results, err := ingest.ReadFiles(files)
	if err != nil {
		return nil, usageError{err}
	}
	m.Doubts = append(m.Doubts, results.Doubts...)
	return append(all, results.Points...), nil
}
