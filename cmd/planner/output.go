package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/report"
	"planner/internal/wire"
)

// print writes a document as text, as wide as the terminal or 120 columns.
func (p *program) print(d report.Document) error {
	_, err := p.stdout.Write(report.Text(d, p.width(), p.colors()))
	return err
}

// answer writes an answer as the command line asks for it: as JSON, or as a document.
func (p *program) answer(c *cli.Context, value any, doc report.Document) error {
	if c.Bool("json") {
		return p.printJSON(value)
	}
	return p.print(doc)
}

// warn says lines on standard error, unless they are not wanted.
func (p *program) warn(c *cli.Context, lines []string) {
	if c.Bool("quiet") {
		return
	}
	for _, line := range lines {
		fmt.Fprintln(p.stderr, "planner: warning:", line)
	}
}

// printJSON writes one JSON document.
func (p *program) printJSON(v any) error {
	data, err := wire.Print(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", data)
	return err
}

// width is how many columns standard output has.
func (p *program) width() int {
	if f, ok := p.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 120
}

// colors reports whether the report may use colour.
func (p *program) colors() bool {
	f, ok := p.stdout.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}
