package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/input"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/ingest"
	"planner/sweep/workload"
)

func (p *program) traceCommand() *cli.Command {
	return &cli.Command{
		Name:      "trace",
		Usage:     "describe a traffic trace, or turn a request log into one that holds no text",
		ArgsUsage: "FILE",
		Description: "Example: planner trace AzureLLMInferenceTrace_conv.csv\n" +
			"         planner trace gateway.jsonl -o trace.csv \\\n" +
			"           --map arrival=ts,prompt=usage.prompt_tokens,output=usage.completion_tokens\n" +
			"         planner trace mooncake.jsonl --spread --thin 0.1 --rate 8 -o small.csv\n" +
			"Formats:\n" + formatLines() +
			"Any other CSV or lines of JSON are read by --map NAME=KEY,..., where KEY is a column or a key, with dots between the keys of nested\n" +
			"objects, and NAME is\n" +
			"  arrival    or, where the log has no arrivals, end and duration; KEY:s, :ms, :us or :ns for numbers, KEY alone for dates\n" +
			"  prompt     and output, in tokens; KEY+KEY adds, KEY:text estimates them from text\n" +
			"  error      to leave out what failed: a status of HTTP of 400 and above, or anything under the key of an error\n" +
			"  prefix     and prefix_tokens, for a beginning that others share; blocks, for hashes of blocks, as in blocks=hash_ids:512",
		Flags: append(shared("json"),
			&cli.StringFlag{Name: "format", Usage: "format of the file, where it is not to be found out: --format mooncake"},
			&cli.StringFlag{Name: "map", Usage: "where the file has what, if its format is not known: --map arrival=ts:ms,prompt=in,output=out"},
			&cli.BoolFlag{Name: "spread", Usage: "draw arrivals that a coarse clock put into one tick uniformly within it: --spread"},
			&cli.StringFlag{Name: "longest", Usage: "leave out requests of more tokens, prompt and output together: --longest 40960"},
			&cli.StringFlag{Name: "thin", Usage: "keep each request with this probability: --thin 0.1"},
			&cli.StringFlag{Name: "rate", Usage: "stretch or shrink the clock to this mean rate in requests/s, after thinning: --rate 8"},
			&cli.StringFlag{Name: "seed", Value: "1", Usage: "seed of --spread and --thin: --seed 7"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the trace as CSV without text, - for standard output: -o trace.csv"},
		),
		Action: p.trace,
	}
}

func formatLines() string {
	var b strings.Builder
	for _, f := range ingest.TraceFormats {
		fmt.Fprintf(&b, "  %-9s %s\n", f.Name, f.Reads)
	}
	return b.String() + "  ShareGPT  a JSON array of conversations: lengths alone, estimated; -o writes them for workload.prompt and workload.output\n"
}

func (p *program) trace(c *cli.Context) error {
	path, err := onePositional(c, "trace")
	if err != nil {
		return err
	}
	flags := flagsOf(c)
	longest, seed := ifGiven(flags, "longest", flags.count), flags.seed()
	share, rate := cmp.Or(ifGiven(flags, "thin", flags.positive), 1), ifGiven(flags, "rate", flags.positive)
	switch {
	case flags.err != nil:
		return flags.err
	case share > 1:
		return usagef("--thin: %q is not a share above 0 and up to 1", c.String("thin"))
	}
	if c.IsSet("format") && c.IsSet("map") {
		return usagef("trace: --format names a known format and --map describes another: want one of the two")
	}
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	unpacked, err := input.Unpack(f)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	in := bufio.NewReader(unpacked)
	if isArray(in) {
		return p.traceLengths(c, path, in)
	}
	t, err := ingest.ReadTrace(path, in, ingest.TraceOptions{Format: c.String("format"), Map: c.String("map"), Spread: c.Bool("spread"), Seed: seed})
	if err != nil {
		return usageError{err}
	}
	if longest > 0 {
		t.UpTo(longest)
	}
	if t.Thin(share, seed); len(t.Rows) == 0 {
		return usagef("trace: no request of %s is left", path)
	}
	if rate > 0 {
		t.AtRate(rate)
	}
	return p.traceOutput(c, path, t)
}

// isArray reports whether a file begins like a JSON array, as ShareGPT's do.
func isArray(in *bufio.Reader) bool {
	head, _ := in.Peek(512)
	return bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))), []byte("["))
}

// traceOutput writes a trace to the requested output, and describes it unless that is standard output.
func (p *program) traceOutput(c *cli.Context, from string, t *ingest.Trace) error {
	switch to := c.String("output"); to {
	case "":
	case "-":
		p.warn(c, t.Warnings.Texts)
		return ingest.WriteTraceCSV(p.stdout, t.Rows)
	default:
		a, errA := os.Stat(from)
		b, errB := os.Stat(to)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return usagef("trace: %s is the file that is read", to)
		}
		folder := sweep.Folder{Path: filepath.Dir(to)}
		if err := folder.WriteFrom(filepath.Base(to), func(w io.Writer) error { return ingest.WriteTraceCSV(w, t.Rows) }); err != nil {
			return err
		}
	}
	t.Traffic = workload.Describe(t.Rows)
	return p.answer(c, t, report.Trace(t))
}

// traceLengths describes a file with lengths but no arrivals, and writes the lengths if requested.
func (p *program) traceLengths(c *cli.Context, path string, in io.Reader) error {
	s, err := ingest.ReadShareGPT(path, in)
	if err != nil {
		return usageError{err}
	}
	lengths := path + " holds lengths and no arrivals; nothing can be replayed from it, but -o NAME writes them for workload.prompt and workload.output"
	if err := refuse(c, "has no effect: "+lengths, "rate", "thin", "longest", "map", "format", "spread", "seed"); err != nil {
		return err
	}
	to := c.String("output")
	if to == "-" {
		return usagef("trace: %s", lengths)
	}
	keys := ""
	if to != "" {
		prompts, outputs, err := s.WriteLengths(to)
		if err != nil {
			return usageError{err}
		}
		keys = fmt.Sprintf("prompt = { dist = \"empirical\", file = %q }\noutput = { dist = \"empirical\", file = %q }\n", prompts, outputs)
	}
	if err := p.answer(c, s, report.LengthsOnly(path, s.Description, s.Warnings.Notes)); err != nil || c.Bool("json") {
		return err
	}
	_, err = io.WriteString(p.stdout, keys)
	return err
}
