package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/progress"
	"planner/internal/report"
	"planner/internal/wire"
	"planner/search"
	"planner/sweep"
)

func (p *program) answer(c *cli.Context, value any, doc report.Document) error {
	return p.printAs(c, "text", doc, value)
}

func (p *program) warn(c *cli.Context, lines []string) {
	if c.Bool("quiet") {
		return
	}
	for _, line := range lines {
		fmt.Fprintln(p.stderr, "planner: warning:", line)
	}
}

func (p *program) printJSON(v any) error {
	data, err := wire.Print(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", data)
	return err
}

// width returns the columns of standard output, 120 if unknown.
func (p *program) width() int {
	if w, _ := terminal(p.stdout); w > 0 {
		return w
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 120
}

// terminal reports whether a writer is a terminal, and its columns, 0 if unknown.
func terminal(to io.Writer) (columns int, is bool) {
	f, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, _ = term.GetSize(int(f.Fd()))
	return max(columns, 0), true
}

// display starts showing the progress of a run: redrawn on a terminal, otherwise as a line now and then.
func (p *program) display(c *cli.Context, r *run) *progress.Display {
	columns, tty := terminal(p.terminal)
	if tty {
		columns = cmp.Or(columns, 80)
	}
	o := progress.DisplayOptions{Quiet: c.Bool("quiet"), Verbose: c.Bool("verbose"), Columns: columns,
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
	if s, ok := r.study.(interface{ Stage() (int, int, string) }); ok {
		o.Stage, o.Virtual = s.Stage, r.ground.Virtual
	}
	if s, ok := r.study.(interface {
		Planned() (int, time.Duration)
	}); ok {
		if o.Trials, o.Budget = s.Planned(); r.ground.Virtual {
			o.Virtual, o.Budget = true, 0
		}
	}
	return progress.New(p.terminal, o)
}

// beside prints what accompanies the servers' command lines: the files that they read, and notes.
func (p *program) beside(servers []report.StartCommand) error {
	var texts []string
	for _, s := range servers {
		if s.File != "" {
			lines := strings.ReplaceAll(strings.TrimSpace(s.Content), "\n", "\n    ")
			texts = append(texts, s.File+":\n    "+lines)
		}
		texts = append(texts, s.Notes...)
	}
	for i, text := range texts {
		if slices.Contains(texts[:i], text) {
			continue
		}
		if _, err := fmt.Fprintf(p.plain, "  %s\n", text); err != nil {
			return err
		}
	}
	return nil
}
