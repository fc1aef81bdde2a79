package config

import (
	"io"
	"math"
	"slices"

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

// mixRows are the keys of a class in a mix. Its class is printed by what it stands for.
func mixRows(s *workload.Shape) []row {
	take := func(n input) {
		if of, ok := class().read(n.only()); ok {
			s.Name, s.Prompt, s.Output = of.Name, of.Prompt, of.Output
		}
	}
	return []row{
		{"class", "", binding{take, func() string { return "" }}},
		{"name", "", filled().in(&s.Name)},
		{"weight", "", numberIn(above(0)).in(&s.Weight)},
		{"prompt", "", lengths().in(&s.Prompt)},
		{"output", "", lengths().in(&s.Output)},
		{"prefix", "", prefix().in(&s.Prefix)},
	}
}

// mix is a list of classes with weights; what one does not give is the workload's own.
func mix(own *workload.Shape) codec[[]workload.Shape] {
	read := func(n input) (shapes []workload.Shape, ok bool) {
		if _, ok := elements(n.value); !ok {
			n.wrong(`a list of classes, such as [{ class = "chat", weight = 0.7 }, { class = "code", weight = 0.3 }]`)
			return nil, false
		}
		before := len(n.r.problems)
		for _, item := range n.list() {
			s := workload.Shape{Prompt: own.Prompt, Output: own.Output, Prefix: own.Prefix}
			if item.takeTable(mixRows(&s), "weight") && s.Name == "" {
				item.refuse("has a class without a name, want class or name")
			}
			shapes = append(shapes, s)
		}
		return shapes, len(n.r.problems) == before
	}
	return codec[[]workload.Shape]{read, func(shapes []workload.Shape) string {
		return brackets(shapes, func(s workload.Shape) string { return printTable(mixRows(&s)) })
	}, true}
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
		w.Class, w.Shapes = "mix", d.mix
	}
	if w.Arrivals == workload.Trace && c.need.Workload && r.clean("workload") {
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
func (r *reader) checkMix(shapes []workload.Shape) {
	for i, s := range shapes {
		if slices.ContainsFunc(shapes[:i], func(o workload.Shape) bool { return o.Name == s.Name }) {
			n := r.at("workload.mix")
			n.path += index(i)
			n.refuse("has two classes named %q, want a name of its own for each", s.Name)
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
