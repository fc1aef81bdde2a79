package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"planner/search"
	"planner/sweep/measure"
)

// display tells on standard error how a search goes: one line that is drawn over
// itself on a terminal, a line for each trial with --verbose, nothing otherwise.
type display struct {
	w       io.Writer
	live    bool
	verbose bool
	started time.Time
	drawn   bool
	trials  int
}

// display starts the display of a command.
func (p *program) display(c *cli.Context) *display {
	d := &display{w: p.stderr, started: time.Now()}
	if !c.Bool("quiet") {
		d.live, d.verbose = p.isTerminal(), c.Bool("verbose")
	}
	return d
}

// quiet is how long nothing is drawn: a command that is done within it shows no
// progress.
const quiet = time.Second

func (d *display) line(m measure.Measurement, text string) {
	d.trials++
	switch {
	case d.verbose:
		fmt.Fprintf(d.w, "trial %d: %s: %s\n", m.Trial.Number, m.Trial.Why, text)
	case d.live && time.Since(d.started) > quiet:
		d.drawn = true
		fmt.Fprintf(d.w, "\r\x1b[2K%d trials, %s: %s", d.trials, time.Since(d.started).Round(time.Second), text)
	}
}

// close removes the live line.
func (d *display) close() {
	if d.drawn {
		fmt.Fprint(d.w, "\r\x1b[2K")
		d.drawn = false
	}
}

// searched shows the posterior of one search.
func (d *display) searched(r search.Result, m measure.Measurement) {
	d.line(m, rateText(r.Estimate))
}

// raced shows the best so far of every group.
func (d *display) raced(groups []*group, m measure.Measurement) {
	var best search.Estimate
	for _, g := range groups {
		if _, r := g.race.best(); r.Estimate.Value > best.Value {
			best = r.Estimate
		}
	}
	d.line(m, rateText(best))
}

// curved shows a trial of the curve.
func (d *display) curved(m measure.Measurement) {
	d.line(m, fmt.Sprintf("%.4g requests/s", m.Trial.Rate))
}

func rateText(e search.Estimate) string {
	if e.Value == 0 {
		return "no estimate yet"
	}
	return fmt.Sprintf("maximum rate %.3g requests/s (%.3g to %.3g)", e.Value, e.Low, e.High)
}
