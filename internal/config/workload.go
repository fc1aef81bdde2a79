package config

import (
	"io"
	"math"
	"slices"

	"planner/internal/list"
	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// class is a traffic class by name: the whole shape of its requests.
func class() codec[workload.Shape] {
	return named(workload.Class, func(s workload.Shape) string { return s.Name }, workload.ClassNames()...)
}

// prefix is a table of shared prefixes; an empty one means none.
func prefix() codec[workload.Prefix] {
	return tableWith(func(p *workload.Prefix) []row {
		count := orNothing(wholeIn(atLeast(1)))
		return []row{
			{"groups", "", count.in(&p.Groups)}, {"tokens", "", count.in(&p.Tokens)},
			{"prompts", "", orNothing(wholeIn(atLeast(0))).in(&p.Prompts)},
		}
	}, "groups", "tokens")
}

// component is a class of a mix, with limits where it has any of its own.
type component struct {
	shape workload.Shape
	slo   *sloLimits
}

// rows are the keys of a class in a mix. Its class is printed by what it stands for.
func (c *component) rows() []row {
	s := &c.shape
	take := func(n input) {
		if of, ok := class().read(n.only()); ok {
			s.Name, s.Prompt, s.Output = of.Name, of.Prompt, of.Output
		}
	}
	return []row{
		{"class", "", binding{take, func() string { return "" }, class().choices}},
		{"name", "", filled().in(&s.Name)},
		{"weight", "", numberIn(above(0)).in(&s.Weight)},
		{"prompt", "", lengths().in(&s.Prompt)},
		{"output", "", lengths().in(&s.Output)},
		{"prefix", "", prefix().in(&s.Prefix)},
		{"slo", "", c.limits()},
	}
}

// limits ties the key of the class's own limits.
func (c *component) limits() binding {
	return binding{func(n input) {
		c.slo = &sloLimits{}
		n.takeTable(c.slo.classRows())
	}, func() string {
		if c.slo == nil {
			return ""
		}
		return printTable(c.slo.classRows())
	}, nil}
}

// mix is a list of classes with weights; what one does not give is the workload's own.
func mix(own *workload.Shape) codec[[]component] {
	read := func(n input) (all []component, ok bool) {
		if _, ok := elements(n.value); !ok {
			n.wrong(`a list of classes, such as [{ class = "chat", weight = 0.7 }, { class = "code", weight = 0.3 }]`)
			return nil, false
		}
		before := len(n.r.problems)
		for _, item := range n.list() {
			c := component{shape: workload.Shape{Prompt: own.Prompt, Output: own.Output, Prefix: own.Prefix}}
			if item.takeTable(c.rows(), "weight") && c.shape.Name == "" {
				item.refuse("has a class without a name, want class or name")
			}
			all = append(all, c)
		}
		return all, len(n.r.problems) == before
	}
	return codec[[]component]{read, func(all []component) string {
		return brackets(all, func(c component) string { return printTable(c.rows()) })
	}, true, nil}
}

func (r *reader) resolveWorkload(c *Config) {
	d, w := &c.draft, &c.Workload
	if !r.clean("workload") {
		return
	}
	r.checkArrivals(c)
	r.checkMix(d.mix)
	w.Class, w.Shapes = d.shape.Name, []workload.Shape{d.shape}
	if len(d.mix) > 0 {
		w.Class, w.Shapes = "mix", list.Map(d.mix, func(c component) workload.Shape { return c.shape })
	}
	if w.Arrivals == workload.Trace && c.draft.need.Workload && r.clean("workload") {
		w.Class, w.Shapes = "trace", nil
		w.Replay = r.readTrace(w.TraceFile, d.traceFormat)
		w.Rates = workload.RatesOf(w.Replay, c.RateOf)
		c.Demand.TraceRates = w.Rates
	}
}

// checkArrivals looks at what belongs to some arrival processes alone.
func (r *reader) checkArrivals(c *Config) {
	w := &c.Workload
	if w.TraceFile != "" && !r.given("workload.arrivals") {
		w.Arrivals = workload.Trace
	}
	switch replayed := w.Arrivals == workload.Trace; {
	case replayed && w.TraceFile == "":
		r.missing("workload.trace", "workload.arrivals", `is missing, want a file, because arrivals are "trace"`)
	case !replayed && w.TraceFile != "":
		r.at("workload.arrivals").refuse(`is %q, want "trace", because workload.trace gives the arrivals`, w.Arrivals)
	case replayed && w.Turns > 1:
		r.at("workload.turns").refuse("is %d, want 1, because the trace lists every request", w.Turns)
	case replayed && len(c.draft.mix) > 0:
		r.at("workload.mix").refuse("is given, want none, because the trace gives the lengths")
	case w.Arrivals == workload.Gamma && !r.given("workload.burstiness"):
		r.warn("workload: arrivals are gamma without burstiness, which is then 1: the same as poisson")
	}
}

// checkMix wants every class of a mix to have a name of its own: each is reported.
func (r *reader) checkMix(all []component) {
	for i, c := range all {
		if slices.ContainsFunc(all[:i], func(o component) bool { return o.shape.Name == c.shape.Name }) {
			n := r.at("workload.mix")
			n.path += index(i)
			n.refuse("has two classes named %q, want a name of its own for each", c.shape.Name)
		}
	}
}

// readTrace reads the rows of the trace; what is to doubt in a log becomes a warning.
func (r *reader) readTrace(name, format string) []workload.TraceRow {
	t := readFile(r.at("workload.trace"), name, "a trace", math.MaxInt64-1, func(f io.Reader) (*ingest.Trace, error) {
		return ingest.ReadTrace(name, f, ingest.TraceOptions{Format: format})
	})
	if t == nil {
		return nil
	}
	for _, w := range t.Texts {
		r.warn("workload: %s: %s", name, w)
	}
	return t.Rows
}
