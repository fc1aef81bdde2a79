package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// traceLengths describes a file that holds lengths and no arrivals, and writes
// the lengths where the user asks for them.
func (p *program) traceLengths(c *cli.Context, path string, in io.Reader) error {
	s, err := ingest.ReadShareGPT(path, in)
	if err != nil {
		return usageError{err}
	}
	to := c.String("output")
	if c.IsSet("rate") || c.IsSet("thin") || to == "-" {
		return usagef("trace: %s holds lengths and no arrivals; nothing can be replayed from it, but -o NAME writes them for workload.prompt and workload.output", path)
	}
	var written []lengthFile
	if to != "" {
		if written, err = writeLengths(to, s); err != nil {
			return err
		}
	}
	d := workload.DescribeLengths(s.Prompt.Samples, s.Output.Samples)
	if c.Bool("json") {
		return p.printJSON(lengthsView{"sharegpt", s.Skipped, s.Warnings, d})
	}
	if err := p.print(report.LengthsOnly(path, d, s.Warnings)); err != nil {
		return err
	}
	for _, f := range written {
		if _, err := fmt.Fprintf(p.stdout, "%s = { dist = \"empirical\", file = %q }\n", f.key, f.path); err != nil {
			return err
		}
	}
	return nil
}

// lengthFile is a file of lengths and the key of [workload] that it is for.
type lengthFile struct{ key, path string }

// writeLengths writes prompt and output lengths, one a line, to files whose names
// begin alike.
func writeLengths(to string, s *ingest.ShareGPT) ([]lengthFile, error) {
	stem := strings.TrimSuffix(to, filepath.Ext(to))
	files := []lengthFile{{"prompt", stem + ".prompt.csv"}, {"output", stem + ".output.csv"}}
	for i, lengths := range [][]int{s.Prompt.Samples, s.Output.Samples} {
		var b strings.Builder
		for _, n := range lengths {
			fmt.Fprintln(&b, n)
		}
		f, err := os.OpenFile(files[i].path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, usageError{fmt.Errorf("write lengths: %w", err)}
		}
		_, err = f.WriteString(b.String())
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("write lengths: %w", err)
		}
	}
	return files, nil
}

// lengthsView is the document of a file without arrivals.
type lengthsView struct {
	Format      string               `json:"format"`
	Skipped     int                  `json:"skipped"`
	Warnings    []string             `json:"warnings"`
	Description workload.Description `json:"lengths"`
}
