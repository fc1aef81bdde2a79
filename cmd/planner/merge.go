package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// partName is the file of a run folder with what one generator measured of a trial.
func partName(trial int) string { return fmt.Sprintf("generators/%04d.json", trial) }

func (p *program) mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "join what several hosts' runs of bench measured of one load",
		ArgsUsage: "RUN...",
		Description: "Example: planner merge runs/a runs/b -o runs/both\n" +
			"Joins records and HdrHistogram logs of runs of 'planner bench' that loaded a server at the same time, and\n" +
			"judges the sum: parts of one schedule (--part 1/2, --part 2/2), or runs with seeds of their own. The runs are\n" +
			"put on one axis by the hosts' clocks, which should agree within some milliseconds (NTP): on them depend the\n" +
			"common window and the number in flight. A latency does not: one host timed the whole of its request.\n" +
			"Exit codes as those of bench.",
		Flags:  []cli.Flag{outputFlag(), jsonFlag()},
		Action: p.merge,
	}
}

func (p *program) merge(c *cli.Context) error {
	paths := c.Args().Slice()
	switch {
	case len(paths) < 2:
		return usagef("merge: two run folders at least are needed, %d given", len(paths))
	case c.String("output") == "":
		return usagef("merge: missing the run folder to write: -o RUN")
	}
	var runs []benchRun
	for _, path := range paths {
		r, err := openBench(path)
		if err != nil {
			return usageError{err}
		}
		runs = append(runs, r)
	}
	trial, observed, err := joinRuns(runs)
	if err != nil {
		return usageError{err}
	}
	folder, err := sweep.CreateFolder(c.String("output"), about(c, "merge"), mergedConfig(runs))
	if err != nil {
		return usageError{err}
	}
	m := measure.Reduce(trial, observed)
	if err := keepMerged(folder, runs, m, observed); err != nil {
		return err
	}
	return p.measured(c, m)
}

// benchRun is a run of bench with what it measured.
type benchRun struct {
	folder sweep.Folder
	config []byte
	part   load.Part
}

// openBench reads a run of bench.
func openBench(path string) (r benchRun, err error) {
	folder, about, err := sweep.OpenFolder(path)
	if err != nil {
		return r, err
	}
	if about.Command != "bench" {
		return r, fmt.Errorf("%s was made by 'planner %s'; only runs of 'planner bench' can be merged", path, about.Command)
	}
	r.folder = folder
	if r.config, err = os.ReadFile(folder.File(sweep.ConfigFile)); err != nil {
		return r, err
	}
	trials, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
	if err != nil {
		return r, err
	}
	if len(trials) != 1 {
		return r, fmt.Errorf("%s holds %d measurements, a run of bench that has ended holds one", path, len(trials))
	}
	t := trials[0].Trial
	records, err := readTrialRecords(folder, t.Number)
	if err != nil {
		return r, err
	}
	f, err := os.Open(folder.File(partName(t.Number)))
	if err != nil {
		return r, fmt.Errorf("%s does not say when its generator began; only runs against a server that ran already can be merged: %w", path, err)
	}
	defer f.Close()
	if r.part, err = load.ReadPart(f, t, records); err != nil {
		return r, fmt.Errorf("%s: %w", f.Name(), err)
	}
	r.part.Obs.Server = trials[0].Server
	return r, nil
}

// readTrialRecords reads the records of a trial of a run.
func readTrialRecords(folder sweep.Folder, trial int) ([]measure.Record, error) {
	f, err := os.Open(folder.File(sweep.RecordsName(trial)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := sweep.ReadRecords(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return records, nil
}

// joinRuns makes one trial of all runs.
func joinRuns(runs []benchRun) (measure.Trial, measure.Observation, error) {
	parts := make([]load.Part, len(runs))
	for i := range runs {
		parts[i] = runs[i].part
	}
	t, o, err := load.Join(parts)
	t.Number = 1
	return t, o, err
}

// mergedConfig is the configuration of the first run, with a note of where the
// others are.
func mergedConfig(runs []benchRun) []byte {
	var b strings.Builder
	b.WriteString("# Joined from several generators. This is the configuration of the first.\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "# %q: part %s, began %s\n", r.folder.Path, r.part.Share, r.part.Start.Format("2006-01-02T15:04:05.000000Z07:00"))
	}
	return append([]byte(b.String()), runs[0].config...)
}

// keepMerged fills the folder of a merged run as bench does, with a report.
func keepMerged(folder sweep.Folder, runs []benchRun, m measure.Measurement, o measure.Observation) (err error) {
	if err := folder.WriteRecords(m.Trial.Number, o.Records); err != nil {
		return err
	}
	// Logs hold what ended well; if nothing did there is nothing to join.
	if slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Outcome == measure.OK }) {
		if err := folder.WriteFrom(sweep.HistogramsName(m.Trial.Number), func(w io.Writer) error { return mergeLogs(w, runs) }); err != nil {
			return err
		}
	}
	j, err := openJournal(&folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := j.Add(m); err != nil {
		return err
	}
	return writeReport(folder, report.Measurement(m))
}

// mergeLogs joins the histogram logs of the runs.
func mergeLogs(w io.Writer, runs []benchRun) error {
	var logs []io.Reader
	for _, r := range runs {
		f, err := os.Open(r.folder.File(sweep.HistogramsName(r.part.Trial.Number)))
		if err != nil {
			return err
		}
		defer f.Close()
		logs = append(logs, f)
	}
	return load.MergeHistogramLogs(w, logs...)
}
