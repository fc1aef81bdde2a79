package engine

import (
	"strings"

	"planner/internal/list"
	"planner/sweep/measure"
)

// Support is what is known of a kind of engine.
type Support struct {
	Kind string
	// Releases are those that it is known of.
	Releases string
	// Program starts it: a program and the arguments that it always has; nil where
	// planner knows of none.
	Program []string
	// Knobs are the names of those that it has an option for, Without of those that it
	// lacks; both are nil where that is up to the user's own command line.
	Knobs, Without []string
	// ExactPrompts says that it takes token ids as prompts, ResetsCache that its prefix
	// cache can be emptied, and Metrics that it tells of itself while it serves.
	ExactPrompts, ResetsCache, Metrics bool
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
		case a.mentions(n.Name):
			s.Knobs = append(s.Knobs, n.Name)
		default:
			s.Without = append(s.Without, n.Name)
		}
	}
	return s
}

// Series names what the page of metrics of a kind of engine calls what operators watch; ""
// for what it does not tell.
type Series struct {
	Running, Waiting, KVUsage, Preemptions string
	// TTFT and TPOT are histograms of seconds a request, without their endings.
	TTFT, TPOT string
	// Model is the label that holds the name of the model in requests.
	Model string
}

// SeriesOf are the series of a kind of engine; empty where it has no such page.
func SeriesOf(kind string) Series {
	a, err := adapterOf(kind)
	if err != nil || a.metrics == nil {
		return Series{}
	}
	first := func(metric int) string { return append(a.metrics[metric], "")[0] }
	histogram := func(metric int) string { return strings.TrimSuffix(first(metric), "_sum") }
	s := Series{Running: first(runningRequests), Waiting: first(waitingRequests), KVUsage: first(kvUsage), Preemptions: first(preemptions),
		TTFT: histogram(ttftSum), TPOT: histogram(tpotSum)}
	if s.TTFT != "" {
		s.Model = "model_name" // of those that tell latencies all have this label
	}
	return s
}

// LoadsFile reports whether a kind of engine is told what to load by the path of a
// file, GGUF, and not by the name of a model or its folder.
func LoadsFile(kind string) bool { return kind == llamaServer.kind }
