package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/sweep/workload"
)

// A shortcut is a flag that sets one configuration key.
type shortcut struct {
	flag, key, usage string
	// many allows repeating the flag; the values form a list.
	many bool
}

// shortcuts are the flags with which `estimate` needs no file.
var shortcuts = []shortcut{
	{"model", "model.name", "model, a catalog name or Hugging Face id: --model llama-3.1-70b", false},
	{"model-config", "model.config", "path to a Hugging Face config.json instead of a catalog name: --model-config ./config.json", false},
	{"weights", "model.weights", "format of the weights: --weights fp8", false},
	{"kv-cache", "model.kv_cache", "format of the KV cache: --kv-cache fp8", false},
	{"gpu", "hardware.gpu", "GPU, repeat to compare: --gpu \"H100 SXM\" --gpu \"H200 SXM\"", true},
	{"price", "hardware.price_per_gpu_hour", "US dollars per GPU and hour: --price 2.99", false},
	{"tp", "engine.tensor_parallel", "tensor-parallel degree, repeat to compare: --tp 4 --tp 8", true},
	{"engine-version", "engine.version", "release of vLLM to simulate: --engine-version 0.15.1", false},
	{"workload", "workload.class", classUsage(), false},
	{"rate", "demand.rate", "peak requests per second of the whole fleet: --rate 100", false},
	{"growth", "demand.growth", "expected growth until the fleet is in place: --growth 0.3", false},
	{"headroom", "demand.headroom", "share above the planned rate: --headroom 0.2", false},
	{"spare", "demand.spare_instances", "instances on top (N+1): --spare 1", false},
	seedShortcut,
}

func classUsage() string {
	classes := list.Map(workloadRows(), func(s workload.Shape) string {
		return fmt.Sprintf("%s %.0f and %.0f", s.Name, s.Prompt.Median, s.Output.Median)
	})
	return "traffic class, with prompt and answer tokens in the median: " + strings.Join(classes, ", ") + ": --workload chat"
}

// benchShortcuts are the flags of bench that set configuration keys.
var benchShortcuts = []shortcut{
	urlShortcut,
	{"model", "engine.served_name", "name that the server knows, sent as it stands (default: the first of its list): --model meta-llama/Llama-3.1-8B", false},
	{"api", "engine.api", "completions or chat: --api chat", false},
	{"workload", "workload.class", classUsage(), false},
	seedShortcut,
}

var (
	urlShortcut  = shortcut{"url", "engine.url", "address of the server: --url http://127.0.0.1:8000", false}
	seedShortcut = shortcut{"seed", "workload.seed", "seed of every draw: --seed 7", false}
)

const certifyUsage = "then test the safe rate on requests of its own, without any curve; the exit code is 4 if it is not certified"

// shortcutsAmong returns the shortcuts among flags, not those of the same name with another usage.
func shortcutsAmong(flags []cli.Flag) (found []shortcut) {
	for _, s := range slices.Concat(shortcuts, benchShortcuts, []shortcut{{"certify", "search.certify", certifyUsage, false}}) {
		if slices.ContainsFunc(flags, func(f cli.Flag) bool {
			return f.Names()[0] == s.flag && f.(cli.DocGenerationFlag).GetUsage() == s.usage
		}) && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

func declared(shortcuts []shortcut) []cli.Flag {
	return list.Map(shortcuts, func(s shortcut) cli.Flag {
		if s.many {
			return &cli.StringSliceFlag{Name: s.flag, Usage: s.usage}
		}
		return &cli.StringFlag{Name: s.flag, Usage: s.usage}
	})
}

// listLiteral formats the values of a repeated flag as TOML: a list of strings or numbers, or a single value as
// is.
func listLiteral(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		if quoted[i] = v; strings.Trim(v, "0123456789") != "" {
			quoted[i] = strconv.Quote(v)
		}
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// shared returns the flags with these names, which several commands have.
func shared(names ...string) []cli.Flag {
	all := []cli.Flag{
		&cli.StringSliceFlag{Name: "slo", Usage: "limit on a latency, or several at once as goodput, repeatable: --slo ttft.p99=500ms --slo goodput.share=0.95 --slo goodput.tpot=50ms"},
		&cli.StringSliceFlag{Name: "set", Usage: "override a key of the configuration, repeatable: --set search.precision=0.05"},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON document on standard output and nothing else there"},
		&cli.StringFlag{Name: "catalog", Usage: "file with your own GPUs and models, added to the built-in ones: --catalog our.toml"},
		&cli.BoolFlag{Name: "print-config", Usage: "print the configuration with every default and end"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would run, command lines included, and end"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write a run folder of this name: -o runs/first"},
		&cli.BoolFlag{Name: "certify", Usage: certifyUsage},
		&cli.BoolFlag{Name: "records", Usage: "write the records of every simulated trial into the run folder"},
		&cli.StringFlag{Name: "dialect", Usage: "request fields of vllm, sglang, trtllm, tgi, llama-server, lmdeploy or simulated (default: of what the server says it is), or generic for the plain OpenAI ones: --dialect vllm"},
		&cli.StringFlag{Name: "name", Usage: "of all objects (default: the model's): --name chat"},
	}
	return list.Map(names, func(name string) cli.Flag {
		return all[slices.IndexFunc(all, func(f cli.Flag) bool { return f.Names()[0] == name })]
	})
}

func configFlags() []cli.Flag { return shared("set", "json", "catalog", "print-config", "dry-run") }

// overrides collects the configuration overrides of the command line: shortcuts, then --slo, then --set, so
// that --set takes precedence.
func overrides(c *cli.Context) ([]config.Override, error) {
	var out []config.Override
	if c.IsSet("url") {
		out = append(out, config.Override{Flag: "--url", Key: "engine.kind", Value: "attach"})
	}
	for _, s := range shortcutsAmong(c.Command.Flags) {
		values := []string{c.String(s.flag)}
		if s.many {
			values = c.StringSlice(s.flag)
		}
		if c.IsSet(s.flag) {
			out = append(out, config.Override{Flag: "--" + s.flag, Key: s.key, Value: listLiteral(values)})
		}
	}
	given := map[string]string{}
	for _, bound := range c.StringSlice("slo") {
		key, value, ok := strings.Cut(bound, "=")
		if !ok {
			return nil, usagef("--slo %s: want latency.statistic=limit, such as ttft.p99=500ms", bound)
		}
		same := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(key), `"`, ""), "p99.9", "p999")
		if earlier, twice := given[same]; twice {
			return nil, usagef("--slo %s: the limit on %s is given twice, first as %s; want it once", bound, key, earlier)
		}
		given[same] = bound
		out = append(out, config.Override{Flag: "--slo", Key: "slo." + key, Value: value})
	}
	for _, set := range c.StringSlice("set") {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, usagef("--set %s: want section.key=value, such as demand.rate=100", set)
		}
		out = append(out, config.Override{Key: key, Value: value})
	}
	return out, nil
}

// refuse refuses flags that would have no effect, with the reason.
func refuse(c *cli.Context, reason string, flags ...string) error {
	if i := slices.IndexFunc(flags, c.IsSet); i >= 0 {
		return usagef("%s: --%s %s", c.Command.Name, flags[i], reason)
	}
	return nil
}

func without(flags []cli.Flag, names ...string) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool { return slices.Contains(names, f.Names()[0]) })
}

// instanceFlags are the shortcuts of commands without a fleet.
func instanceFlags() []cli.Flag {
	return without(declared(shortcuts), "rate", "growth", "headroom", "spare")
}

// flagReader reads a command's flags from their text by name, and keeps the first error.
type flagReader struct {
	values map[string]string
	err    error
}

func flagsOf(c *cli.Context) *flagReader { return &flagReader{values: given(c, c.Command.Flags)} }

func (r *run) flags() *flagReader { return &flagReader{values: r.cfg.Run.Flags} }

func (f *flagReader) is(name string) bool { return f.values[name] != "" }

// ifGiven reads an optional flag, whose default is the zero value.
func ifGiven[T any](f *flagReader, name string, read func(string) T) (x T) {
	if f.is(name) {
		x = read(name)
	}
	return x
}

// value parses a flag, and refuses values that are not wanted.
func value[T any](f *flagReader, name, want string, parse func(string) (T, error), wanted func(T) bool) T {
	x, err := parse(f.values[name])
	if err != nil || !wanted(x) {
		f.err = cmp.Or(f.err, usagef("--%s: %q is not %s", name, f.values[name], want))
	}
	return x
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// parseShare parses a number, optionally in percent.
func parseShare(text string) (float64, error) {
	text, percent := strings.CutSuffix(text, "%")
	x, err := parseNumber(strings.TrimSpace(text))
	if percent {
		x /= 100
	}
	return x, err
}

func (f *flagReader) positive(name string) float64 {
	return value(f, name, "a number above 0", parseNumber, func(x float64) bool { return x > 0 && !math.IsInf(x, 0) })
}

func (f *flagReader) share(name string) float64 {
	want := "a share between 0 and 1, nor between 0 and 100 %"
	if x, err := parseNumber(f.values[name]); err == nil && x >= 1 && x < 100 {
		want += "; is " + f.values[name] + "% meant?"
	}
	return value(f, name, want, parseShare, func(x float64) bool { return x > 0 && x < 1 })
}

func (f *flagReader) count(name string) int {
	return value(f, name, "a whole number above 0", strconv.Atoi, func(n int) bool { return n > 0 })
}

func (f *flagReader) seed() uint64 {
	parse := func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }
	return value(f, "seed", "a whole number of at least 0", parse, func(uint64) bool { return true })
}

func (f *flagReader) duration(name string, unset time.Duration, zero bool) time.Duration {
	if !f.is(name) {
		return unset
	}
	return value(f, name, "a duration above 0 with its unit, such as 90s or 5m", time.ParseDuration,
		func(d time.Duration) bool { return d > 0 || d == 0 && zero })
}

// permute moves flags after the command's name and before positional arguments, so that they may stand
// anywhere: the library's parser stops at the first positional argument. Everything after "--" stays
// positional.
func permute(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	if args[1] == "help" {
		// "help fit" is "fit --help".
		args = append(append([]string{args[0]}, args[2:]...), "--help")
	}
	var command string
	var flags, positional []string
	known := app.Flags
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			positional = append(positional, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(arg, "-") && arg != "-":
			flags = append(flags, arg)
			name := strings.TrimLeft(arg, "-")
			if !strings.Contains(name, "=") && takesValue(known, name) && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		case command == "":
			command = arg
			if c := app.Command(arg); c != nil {
				known = c.Flags
			}
		default:
			positional = append(positional, arg)
		}
	}
	if command == "" {
		return args
	}
	out := append([]string{args[0], command}, flags...)
	// The library would take an argument after --help for a command.
	if len(positional) > 0 && !slices.Contains(flags, "--help") && !slices.Contains(flags, "-h") {
		out = append(append(out, "--"), positional...)
	}
	return out
}

// takesValue reports whether the named flag takes a value in the next argument.
func takesValue(flags []cli.Flag, name string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		_, isBool := f.(*cli.BoolFlag)
		return !isBool && slices.Contains(f.Names(), name)
	})
}
