package main

import (
	"cmp"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/progress"
	"planner/internal/report"
	"planner/search"
	"planner/sweep"
)

// display begins to show how a run goes: drawn over itself on a terminal, a line now
// and then with --verbose, nothing but remarks otherwise.
func (p *program) display(c *cli.Context, r *run) *progress.Display {
	o := progress.DisplayOptions{Quiet: c.Bool("quiet"), Verbose: c.Bool("verbose"), Columns: p.columns(),
		Cost: func(seen []sweep.EngineTelemetry) string { return (&report.Engines{Seen: seen, GPU: r.gpu}).Spent() }}
	if s, ok := r.study.(interface {
		Best() (search.Result, string)
		Searches() int
	}); ok {
		o.Best = s.Best
		if !r.ground.Virtual || r.cfg.Search.BudgetGiven {
			o.Budget = time.Duration(s.Searches()) * r.cfg.Search.Budget
		}
	}
	return progress.New(p.terminal, o)
}

// columns is how many columns the terminal has that standard error is; 0 if it is
// none.
func (p *program) columns() int {
	f, ok := p.terminal.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 80
	}
	return cmp.Or(width, 80)
}
