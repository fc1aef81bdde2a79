// Package engine starts one serving engine with given knobs, says when it is
// ready and what it runs with, and stops all of it.
package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/endpoint"
	"planner/internal/list"
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
	// Options are what else is configured of the engine, by the names that templates
	// give it.
	Options map[string]string
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
	// Env is added to the environment of the engine, above planner's own.
	Env map[string]string
	// Endpoint is where an engine of kind attach listens, and what goes with each request
	// to any.
	endpoint.Endpoint
	// Chat sends the first request to /v1/chat/completions.
	Chat     bool
	Timeouts Timeouts
	// Hurry, if set, ends all grace when it is closed: engines are killed at once,
	// also those that were asked to end before.
	Hurry <-chan struct{}
	// LogBytes is how much of the log is kept, 64 MiB by default; of what is beyond
	// it the last 64 KiB are.
	LogBytes int64
	// Dir is where the log and configuration files of the engine are written.
	Dir string
	// Spread, if set, is how many nodes of the Slurm job that planner runs in an instance
	// lies on, and with how many GPUs on each.
	Spread func(gpu string, gpus int) (nodes, each int)
	// Launching, if set, is told of each command line before it runs.
	Launching func(Command)
}

// Timeouts bound what an engine may take. Zero means the default.
type Timeouts struct {
	// Ready bounds the time from the start to the first completion, 20 min by
	// default; Stall the time in which nothing is added to the log meanwhile, 10
	// min by default: compiling graphs is silent for minutes.
	Ready, Stall time.Duration
	// Probe bounds the first completion once the engine says that it is ready,
	// 2 min by default; Grace how long it may take to end by itself, 15 s.
	Probe, Grace time.Duration
}

func (t Timeouts) filled() Timeouts {
	return Timeouts{
		Ready: cmp.Or(t.Ready, 20*time.Minute), Stall: cmp.Or(t.Stall, 10*time.Minute),
		Probe: cmp.Or(t.Probe, 2*time.Minute), Grace: cmp.Or(t.Grace, 15*time.Second),
	}
}

// Within are the timeouts where an engine may take no longer than most until it answers.
func (t Timeouts) Within(most time.Duration) Timeouts {
	t = t.filled()
	t.Ready, t.Probe = min(t.Ready, most), min(t.Probe, most)
	return t
}

// Kinds lists the kinds of engines, in a fixed order.
func Kinds() []string {
	return list.Map(adapters, func(a adapter) string { return a.kind })
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
	// releases are those that all this follows.
	releases string
	// program is the engine's own, nil when it is not known. Its arguments are options
	// and then formats, those about what no knob says: formats of weights and KV cache and
	// [Settings].Options; content is a
	// configuration file that options name as {file}. All are templates as [expand]
	// reads them, of which a name that is in none is a knob that the engine lacks.
	program, env, options, formats, content []string
	// node is what its process on each node of several adds, as a shell of a step of Slurm
	// reads it; "" where that is not known.
	node string
	// derived are further figures that its templates name.
	derived func(measure.Knobs) map[string]int
	// kvCache says what it has instead of a KV cache in fp8.
	kvCache string
	// tokens: prompts may be token ids, which need no tokenizer.
	tokens bool
	// metrics are the names of its metrics, nil where any engine's are looked for.
	metrics metricNames
	// compiles is a part of the lines of its log that tell of a kernel compiled for a request.
	compiles string
	// stageEnds are parts of the lines of its log that end a stage of the start, logFacts the
	// patterns of those that hold a fact in their first group.
	stageEnds, logFacts map[string]string
	// told is what the running engine tells of itself, describe asks for what is told otherwise.
	told     []factPlace
	describe func(*query)
	// reset empties the prefix cache.
	reset func(*query) error
}

// known reports whether it is known what engine that is; a command or an attached
// server may be any.
func (a *adapter) known() bool { return a.program != nil }

// Support is what is known of a kind of engine.
type Support struct {
	Kind string `json:"kind"`
	// Releases are those that it is known of.
	Releases string `json:"versions"`
	// Program starts it: a program and the arguments that it always has; nil where
	// planner knows of none.
	Program []string `json:"program"`
	// Knobs are the names of those that it has an option for, Without of those that it
	// lacks; both are nil where that is up to the user's own command line.
	Knobs   []string `json:"knobs"`
	Without []string `json:"knobs_without_option"`
	// ExactPrompts says that it takes token ids as prompts, ResetsCache that its prefix
	// cache can be emptied, and Metrics that it tells of itself while it serves.
	ExactPrompts bool `json:"exact_prompts"`
	ResetsCache  bool `json:"resets_prefix_cache"`
	Metrics      bool `json:"metrics"`
}

// Supported lists the kinds of engines with what is known of each, in the order of
// [Kinds].
func Supported() []Support { return list.Map(adapters, adapter.support) }

func (a adapter) support() Support {
	s := Support{Kind: a.kind, Releases: a.releases, Program: a.program, ExactPrompts: a.tokens, ResetsCache: a.reset != nil,
		Metrics: a.metrics != nil}
	for _, n := range measure.KnobTable {
		switch {
		case n.Name == "gpu" || n.Format || !a.known(): // a GPU is where it runs, and no option
		case a.mentions(n.Name) || n.Worded():
			s.Knobs = append(s.Knobs, n.Name)
		default:
			s.Without = append(s.Without, n.Name)
		}
	}
	return s
}

// SeriesNames are what the page of metrics of a kind of engine calls what operators watch; ""
// for what it does not tell.
type SeriesNames struct {
	Running, Waiting, KVUsage, Preemptions string
	// Latencies are histograms of seconds a request, without their endings.
	Latencies map[measure.Metric]string
	// Model is the label that holds the name of the model in requests.
	Model string
}

// SeriesOf are the series of a kind of engine; empty where it has no such page.
func SeriesOf(kind string) SeriesNames {
	a, err := adapterOf(kind)
	if err != nil || a.metrics == nil {
		return SeriesNames{}
	}
	first := func(metric int) string { return append(a.metrics[metric], "")[0] }
	histogram := func(metric int) string { return strings.TrimSuffix(first(metric), "_sum") }
	s := SeriesNames{Running: first(runningRequests), Waiting: first(waitingRequests), KVUsage: first(kvUsage), Preemptions: first(preemptions),
		Latencies: map[measure.Metric]string{measure.TTFT: histogram(ttftSum), measure.TPOT: histogram(tpotSum), measure.E2E: histogram(e2eSum)}}
	if s.Latencies[measure.TTFT] != "" {
		s.Model = "model_name" // of those that tell latencies all have this label
	}
	return s
}

// LoadsFile reports whether a kind of engine is told what to load by the path of a
// file, GGUF, and not by the name of a model or its folder.
func LoadsFile(kind string) bool { return kind == llamaServer.kind }
