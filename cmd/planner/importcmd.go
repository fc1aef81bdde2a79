package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/ingest"
)

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "other tools' result files into a run folder that fit and report read",
		ArgsUsage: "FILE|FOLDER...",
		Description: "Example: planner import vllm-1.json vllm-2.json -o runs/vllm\n" +
			"         planner import artifacts/ -o runs/aiperf   # every result in it, once; what is not read is named\n" +
			"         planner fit runs/vllm --slo ttft.p99=500ms --rate 100 --gpus-per-instance 8\n" +
			"         planner import --list",
		Flags: append(shared("json"),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "run folder to write, which must not exist: -o runs/vllm"},
			&cli.BoolFlag{Name: "list", Usage: "list the formats that are read: --list"},
		),
		Action: p.importResults,
	}
}

func (p *program) importResults(c *cli.Context) error {
	if c.Bool("list") {
		columns := []report.Column{{Name: "format"}, {Name: "reads", Wrap: true}, {Name: "differs from what is measured here", Wrap: true, Extra: true}}
		formats := ingest.ResultFormats
		return p.answer(c, formats, tableOf(columns, formats, func(f ingest.ResultFormat) []string {
			return []string{f.Name, f.Reads, strings.Join(f.Notes, "; ")}
		}))
	}
	files := c.Args().Slice()
	if len(files) == 0 {
		return usagef("import: missing result files; 'planner import --list' says which are read")
	}
	if c.String("output") == "" {
		return usagef("import: missing the run folder to write: -o RUN")
	}
	all, err := ingest.ReadFiles(files)
	if err != nil {
		return usageError{err}
	}
	p.warn(c, all.Texts)
	folder, err := sweep.CreateFolder(c.String("output"), sweep.About{Command: "import", Args: c.Args().Slice(), Version: version, Started: time.Now()},
		map[string][]byte{sweep.ConfigFile: all.Note()})
	if err != nil {
		return usageError{err}
	}
	all.Folder = folder.Path
	doc := report.Imported(folder.Path, all.Points)
	if err := folder.WriteJournal(all.Points); err != nil {
		return err
	}
	r := &run{cfg: &config.Config{}, folder: &folder}
	if err := p.keep(c, r, sweep.Answer{State: sweep.Done, Value: all.Points}, doc, false); err != nil {
		return err
	}
	return p.answer(c, all, doc)
}
