// Package engine starts one serving engine with given knobs, reports when it is ready and what it
// runs with, and stops it with all that it started.
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
	// Format says in which number formats the model is served.
	Format Format
	// Options are further settings of the engine, by the names that templates use for them.
	Options map[string]string
	// ServedName is the model's name in requests; "" means the first that the server lists.
	ServedName string
	// Program replaces the engine's program: a path or a name on PATH, and any words that precede
	// the arguments.
	Program []string
	// Argv is the argument list of kind command; {port}, {model} and the
	// names of the knobs in braces are filled in.
	Argv []string
	// ExtraArgs follow the engine's own arguments.
	ExtraArgs []string
	// Env is added to planner's own environment for the engine, and overrides it.
	Env map[string]string
	// Endpoint is where an engine of kind attach listens, and what accompanies each request to an
	// engine of any kind.
	endpoint.Endpoint
	// Chat sends planner's own requests for one token to /v1/chat/completions.
	Chat     bool
	Timeouts Timeouts
	// Hurry, if set, ends all grace when it is closed: engines are killed at once, including those
	// that were already asked to end.
	Hurry <-chan struct{}
	// LogBytes is how many bytes of the log are kept, 64 MiB by default; of what exceeds it, the
	// last 64 KiB are kept as well.
	LogBytes int64
	// Dir is where the log and configuration file of the engine are written.
	Dir string
	// Spread, if set, returns how many nodes of planner's own Slurm job an instance occupies, and
	// with how many GPUs on each.
	Spread func(gpu string, gpus int) (nodes, each int)
	// Launching, if set, is told of each command line before it runs.
	Launching func(Command)
}

// Timeouts bound how long an engine may take. Zero means the default.
type Timeouts struct {
	// Ready bounds the time from the start to the probe's success, 20 min by default; Stall the
	// time without a new log line meanwhile, 10 min by default: compiling graphs is silent for
	// minutes.
	Ready, Stall time.Duration
	// Probe bounds the first completion once the engine says that it is ready, 2 min by default;
	// Grace how long it may take to end by itself, 15 s by default.
	Probe, Grace time.Duration
}

func (t Timeouts) filled() Timeouts {
	return Timeouts{
		Ready: cmp.Or(t.Ready, 20*time.Minute), Stall: cmp.Or(t.Stall, 10*time.Minute),
		Probe: cmp.Or(t.Probe, 2*time.Minute), Grace: cmp.Or(t.Grace, 15*time.Second),
	}
}

// Within returns the timeouts of an engine that may take no longer than most until it answers.
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

// adapter is what is known of one kind of engine. A field that is not set is something the engine
// lacks.
type adapter struct {
	kind string
	// releases are the ones that the adapter follows.
	releases string
	// program is the engine's own, nil if not known. Its arguments are options and then formats,
	// which cover what no knob does: formats of weights and KV cache and [Settings].Options.
	// content is a configuration file that options name as {file}. All but program are templates
	// that [expand] fills in; a knob that none of them names is one that the engine lacks.
	program, env, options, formats, content []string
	// node is what its process on each of several nodes adds to its arguments, as the shell of a
	// Slurm step reads it; "" if not known.
	node string
	// derived computes further values that its templates name.
	derived func(measure.Knobs) map[string]int
	// kvCache says what it uses in place of an fp8 KV cache.
	kvCache string
	// tokens: prompts may be token ids, which need no tokenizer.
	tokens bool
	// metrics are the names of its metrics, nil if those of any engine are looked for.
	metrics metricNames
	// compiles is a part of the log lines that report a kernel compiled for a request.
	compiles string
	// stageEnds maps parts of log lines that end a stage of the start to the stage, logFacts facts
	// to patterns whose first group holds them.
	stageEnds, logFacts map[string]string
	// told is what the running engine reports and where, describe finds what it reports otherwise.
	told     []factPlace
	describe func(*query)
	// reset empties the prefix cache.
	reset func(*query) error
}

// known reports whether it is known which engine it is; a command or an attached server may be any.
func (a *adapter) known() bool { return a.program != nil }

// Support is what is known of a kind of engine.
type Support struct {
	Kind string `json:"kind"`
	// Releases are the releases that the knowledge applies to.
	Releases string `json:"versions"`
	// Program is the program that starts it and the arguments that always precede the others; nil
	// if planner knows of none.
	Program []string `json:"program"`
	// Knobs names those that it has an option for, Without those that it lacks; both are nil if
	// that depends on the user's own command line.
	Knobs   []string `json:"knobs"`
	Without []string `json:"knobs_without_option"`
	// ExactPrompts says that it takes token ids as prompts, ResetsCache that its prefix cache can
	// be emptied, and Metrics that it reports metrics while it serves.
	ExactPrompts bool `json:"exact_prompts"`
	ResetsCache  bool `json:"resets_prefix_cache"`
	Metrics      bool `json:"metrics"`
}

// Supported lists the kinds of engines with what is known of each, in the order of [Kinds].
func Supported() []Support { return list.Map(adapters, adapter.support) }

func (a adapter) support() Support {
	s := Support{Kind: a.kind, Releases: a.releases, Program: a.program, ExactPrompts: a.tokens, ResetsCache: a.reset != nil,
		Metrics: a.metrics != nil}
	for _, n := range measure.KnobTable {
		switch {
		case n.Name == "gpu" || n.Format || !a.known(): // a GPU is where the engine runs, not an option
		case a.mentions(n.Name) || n.Worded():
			s.Knobs = append(s.Knobs, n.Name)
		default:
			s.Without = append(s.Without, n.Name)
		}
	}
	return s
}

// SeriesNames are the names that an engine's metrics page has for what operators watch; "" for what
// it does not report.
type SeriesNames struct {
	Running, Waiting, KVUsage, Preemptions string
	// Latencies are histograms of seconds per request, without suffixes such as _sum.
	Latencies map[measure.Metric]string
	// Model is the label that holds the model's name in requests.
	Model string
}

// SeriesOf returns the series of a kind of engine; empty if it has no such page.
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
		s.Model = "model_name" // every engine that reports latencies has this label
	}
	return s
}

// LoadsFile reports whether a kind of engine is told what to load by the path of a GGUF file rather
// than by the name of a model or its folder.
func LoadsFile(kind string) bool { return kind == llamaServer.kind }
