package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/report"
	"planner/model/calibrate"
	"planner/sweep"
	"planner/sweep/measure"
)

func (p *program) calibrateCommand() *cli.Command {
	return &cli.Command{
		Name:      "calibrate",
		Usage:     "fit the simulated engine's few constants to measured runs",
		ArgsUsage: "RUN...",
		Description: "Example: planner calibrate runs/measured --config planner.toml -o h100.calibration\n" +
			"RUN is a run folder of plan, search, sweep or bench on a real engine; the configuration says which model and GPU\n" +
			"it was (default: the run's own). The file is named by engine.calibration.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "configuration with model, hardware and workload (default: that of the first run): --config planner.toml"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the calibration here: -o h100.calibration"},
			&cli.StringFlag{Name: "engine-version", Usage: "release of the engine that was measured, where the run does not say: --engine-version 0.15.1"},
		}, shared("set", "json", "catalog")...),
		Action: p.calibrate,
	}
}

func (p *program) calibrate(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("calibrate: missing run folders; see 'planner calibrate --help'")
	}
	if path := c.String("output"); path != "" {
		if _, err := os.Stat(path); err == nil {
			return usagef("--output: %s exists already", path)
		}
	}
	var folders []sweep.Folder
	for _, path := range c.Args().Slice() {
		folder, _, err := openFolder(path)
		if err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	cfg, err := p.configure(c, cmp.Or(c.String("config"), folders[0].File(sweep.ConfigFile)), "calibrate")
	if err != nil {
		return err
	}
	if !cfg.Model.Known || len(cfg.GPUs) == 0 {
		return usagef("calibrate: model and hardware are needed to simulate the runs; give --config with model.name and hardware.gpu")
	}
	if !c.IsSet("config") {
		if err := sameServer("calibrate", c.Args().Slice()); err != nil {
			return err
		}
	}
	runs, doubts, err := calibrationRuns(cfg, folders)
	if err != nil {
		return err
	}
	p.warn(c, doubts)
	measured := cmp.Or(c.String("engine-version"), cfg.Engine.Version, sweep.ReleaseOf(runs[0].Measurement.Server.Engine))
	if measured == "" {
		return usagef("calibrate: the runs do not say which release of the engine was measured; give --engine-version")
	}
	beLavish()
	k := runs[0].Trial.Knobs
	settings, _ := cfg.Engine.Features().With(strings.Fields(k.ExtraArgs))
	settings = settings.Following(runs[0].Measurement.Server.Engine.Kind)
	var simulated atomic.Int64
	show := p.display(c, &run{})
	show.See(func() string {
		return fmt.Sprintf("fitting constants to %s, simulated %d times so far", note.Count(len(runs), "run"), simulated.Load()/int64(len(runs)))
	})
	result, err := sweep.Interruptible(c.Context, func() (calibrate.File, error) { // takes minutes for long runs
		return calibrate.Fit(runs, calibrate.FitOptions{
			Deployment: cfg.Deployment(k), Version: measured, Settings: settings, Date: time.Now().UTC().Format(time.DateOnly),
			Watch: func() { simulated.Add(1) },
		})
	})
	show.Close()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := result.Write(&b); err != nil {
		return err
	}
	if path := c.String("output"); path != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
	}
	return p.answer(c, result, report.Calibration(result))
}

// mostRecords bounds the memory for the records of all runs.
const mostRecords = 1_500_000

// calibrationRuns reads the measured trials of run folders, with their records if kept, and returns doubts
// about them.
func calibrationRuns(cfg *config.Config, folders []sweep.Folder) (runs []calibrate.LoadPoint, doubts []string, err error) {
	runnable, _ := cfg.Candidates()
	for i, k := range runnable { // trials of lists have their formats as knobs
		p := cfg.Precision(k)
		runnable[i].Weights, runnable[i].KVCache = p.Weights.String(), p.KV.String()
	}
	records := 0
	for _, folder := range folders {
		trials, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(trials, func(m measure.Measurement) bool { return m.Server.Engine.Kind == "simulated" }) {
			doubts = append(doubts, folder.Path+" was simulated, and nothing measured: its constants are those that it was simulated with, however well the calibration says they are known")
		}
		points, left := calibrate.Select(folder.Path, trials, &cfg.Workload, runnable)
		for i := range points {
			points[i].Records, err = folder.Records(points[i].Trial.Number)
			if err = sweep.IgnoreMissing(err); err != nil {
				return nil, nil, err
			}
			if records += len(points[i].Records); records > mostRecords {
				return nil, nil, usagef("calibrate: the runs hold more than %d records: give fewer", mostRecords)
			}
		}
		points = slices.DeleteFunc(points, func(q calibrate.LoadPoint) bool {
			waits := q.Queueing() && !q.Trial.Workload.Replayed()
			if waits {
				left = append(left, fmt.Sprintf("trial %d of %s, whose requests waited ever longer", q.Trial.Number, folder.Path))
			}
			return waits
		})
		runs, doubts = append(runs, points...), append(doubts, list.Map(left, func(s string) string { return "left out: " + s })...)
	}
	if len(runs) == 0 {
		return nil, nil, usagef("calibrate: the runs hold no measured trial that can be trusted: %s", strings.Join(doubts, "; "))
	}
	return runs, doubts, nil
}
