package config

import (
	"cmp"
	"slices"
	"time"

	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// workloadText is [workload] as it was written. Its own class is that of all its requests, or
// what the classes of its mix take over.
type workloadText struct {
	component
	turns         int
	think         time.Duration
	arrivals      workload.Process
	burstiness    float64
	trace, format string
	timeout       time.Duration
	mix           []component
	seed          uint64
}

// component is one class of a mix; what it does not give is the workload's own.
type component struct {
	class, name    string
	weight         float64
	prompt, output *workload.Lengths
	prefix         *workload.Prefix
}

// parts are the keys of a class in a mix. Its class is printed by what it stands for.
func (c *component) parts() []part {
	return []part{
		{"class", words(workload.ClassNames()...).in(&c.class), false},
		{"name", filled.in(&c.name), true},
		{"weight", positive.in(&c.weight), true},
		{"prompt", pointer(lengths).in(&c.prompt), true},
		{"output", pointer(lengths).in(&c.output), true},
		{"prefix", pointer(prefix).in(&c.prefix), true},
	}
}

// mix is a list of classes with weights.
var mix = codec[[]component]{read: func(n input) ([]component, bool) {
	items, ok := elements(n.value)
	if !ok {
		n.wrong(`a list of classes, such as [{ class = "chat", weight = 0.7 }, { class = "code", weight = 0.3 }]`)
		return nil, false
	}
	before := len(n.r.problems)
	var out []component
	for i, item := range items {
		out = append(out, component{})
		entry := input{r: n.r, path: n.path + index(i), key: n.key, value: item, inner: true}
		if entry.takeParts(out[i].parts(), "weight") && out[i].name == "" && out[i].class == "" {
			entry.refuse("has a class without a name, want class or name")
		}
	}
	return out, len(n.r.problems) == before
}, print: func(mix []component) string {
	return brackets(mix, func(c component) string { return printParts(c.parts()) })
}, composite: true}

// fill gives the parts that were not given those of the class, and the classes of
// a mix those of the workload.
func (l *workloadText) fill() error {
	if err := l.complete(workload.Shape{}, workload.Prefix{}); err != nil {
		return err
	}
	l.class = l.name
	l.name = ""
	own := l.shape()
	for i := range l.mix {
		if err := l.mix[i].complete(own, own.Prefix); err != nil {
			return err
		}
		l.mix[i].class = ""
	}
	return nil
}

// complete gives the parts that were not given those of the class, or of a shape
// where no class is named.
func (c *component) complete(own workload.Shape, prefix workload.Prefix) error {
	if c.class != "" {
		var err error
		if own, err = workload.Class(c.class); err != nil {
			return err
		}
	}
	c.name = cmp.Or(c.name, own.Name)
	c.prompt, c.output = cmp.Or(c.prompt, &own.Prompt), cmp.Or(c.output, &own.Output)
	c.prefix = cmp.Or(c.prefix, &prefix)
	return nil
}

// shape is a complete class.
func (c *component) shape() workload.Shape {
	return workload.Shape{Name: cmp.Or(c.name, c.class), Weight: c.weight, Prompt: *c.prompt, Output: *c.output, Prefix: *c.prefix}
}

// resolveWorkload makes the workload.
func (r *reader) resolveWorkload(c *Config) workload.Workload {
	l := &c.draft.load
	if !r.clean("workload") {
		return workload.Workload{}
	}
	if err := l.fill(); err != nil {
		r.at("workload.class").refuse("%v", err)
		return workload.Workload{}
	}
	r.checkArrivals(l)
	r.checkMix(l)
	w := workload.Workload{
		Class: l.class, Turns: l.turns, Think: l.think, Arrivals: l.arrivals, Burstiness: l.burstiness,
		TraceFile: l.trace, Timeout: l.timeout, Seed: l.seed,
		Shapes: []workload.Shape{l.shape()},
	}
	if len(l.mix) > 0 {
		w.Class, w.Shapes = "mix", nil
		for _, c := range l.mix {
			w.Shapes = append(w.Shapes, c.shape())
		}
	}
	if l.arrivals == workload.Trace && c.need.Workload && r.clean("workload") {
		w.Class, w.Shapes = "trace", nil
		w.Replay = r.readTrace(l)
	}
	return w
}

// checkArrivals looks at what belongs to some arrival processes alone.
func (r *reader) checkArrivals(l *workloadText) {
	if l.trace != "" && !r.given("workload.arrivals") {
		l.arrivals = workload.Trace
	}
	switch {
	case l.arrivals == workload.Trace && l.trace == "":
		r.missing("workload.trace", "workload.arrivals", `is missing, want a file, because arrivals are "trace"`)
	case l.arrivals != workload.Trace && l.trace != "":
		r.at("workload.arrivals").refuse(`is %q, want "trace", because workload.trace gives the arrivals`, l.arrivals)
	case l.arrivals == workload.Trace && l.turns > 1:
		r.at("workload.turns").refuse("is %d, want 1, because the trace lists every request", l.turns)
	case l.arrivals == workload.Trace && len(l.mix) > 0:
		r.at("workload.mix").refuse("is given, want none, because the trace gives the lengths")
	case l.arrivals == workload.Gamma && !r.given("workload.burstiness"):
		r.warn("workload: arrivals are gamma without burstiness, which is then 1: the same as poisson")
	}
}

// checkMix wants every class of a mix to have a name of its own: each is reported.
func (r *reader) checkMix(l *workloadText) {
	var seen []string
	for i, c := range l.mix {
		if slices.Contains(seen, c.name) {
			n := r.at("workload.mix")
			n.path += index(i)
			n.refuse("has two classes named %q, want a name of its own for each", c.name)
		}
		seen = append(seen, c.name)
	}
}

// readTrace reads the rows of the trace; what is to doubt in a log becomes a warning.
func (r *reader) readTrace(l *workloadText) []workload.TraceRow {
	n := r.at("workload.trace")
	f, ok := n.open(l.trace, "a trace")
	if !ok {
		return nil
	}
	defer f.Close()
	t, err := ingest.ReadTrace(l.trace, f, ingest.TraceOptions{Format: l.format})
	if err != nil {
		n.refuse("%v", err)
		return nil
	}
	for _, w := range t.Texts {
		r.warn("workload: %s: %s", l.trace, w)
	}
	return t.Rows
}
