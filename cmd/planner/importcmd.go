package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/ingest"
	"planner/sweep/measure"
)

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "other tools' result files into a run folder that fit and report read",
		ArgsUsage: "FILE...",
		Description: "Example: planner import vllm-1.json vllm-2.json -o runs/vllm\n" +
			"         planner fit runs/vllm --slo ttft.p99=500ms --rate 100 --gpus-per-instance 8\n" +
			"         planner import --list",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "run folder to write, which must not exist: -o runs/vllm"},
			&cli.BoolFlag{Name: "list", Usage: "list the formats that are read: --list"},
			jsonFlag(),
		},
		Action: p.importResults,
	}
}

func (p *program) importResults(c *cli.Context) error {
	if c.Bool("list") {
		return p.listing(c, formatRows(), formatTable())
	}
	files := c.Args().Slice()
	if len(files) == 0 {
		return usagef("import: missing result files; 'planner import --list' says which are read")
	}
	if c.String("output") == "" {
		return usagef("import: missing the run folder to write: -o RUN")
	}
	points, err := importFiles(files)
	if err != nil {
		return usageError{err}
	}
	if !c.Bool("quiet") {
		for _, w := range points.warnings {
			fmt.Fprintln(p.stderr, "planner: warning:", w)
		}
	}
	folder, err := sweep.CreateFolder(c.String("output"), about(c, "import"), points.note())
	if err != nil {
		return usageError{err}
	}
	if err := points.write(&folder); err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(importJSON{folder.Path, points.sources, points.trials, append([]string{}, points.warnings...)})
	}
	return p.print(report.Imported(folder.Path, points.trials))
}

// importJSON is the document of `import --json`.
type importJSON struct {
	Folder   string                `json:"folder"`
	Sources  []importSource        `json:"sources"`
	Points   []measure.Measurement `json:"points"`
	Warnings []string              `json:"warnings"`
}

// importSource is a file that was read.
type importSource struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Points int    `json:"points"`
}

// imported are the load points of all files.
type imported struct {
	sources  []importSource
	trials   []measure.Measurement
	warnings []string
}

// importFiles reads result files. Every load point carries what its format means
// by its figures as warnings, so that they stay with it.
func importFiles(files []string) (*imported, error) {
	all := &imported{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r, err := ingest.Read(file, data)
		if err != nil {
			return nil, err
		}
		all.sources = append(all.sources, importSource{file, r.Format, len(r.Measurements)})
		for _, w := range r.Warnings {
			all.warnings = append(all.warnings, fmt.Sprintf("%s (%s): %s", file, r.Format, w))
		}
		for _, m := range r.Measurements {
			m.Trial.Number = len(all.trials) + 1
			m.Trial.Why = fmt.Sprintf("imported from %s (%s)", filepath.Base(file), r.Format)
			m.Warnings = append(slices.Clone(m.Warnings), r.Warnings...)
			all.trials = append(all.trials, m)
		}
	}
	if open, closed := loops(all.trials); open > 0 && closed > 0 {
		all.warnings = append(all.warnings, fmt.Sprintf("%d load points are of an open and %d of a closed loop: they are not on one curve", open, closed))
	}
	return all, nil
}

// loops counts the load points of open and of closed loops.
func loops(trials []measure.Measurement) (open, closed int) {
	for i := range trials {
		if trials[i].Trial.Closed() {
			closed++
		} else {
			open++
		}
	}
	return open, closed
}

// note is the configuration of an imported run: nothing is known of it but where
// it came from.
func (all *imported) note() []byte {
	var b strings.Builder
	b.WriteString("# Imported results. What served them is not known here.\n")
	for _, s := range all.sources {
		fmt.Fprintf(&b, "# %q: %d load points, %s\n", s.File, s.Points, s.Format)
	}
	return []byte(b.String())
}

// write puts the load points into the journal of a run, and their report beside it.
func (all *imported) write(folder *sweep.Folder) error {
	j, err := openJournal(folder)
	if err != nil {
		return err
	}
	defer j.Close()
	for _, m := range all.trials {
		if err := j.Add(m); err != nil {
			return err
		}
	}
	return writeReport(*folder, report.Imported(folder.Path, all.trials))
}

// formatRow is a format in JSON.
type formatRow struct {
	Name  string   `json:"name"`
	Reads string   `json:"reads"`
	Notes []string `json:"notes"`
}

func formatRows() []formatRow {
	var rows []formatRow
	for _, f := range ingest.ResultFormats() {
		rows = append(rows, formatRow{f.Name, f.Reads, append([]string{}, f.Notes...)})
	}
	return rows
}

func formatTable() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "format"}, {Name: "reads", Wrap: true}, {Name: "differs from what is measured here", Wrap: true, Extra: true}}}
	for _, f := range formatRows() {
		t.Rows = append(t.Rows, cells(f.Name, f.Reads, strings.Join(f.Notes, "; ")))
	}
	return t
}
