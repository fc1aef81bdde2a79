package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/sweep/ingest"
	"planner/sweep/workload"
)

func (p *program) traceCommand() *cli.Command {
	return &cli.Command{
		Name:      "trace",
		Usage:     "describe a traffic trace, or turn a request log into one that holds no text",
		ArgsUsage: "FILE",
		Description: "Example: planner trace AzureLLMInferenceTrace_conv.csv\n" +
			"         planner trace gateway.jsonl -o trace.csv\n" +
			"         planner trace mooncake.jsonl --spread --thin 0.1 --rate 8 -o small.csv\n" +
			"Formats:\n" + formatLines(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "format of the file, where it is not to be found out: --format mooncake"},
			&cli.BoolFlag{Name: "spread", Usage: "draw arrivals that a coarse clock put into one tick uniformly within it: --spread"},
			&cli.StringFlag{Name: "unit", Usage: "unit of bare numbers in a gateway's log, s, ms, us or ns: --unit ms"},
			&cli.StringFlag{Name: "time-is", Value: "start", Usage: "what a gateway's log times, the start of a request or its end: --time-is end"},
			&cli.StringFlag{Name: "thin", Usage: "keep each request with this probability: --thin 0.1"},
			&cli.StringFlag{Name: "rate", Usage: "stretch or shrink the clock to this mean rate in requests/s, after thinning: --rate 8"},
			&cli.StringFlag{Name: "seed", Value: "1", Usage: "seed of --spread and --thin: --seed 7"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the trace as CSV without text, - for standard output: -o trace.csv"},
			jsonFlag(),
		},
		Action: p.trace,
	}
}

// formatLines lists the formats of traces for the help.
func formatLines() string {
	var b strings.Builder
	for _, f := range ingest.TraceFormats() {
		fmt.Fprintf(&b, "  %-9s %s\n", f.Name, f.Reads)
	}
	return b.String() + "  ShareGPT  a JSON array of conversations: lengths alone, estimated; -o writes them for workload.prompt and workload.output\n"
}

func (p *program) trace(c *cli.Context) error {
	path, err := onePositional(c, "trace")
	if err != nil {
		return err
	}
	change, o, err := traceFlags(c)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if isArray(in) {
		return p.traceLengths(c, path, in)
	}
	t, err := ingest.ReadTrace(path, in, o)
	if err != nil {
		return usageError{hintFlags(err)}
	}
	out := report.Traffic{Format: t.Format, Tick: t.Tick, Spread: t.Spread, Skipped: t.Skipped, Estimated: t.Estimated, Warnings: t.Warnings}
	rows, changed := change.apply(t.Rows)
	if len(rows) == 0 {
		return usagef("trace: no request is left at --thin %g", change.thin)
	}
	out.Description, out.Changed = workload.Describe(rows), changed
	toStdout, err := writeTrace(c.String("output"), path, rows, p.stdout)
	if err != nil || toStdout {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(traceView(out))
	}
	return p.print(report.Trace(out))
}

// isArray reports whether a file begins as a JSON array, as ShareGPT's do.
func isArray(in *bufio.Reader) bool {
	head, _ := in.Peek(512)
	return bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))), []byte("["))
}

// traceChange is what is done to a trace.
type traceChange struct {
	// thin is the share that is kept, 0 and 1 for all; rate the new mean rate, 0
	// for the trace's own.
	thin, rate float64
	seed       uint64
}

// apply thins and scales, and says so.
func (t traceChange) apply(rows []workload.TraceRow) (changed []workload.TraceRow, how []string) {
	if t.thin > 0 && t.thin < 1 {
		before := len(rows)
		rows = workload.Thin(rows, t.thin, t.seed)
		how = append(how, fmt.Sprintf("thinned to %g of the requests, %d of %d (seed %d)", t.thin, len(rows), before, t.seed))
	}
	if t.rate > 0 {
		before := workload.Describe(rows).Rate
		rows = workload.AtRate(rows, t.rate)
		how = append(how, fmt.Sprintf("clock scaled from %.4g to %g requests/s", before, t.rate))
	}
	return rows, how
}

// traceFlags reads what the command line says of reading and changing.
func traceFlags(c *cli.Context) (traceChange, ingest.TraceOptions, error) {
	var t traceChange
	o := ingest.TraceOptions{Format: c.String("format"), Spread: c.Bool("spread"), AtEnd: c.String("time-is") == "end"}
	var err error
	if t.seed, err = strconv.ParseUint(c.String("seed"), 10, 64); err != nil {
		return t, o, usagef("--seed: %q is not a whole number of at least 0", c.String("seed"))
	}
	o.Seed = t.seed
	if is := c.String("time-is"); is != "start" && is != "end" {
		return t, o, usagef("--time-is: %q is neither start nor end", is)
	}
	if c.IsSet("unit") {
		if o.Unit, err = time.ParseDuration("1" + c.String("unit")); err != nil || o.Unit > time.Second {
			return t, o, usagef("--unit: %q is none of s, ms, us, ns", c.String("unit"))
		}
	}
	if c.IsSet("thin") {
		if t.thin, err = positiveFlag(c, "thin"); err != nil || t.thin > 1 {
			return t, o, usagef("--thin: %q is not a share above 0 and up to 1", c.String("thin"))
		}
	}
	if c.IsSet("rate") {
		t.rate, err = positiveFlag(c, "rate")
	}
	return t, o, err
}

// hintFlags names the flag that answers a question of the reader.
func hintFlags(err error) error {
	var problem *ingest.FileError
	if !errors.As(err, &problem) {
		return err
	}
	switch {
	case strings.Contains(problem.What, "name the unit"):
		return fmt.Errorf("%w: --unit s or --unit ms", err)
	case strings.Contains(problem.What, "name the format"):
		return fmt.Errorf("%w: --format guidellm or --format mooncake", err)
	}
	return err
}

// writeTrace writes rows where the user asks for them, "" for nowhere.
func writeTrace(to, from string, rows []workload.TraceRow, stdout io.Writer) (toStdout bool, err error) {
	switch to {
	case "":
		return false, nil
	case "-":
		return true, ingest.WriteTraceCSV(stdout, rows)
	}
	a, errA := os.Stat(from)
	b, errB := os.Stat(to)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return false, usagef("trace: %s is the file that is read", to)
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".trace-")
	if err != nil {
		return false, fmt.Errorf("write %s: %w", to, err)
	}
	defer os.Remove(f.Name())
	err = errors.Join(ingest.WriteTraceCSV(f, rows), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return false, fmt.Errorf("write %s: %w", to, err)
	}
	return false, nil
}

// traceJSON is the document of `trace --json`.
type traceJSON struct {
	Format      string               `json:"format"`
	Tick        *float64             `json:"tick_s"`
	Spread      bool                 `json:"spread"`
	Skipped     int                  `json:"skipped"`
	Estimated   int                  `json:"estimated"`
	Changed     []string             `json:"changed"`
	Warnings    []string             `json:"warnings"`
	Description workload.Description `json:"traffic"`
}

func traceView(t report.Traffic) traceJSON {
	v := traceJSON{Format: t.Format, Spread: t.Spread, Skipped: t.Skipped, Estimated: t.Estimated, Description: t.Description,
		Changed: append([]string{}, t.Changed...), Warnings: append([]string{}, t.Warnings...)}
	if t.Tick > 0 {
		s := math.Round(t.Tick.Seconds()*1e9) / 1e9
		v.Tick = &s
	}
	return v
}
