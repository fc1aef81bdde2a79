package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/sweep/workload"
)

// load is [workload] as it was written.
type load struct {
	class          string
	prompt, output *workload.Lengths
	prefix         *workload.Prefix
	turns          int
	think          time.Duration
	arrivals       string
	burstiness     float64
	trace, format  string
	timeout        time.Duration
	mix            []component
	seed           int64
}

// component is one class of a mix; what it does not give is the workload's own.
type component struct {
	class, name    string
	weight         float64
	prompt, output *workload.Lengths
	prefix         *workload.Prefix
}

func loadDefaults() load {
	return load{class: "chat", turns: 1, arrivals: "poisson", burstiness: 1, timeout: 30 * time.Minute, seed: 1}
}

// workloadKeys are the keys of [workload].
func workloadKeys() []key {
	return []key{
		{"workload.class", "chat code long-context-qa summarization; or spell it out in prompt and output", func(d *draft) value {
			return word{&d.load.class, workload.ClassNames()}
		}},
		{"workload.prompt", "tokens; dist: fixed (value), uniform (min, max), normal (mean, stddev), lognormal (median or mean, sigma), empirical (file)", func(d *draft) value {
			return lengths{&d.load.prompt}
		}},
		{"workload.output", "tokens, likewise", func(d *draft) value { return lengths{&d.load.output} }},
		{"workload.prefix", "shared prefixes, on top of prompt: { groups, tokens, prompts }; prompts > 0: so many distinct prompts per group, then reused", func(d *draft) value {
			return prefix{&d.load.prefix}
		}},
		{"workload.turns", "requests of one conversation", func(d *draft) value { return whole{&d.load.turns, 1} }},
		{"workload.think_time", "between two turns of a conversation", func(d *draft) value { return period{&d.load.think, true} }},
		{"workload.arrivals", "poisson constant gamma (with burstiness) trace", func(d *draft) value {
			return word{&d.load.arrivals, []string{"poisson", "constant", "gamma", "trace"}}
		}},
		{"workload.burstiness", "shape of gamma gaps: 1 = Poisson, below 1 burstier", func(d *draft) value {
			return float{&d.load.burstiness, span{low: 0, above: true, high: 1e6}}
		}},
		{"workload.trace", "file; it gives arrivals and lengths", func(d *draft) value { return pathname{&d.load.trace} }},
		{"workload.trace_format", strings.Join(traceFormats(), " ") + `; "" = found out`, func(d *draft) value {
			return word{&d.load.format, traceFormats()}
		}},
		{"workload.timeout", "of one request; it then gives up and counts as failed", func(d *draft) value {
			return period{&d.load.timeout, false}
		}},
		{"workload.mix", `several named classes: [{ class = "chat", weight = 0.7 }, { name = "rag", weight = 0.3, prompt = {...}, output = {...}, prefix = {...} }]`, func(d *draft) value {
			return mix{&d.load.mix}
		}},
		{"workload.seed", "drives every draw", func(d *draft) value { return seed{&d.load.seed} }},
	}
}

// seed is any whole number from 0.
type seed struct{ p *int64 }

func (v seed) take(n node) {
	n = n.only()
	x, ok := n.value.(int64)
	if !ok || x < 0 {
		n.wrong("a whole number of at least 0")
		return
	}
	*v.p = x
}

func (v seed) text() string { return fmt.Sprint(*v.p) }

// mix is a list of classes with weights.
type mix struct{ p *[]component }

func (v mix) take(n node) {
	items, ok := elements(n.value)
	if !ok {
		n.wrong(`a list of classes, such as [{ class = "chat", weight = 0.7 }, { class = "code", weight = 0.3 }]`)
		return
	}
	var out []component
	for i, item := range items {
		c := node{r: n.r, path: n.path + index(i), key: n.key, value: item, inner: true}
		if x, ok := readComponent(c); ok {
			out = append(out, x)
		}
	}
	*v.p = out
}

func readComponent(n node) (component, bool) {
	var c component
	before := len(n.r.problems)
	if !n.table("class", "name", "weight", "prompt", "output", "prefix") {
		return c, false
	}
	n.inner = false
	n.maybe("class", word{&c.class, workload.ClassNames()})
	n.maybe("name", filled{&c.name})
	n.require("weight", float{&c.weight, positive})
	n.maybe("prompt", lengths{&c.prompt})
	n.maybe("output", lengths{&c.output})
	n.maybe("prefix", prefix{&c.prefix})
	if c.name == "" && c.class == "" {
		n.refuse("has a class without a name, want class or name")
	}
	return c, len(n.r.problems) == before
}

func (v mix) text() string {
	return brackets(*v.p, func(c component) string {
		parts := []string{"name = " + quote(c.name), "weight = " + number(c.weight)}
		parts = append(parts, "prompt = "+lengthsText(*c.prompt), "output = "+lengthsText(*c.output))
		return "{ " + strings.Join(append(parts, "prefix = "+prefixText(*c.prefix)), ", ") + " }"
	})
}

// fill gives the parts that were not given those of the class, and the classes of
// a mix those of the workload.
func (l *load) fill() error {
	shape, err := workload.Class(l.class)
	if err != nil {
		return err
	}
	l.class = shape.Name
	l.prompt, l.output = orPointer(l.prompt, shape.Prompt), orPointer(l.output, shape.Output)
	l.prefix = orPointer(l.prefix, workload.Prefix{})
	for i := range l.mix {
		c := &l.mix[i]
		own := workload.Shape{Prompt: *l.prompt, Output: *l.output}
		if c.class != "" {
			if own, err = workload.Class(c.class); err != nil {
				return err
			}
			c.class = ""
		}
		if c.name == "" {
			c.name = own.Name
		}
		c.prompt, c.output = orPointer(c.prompt, own.Prompt), orPointer(c.output, own.Output)
		c.prefix = orPointer(c.prefix, *l.prefix)
	}
	return nil
}

func orPointer[T any](given *T, fill T) *T {
	if given != nil {
		return given
	}
	return &fill
}

// resolveWorkload makes the workload.
func (r *reader) resolveWorkload(d *draft, need Need) workload.Workload {
	l := &d.load
	if !r.clean("workload") {
		return workload.Workload{}
	}
	if err := l.fill(); err != nil {
		r.at("workload.class").refuse("%v", err)
		return workload.Workload{}
	}
	r.checkArrivals(l)
	r.checkMix(l)
	process, err := workload.ParseProcess(l.arrivals)
	if err != nil {
		r.at("workload.arrivals").refuse("%v", err)
	}
	w := workload.Workload{
		Class: l.class, Turns: l.turns, Think: l.think, Arrivals: process, Burstiness: l.burstiness,
		TraceFile: l.trace, Timeout: l.timeout, Seed: uint64(l.seed),
		Shapes: []workload.Shape{{Name: l.class, Prompt: *l.prompt, Output: *l.output, Prefix: *l.prefix}},
	}
	if len(l.mix) > 0 {
		w.Class, w.Shapes = "mix", nil
		for _, c := range l.mix {
			w.Shapes = append(w.Shapes, workload.Shape{
				Name: c.name, Weight: c.weight, Prompt: *c.prompt, Output: *c.output, Prefix: *c.prefix,
			})
		}
	}
	if process == workload.Trace && need.Workload && r.clean("workload") {
		w.Class, w.Shapes = "trace", nil
		w.Replay = r.readTrace(l)
	}
	return w
}

// checkArrivals looks at what belongs to some arrival processes alone.
func (r *reader) checkArrivals(l *load) {
	if l.trace != "" && !r.given("workload.arrivals") {
		l.arrivals = "trace"
	}
	switch {
	case l.arrivals == "trace" && l.trace == "":
		r.missing("workload.trace", "workload.arrivals", `is missing, want a file, because arrivals are "trace"`)
	case l.arrivals != "trace" && l.trace != "":
		r.at("workload.arrivals").refuse(`is %q, want "trace", because workload.trace gives the arrivals`, l.arrivals)
	case l.arrivals == "trace" && l.turns > 1:
		r.at("workload.turns").refuse("is %d, want 1, because the trace lists every request", l.turns)
	case l.arrivals == "trace" && len(l.mix) > 0:
		r.at("workload.mix").refuse("is given, want none, because the trace gives the lengths")
	case l.arrivals == "gamma" && !r.given("workload.burstiness"):
		r.warn("workload: arrivals are gamma without burstiness, which is then 1: the same as poisson")
	}
}

// checkMix wants every class of a mix to have a name of its own: each is reported.
func (r *reader) checkMix(l *load) {
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
