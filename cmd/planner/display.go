package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/progress"
	"planner/search"
	"planner/sweep/measure"
)

// display tells on standard error how a search goes: drawn over itself on a
// terminal, a line now and then with --verbose, nothing otherwise.
type display struct {
	*progress.Display
	state   progress.State
	verbose bool
}

// display starts the display of a command.
func (p *program) display(c *cli.Context) *display {
	d := &display{verbose: c.Bool("verbose") && !c.Bool("quiet")}
	mode, width := progress.Silent, 0
	switch {
	case c.Bool("quiet"):
	case p.isTerminal():
		mode, width = progress.Live, p.errWidth()
	case d.verbose:
		mode = progress.Lines
	}
	d.Display = progress.New(p.stderr, mode, width)
	return d
}

// silent is a display that shows nothing.
func silent() *display {
	return &display{Display: progress.New(io.Discard, progress.Silent, 0)}
}

// errWidth is how many columns standard error has.
func (p *program) errWidth() int {
	if f, ok := p.stderr.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// proposed shows the trials that run next.
func (d *display) proposed(batch []measure.Trial) {
	t := batch[0]
	d.state.Next, d.state.Why = loadText(&t), t.Why
	if n := len(batch); n > 1 {
		d.state.Next += fmt.Sprintf(" and %d more side by side", n-1)
	}
	d.Show(d.state)
}

// observed shows what a trial brought to the best estimate so far.
func (d *display) observed(m measure.Measurement, best search.Estimate, of string) {
	d.state.Trials++
	d.state.Spent += m.Trial.Warmup + m.Duration
	if best.Value > 0 {
		d.state.Rate, d.state.Low, d.state.High, d.state.Subject = best.Value, best.Low, best.High, of
	}
	if d.verbose {
		d.Log(trialLine(&m))
	}
	d.Show(d.state)
}

// loadText is the load of a trial in words.
func loadText(t *measure.Trial) string {
	if t.Closed() {
		return fmt.Sprintf("%d at a time", t.Concurrency)
	}
	return fmt.Sprintf("%.4g requests/s", t.Rate)
}

// trialLine is one trial on one line.
func trialLine(m *measure.Measurement) string {
	s := fmt.Sprintf("trial %d: %s: %s", m.Trial.Number, loadText(&m.Trial), m.Trial.Why)
	switch {
	case m.Rejected != "":
		return s + ": rejected: " + m.Rejected
	case m.Verdict != nil:
		s += fmt.Sprintf(": %s (%s)", m.Verdict.State, m.Verdict.Binding)
	}
	if m.Aborted != "" {
		s += ", ended early: " + m.Aborted
	}
	return s
}
