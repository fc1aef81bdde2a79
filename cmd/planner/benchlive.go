package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// benchLaunched measures a load point on an engine that it launches. A
// configuration that cannot run is a result as well, and journaled as one.
func (p *program) benchLaunched(c *cli.Context, at *point) (m measure.Measurement, e *report.Engines, err error) {
	b, err := p.liveBed(c, at.cfg, at.folder.Path)
	if err != nil {
		return m, nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	j, err := openJournal(at.folder)
	if err != nil {
		return m, nil, err
	}
	defer j.Close()
	show := p.display(c)
	defer show.Close()
	b.tell(show)
	err = at.settleWarmup(c, func(ctx context.Context, t measure.Trial, _ []workload.Request) (measure.Observation, error) {
		return b.run(ctx, t)
	})
	if err != nil && !isUnable(err) {
		return m, nil, err
	}
	// After a start that failed the trial is rejected for the same reason without
	// another one.
	loop := sweep.Loop{Source: &oneByOne{trials: []measure.Trial{at.trial}}, Run: b.run, Journal: j, Keep: b.keeper(at.folder, false), Proposed: show.proposed,
		Observed: func(seen measure.Measurement) {
			m = seen
			show.observed(seen, search.Estimate{}, "")
		}}
	if err := loop.Drive(c.Context); err != nil {
		return m, nil, err
	}
	return m, b.engines(), nil
}

func isUnable(err error) bool {
	_, ok := measure.IsRejection(err)
	return ok
}

// attend watches a server that runs already during a trial, as far as it lets
// itself be watched: one that has completions alone is measured without.
func (p *program) attend(c *cli.Context, at *point) *sweep.Witness {
	settings := engineSettings(at.cfg)
	settings.URL = at.client.URL
	w, err := sweep.Attend(c.Context, settings, at.trial.Knobs)
	if err != nil {
		if c.Context.Err() == nil && !c.Bool("quiet") {
			fmt.Fprintln(p.stderr, "planner: warning:", err)
		}
		return nil
	}
	return w
}

// benched prints the measurement of a bench and puts its report into the run
// folder; its verdict is the command's exit code.
func (p *program) benched(c *cli.Context, m measure.Measurement, e *report.Engines, folder *sweep.Folder) error {
	doc := report.MeasurementOn(m, e)
	if err := writeReport(*folder, doc); err != nil {
		return err
	}
	return p.concluded(c, m, doc)
}
