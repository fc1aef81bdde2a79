// Package engine starts one serving engine with given knobs, says when it is
// ready and what it runs with, and stops all of it.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/sweep/measure"
)

// Settings say how to start or reach an engine of one kind, whatever its knobs.
type Settings struct {
	// Kind is vllm, sglang, trtllm, tgi, llama-server, lmdeploy, command or
	// attach.
	Kind string
	// Model is what the engine is told to load: a path or a hub id.
	Model string
	// Format is what numbers the model is served in.
	Format Format
	// ServedName is the model's name in requests; "" means the first that the
	// server lists.
	ServedName string
	// Program replaces the engine's program, as a path or a name on PATH; more
	// words come ahead of the arguments.
	Program []string
	// Argv is the argument list of kind command; {port}, {model} and the
	// names of the knobs in braces are filled in.
	Argv []string
	// ExtraArgs stand behind the engine's own arguments.
	ExtraArgs []string
	// URL is where an engine of kind attach listens.
	URL string
	// Env is added to the environment of the engine, above planner's own.
	Env map[string]string
	// Headers and the key in the environment variable APIKeyEnv go with every
	// request.
	Headers   map[string]string
	APIKeyEnv string
	// Chat sends the first request to /v1/chat/completions.
	Chat   bool
	Limits Limits
	// Dir is where the log and configuration files of the engine are written.
	Dir string
	// Launching, if set, is told of each command line before it runs.
	Launching func(Command)
}

// Limits bound what an engine may take. A zero limit means its default.
type Limits struct {
	// Ready bounds the time from the start to the first completion, 20 min by
	// default; Stall the time in which nothing is added to the log meanwhile, 10
	// min by default: compiling graphs is silent for minutes.
	Ready, Stall time.Duration
	// Probe bounds the first completion once the engine says that it is ready,
	// 2 min by default.
	Probe time.Duration
	// Grace is how long an engine may take to end by itself, 15 s by default.
	Grace time.Duration
	// Hurry, if set, ends all grace when it is closed: engines are killed at once,
	// also those that were asked to end before.
	Hurry <-chan struct{}
	// Log is how many bytes of the log are kept, 64 MiB by default; of what is
	// beyond it the last 64 KiB are.
	Log int64
}

func (l Limits) filled() Limits {
	or := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	or(&l.Ready, 20*time.Minute)
	or(&l.Stall, 10*time.Minute)
	or(&l.Probe, 2*time.Minute)
	or(&l.Grace, 15*time.Second)
	if l.Log <= 0 {
		l.Log = 64 << 20
	}
	return l
}

// Kinds lists the kinds of engines, in a fixed order.
func Kinds() []string {
	out := make([]string, len(adapters))
	for i, a := range adapters {
		out[i] = a.kind
	}
	return out
}

// adapters is the table of what is known of each kind of engine.
var adapters = []adapter{vllm, sglang, trtllm, tgi, llamaServer, lmdeploy, command, attach}

func adapterOf(kind string) (*adapter, error) {
	i := slices.IndexFunc(adapters, func(a adapter) bool { return a.kind == kind })
	if i < 0 {
		return nil, fmt.Errorf("engine: unknown kind %q, known are %s", kind, strings.Join(Kinds(), ", "))
	}
	return &adapters[i], nil
}

// adapter is what is known of one kind of engine. What is not set the engine
// does not have.
type adapter struct {
	kind string
	// program is the engine's own, and arguments completes its command line;
	// nil when nothing is started.
	program   []string
	arguments func(*draft)
	// stored completes the arguments with the formats of weights and KV cache.
	stored func(*draft)
	env    []string
	// health is the path that answers 200 once the engine is ready.
	health string
	// tokens: prompts may be token ids, which need no tokenizer.
	tokens bool
	scrape scrape
	// marks are the log lines that end a stage of the start, notes the ones that
	// hold facts.
	marks []mark
	notes []note
	// describe asks the running engine for facts.
	describe func(*question)
	// reset empties the prefix cache.
	reset func(*question) error
}

// Command is what is run for one set of knobs.
type Command struct {
	// Args is the argument list, the program first.
	Args []string
	// Env is what is added to planner's own environment, as KEY=VALUE.
	Env []string
	// File is a configuration file that is written first; its Path is "" when
	// there is none.
	File File
	// Without names the settings that this engine has no option for and that are
	// therefore not applied; in brackets what holds, or is to be done, instead.
	Without []string
}

// File is a file that an engine reads its options from.
type File struct{ Path, Content string }

// Command is the command line for a set of knobs, with the engine listening on
// port. Kind attach has none.
func (s *Settings) Command(k measure.Knobs, port int) (Command, error) {
	a, err := adapterOf(s.Kind)
	if err != nil {
		return Command{}, err
	}
	if a.arguments == nil {
		return Command{}, fmt.Errorf("engine: kind %s is not started by planner", s.Kind)
	}
	d := &draft{settings: s, knobs: k, port: port}
	d.args = append(d.args, a.program...)
	if len(s.Program) > 0 {
		d.args = slices.Clone(s.Program)
	}
	d.env = slices.Clone(a.env)
	a.arguments(d)
	if a.stored != nil {
		a.stored(d)
	}
	if d.err != nil {
		return Command{}, fmt.Errorf("engine: command line of %s: %w", s.Kind, d.err)
	}
	d.args = append(d.args, s.ExtraArgs...)
	for name, value := range s.Env {
		d.env = append(d.env, name+"="+value)
	}
	slices.Sort(d.env)
	return Command{Args: d.args, Env: d.env, File: d.file, Without: d.without}, nil
}
