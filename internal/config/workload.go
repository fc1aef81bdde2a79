package config

import (
	"io"
	"maps"
	"math"
	"slices"

	fileinput "planner/internal/input"
	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func class() codec[workload.Shape] {
	return named(workload.Class, func(s workload.Shape) string { return s.Name }, workload.ClassNames()...)
}

func prefix() codec[workload.Prefix] {
	return tableWith(func(p *workload.Prefix) []tomlKey {
		count := orNothing(wholeIn(atLeast(1)))
		return []tomlKey{
			{"groups", "", count.in(&p.Groups)}, {"tokens", "", count.in(&p.Tokens)},
			{"prompts", "", orNothing(wholeIn(atLeast(0))).in(&p.Prompts)},
		}
	}, "groups", "tokens")
}

// component is a class of a mix, with its own limits if it has any.
type component struct {
	shape workload.Shape
	slo   *sloLimits
}

// rows are the keys of a class in a mix; those not given are taken from the workload. A class name is printed
// as the lengths that it stands for.
func (c *component) rows(own *workload.Shape) []tomlKey {
	s := &c.shape
	if s.Weight == 0 { // nothing is read yet
		s.Prompt, s.Output, s.Prefix = own.Prompt, own.Output, own.Prefix
	}
	take := func(n input) {
		of := class().read(n.only())
		s.Name, s.Prompt, s.Output = of.Name, of.Prompt, of.Output
	}
	return []tomlKey{
		{"class", "", binding{take, func() string { return "" }, class().choices}},
		{"name", "", filled().in(&s.Name)},
		{"weight", "", numberIn(above(0)).in(&s.Weight)},
		{"prompt", "", lengths().in(&s.Prompt)},
		{"output", "", lengths().in(&s.Output)},
		{"prefix", "", prefix().in(&s.Prefix)},
		{"slo", "", c.limits()},
	}
}

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

func mix(own *workload.Shape) codec[[]component] {
	return tablesOf(func(c *component) []tomlKey { return c.rows(own) },
		`a list of classes, such as [{ class = "chat", weight = 0.7 }, { class = "code", weight = 0.3 }]`, "weight")
}

func (r *reader) resolveWorkload(c *Config) {
	d, w := &c.draft, &c.Workload
	r.checkMix(d.mix)
	if !r.clean("workload") {
		return
	}
	r.checkArrivals(c)
	w.Class, w.Shapes = d.shape.Name, []workload.Shape{d.shape}
	if len(d.mix) > 0 {
		w.Class, w.Shapes = "mix", list.Map(d.mix, func(c component) workload.Shape { return c.shape })
	}
	// The lengths convert tokens per day to requests.
	if needed := d.need.Workload || d.need.Demand && d.tokensPerDay > 0; needed && w.Arrivals == workload.Trace && r.clean("workload") {
		w.Class, w.Shapes = "trace", nil
		w.Replay = r.readTrace(w.TraceFile, d.traceFormat)
		w.Rates = workload.RatesOf(w.Replay, c.RateOf)
		c.Demand.TraceRates = w.Rates
	}
}

func (r *reader) checkArrivals(c *Config) {
	w := &c.Workload
	if w.TraceFile != "" && !r.given("workload.arrivals") {
		w.Arrivals = workload.Trace
	}
	switch replayed := w.Arrivals == workload.Trace; {
	case replayed && w.TraceFile == "":
		r.missing("workload.trace", "workload.arrivals").refuse(`is missing, want a file, because arrivals are "trace"`)
	case !replayed && w.TraceFile != "":
		r.at("workload.arrivals").refuse(`is %q, want "trace", because workload.trace gives the arrivals`, w.Arrivals)
	case replayed && w.Turns > 1:
		r.at("workload.turns").refuse("is %d, want 1, because the trace lists every request", w.Turns)
	case replayed && len(c.draft.mix) > 0:
		r.at("workload.mix").refuse("is given, want none, because the trace gives the lengths")
	case w.Arrivals == workload.Gamma && w.Burstiness == 1:
		r.warn("workload: arrivals are gamma of burstiness 1: the same as poisson")
	}
	r.warnUnused(c)
}

// fewTexts is the number of texts, drawn once, from which on the longest differ little between draws: of 1,000
// texts, ten are among the longest one in a hundred.
const fewTexts = 1000

// fewRequests is the smallest number of requests that has a hundredth part.
const fewRequests = 100

// warnUnused warns of workload settings that have no effect.
func (r *reader) warnUnused(c *Config) {
	const without = "workload: %s is %s, which has no effect without %s"
	w, own := &c.Workload, &c.draft.shape
	r.warnIf(w.Arrivals != workload.Gamma && w.Burstiness != 1, without, "burstiness", number(w.Burstiness), `arrivals = "gamma"`)
	r.warnIf(w.Turns == 1 && w.Think > 0, without, "think_time", duration(w.Think), "turns above 1")
	r.warnIf(w.Arrivals != workload.Trace && c.RateOf != workload.RateOfBusiestHour, "demand: rate_of is %s, which has no effect without a trace", c.RateOf)
	usual := unread().draft.shape
	r.warnIf(w.Arrivals == workload.Trace && (own.Lengths() != usual.Lengths() || own.Prefix != usual.Prefix),
		"workload: class, prompt, output and prefix have no effect: the trace gives the lengths, and what prompts share")
	texts := own.Prefix.Groups * own.Prefix.Prompts
	r.warnIf(texts > 0 && texts < fewTexts && own.Prompt.Dist != workload.Fixed,
		"workload: the lengths of the %d texts that prefix.prompts repeats are drawn once, by seed: another seed is other traffic; try some", texts)
	r.warnUnmixed(c.draft.mix, "prompt", own, func(s *workload.Shape) string { return s.Prompt.Words() })
	r.warnUnmixed(c.draft.mix, "output", own, func(s *workload.Shape) string { return s.Output.Words() })
}

// warnUnmixed warns of workload lengths that no class of its mix uses, as each has its own.
func (r *reader) warnUnmixed(mix []component, name string, own *workload.Shape, words func(*workload.Shape) string) {
	given := words(own)
	usual := unread().draft.shape
	used := slices.ContainsFunc(mix, func(c component) bool { return words(&c.shape) == given })
	r.warnIf(len(mix) > 0 && given != words(&usual) && !used, "workload: %s, %s, has no effect: every class of the mix has its own", name, given)
}

// checkMix requires a distinct name for every class of a mix, by which it is reported.
func (r *reader) checkMix(all []component) {
	for i, c := range all {
		n := r.at("workload.mix")
		n.path += index(i)
		switch twice := slices.ContainsFunc(all[:i], func(o component) bool { return o.shape.Name == c.shape.Name }); {
		case c.shape.Name == "":
			n.refuse("has a class without a name, want class or name")
		case twice:
			n.refuse("has two classes named %q, want a name of its own for each", c.shape.Name)
		}
	}
}

// readTrace reads the rows of the trace; doubtful contents of a log become warnings.
func (r *reader) readTrace(name, format string) []workload.TraceRow {
	t := readFile(r.at("workload.trace"), name, "a trace", math.MaxInt64-1, func(f io.Reader) (*ingest.Trace, error) {
		return ingest.ReadTrace(name, f, ingest.TraceOptions{Format: format})
	})
	if t == nil {
		return nil
	}
	switch n := len(t.Rows); {
	case n > 1 && t.Rows[n-1].Arrival == t.Rows[0].Arrival:
		r.warn("workload: %s: all %d requests come at the same moment, so it tells lengths and no arrivals", name, n)
	case n < fewRequests:
		r.warn("workload: %s has %s, played over and over: a p99 is of the longest of them", name, note.Count(n, "request"))
	}
	for _, w := range t.Texts {
		r.warn("workload: %s: %s", name, w)
	}
	return t.Rows
}

// families are the keys of each family of distributions besides dist, and how many of them, from the first, are
// required.
var families = map[workload.Dist]struct {
	keys   []string
	needed int
}{
	workload.Fixed:     {[]string{"value"}, 1},
	workload.Uniform:   {[]string{"min", "max"}, 2},
	workload.Normal:    {[]string{"mean", "stddev", "min", "max"}, 2},
	workload.Lognormal: {[]string{"sigma", "median", "mean", "min", "max"}, 1},
	workload.Empirical: {[]string{"file", "min", "max"}, 1},
}

// lengthRows are the keys of a distribution's family, or of all families if it has none yet.
func lengthRows(l *workload.Lengths) []tomlKey {
	family := families[l.Dist]
	kind := words(workload.Fixed, workload.Uniform, workload.Normal, workload.Lognormal, workload.Empirical)
	tokens, figure := orNothing(wholeIn(atLeast(1))), orNothing(numberIn(above(0)))
	rows := []tomlKey{
		{"dist", ": one of fixed, uniform, normal, lognormal, empirical", orNothing(kind).in(&l.Dist)},
		{"value", "", tokens.in(&l.Value)},
		{"median", "", figure.in(&l.Median)},
		{"mean", "", figure.in(&l.Mean)},
		{"stddev", "", figure.in(&l.StdDev)},
		{"sigma", "", orNothing(numberIn(above(0).atMost(10))).in(&l.Sigma)},
		{"file", "", orNothing(pathname()).in(&l.File)},
		{"min", "", tokens.in(&l.Min)},
		{"max", "", tokens.in(&l.Max)},
	}
	return slices.DeleteFunc(rows, func(k tomlKey) bool {
		return l.Dist != "" && k.name != "dist" && !slices.Contains(family.keys, k.name)
	})
}

// lengths is a distribution, a table such as { dist = "normal", mean = 256, stddev = 100 }.
func lengths() codec[workload.Lengths] {
	return codec[workload.Lengths]{readLengths, func(l workload.Lengths) string { return printTable(lengthRows(&l)) }, true, nil}
}

func readLengths(n input) (l workload.Lengths) {
	for _, c := range n.children() {
		if family, is := families[workload.Dist(c.name)]; is {
			c.refuse(`is a distribution, want dist = %q, and its %s`, c.name, keyList(family.keys))
			return l
		}
	}
	if dist, given := n.child("dist"); given {
		if lengthRows(&l)[0].take(dist); l.Dist == "" {
			return l
		}
	}
	family := families[l.Dist]
	if !n.takeTable(lengthRows(&l), append([]string{"dist"}, family.keys[:family.needed]...)...) {
		return l
	}
	switch l.Dist {
	case workload.Lognormal:
		n.checkLognormal(&l)
	case workload.Empirical:
		if file, _ := n.child("file"); l.File != "" {
			l.Samples = readFile(file, l.File, "a file with one length a line", fileinput.Lengths, ingest.ReadLengths)
		}
	}
	low, _ := n.child("min")
	low.refuseIf(l.Max > 0 && l.Min > l.Max, "is %d, above max %d, want min not above max", l.Min, l.Max)
	return l
}

// checkLognormal sets the median, if need be from the mean before clipping.
func (n input) checkLognormal(l *workload.Lengths) {
	_, hasMedian := n.child("median")
	c, hasMean := n.child("mean")
	switch {
	case hasMedian && hasMean:
		c.refuse("is given together with median, want one of the two")
	case hasMean:
		l.Median, l.Mean = workload.LognormalMedian(l.Mean, l.Sigma), 0
	case !hasMedian:
		n.refuse("has neither median nor mean, want one of the two")
	}
}

// Pools lists the classes of a mix that may have instances of their own: all, if any has limits of its own.
func (c *Config) Pools() []string {
	if len(c.Objective.Classes()) == 0 {
		return nil
	}
	return c.Workload.Names()
}

// Pool returns the configuration of instances that serve only one class of the mix: its share of the demand,
// with its limits as those of all requests. Limits of the whole fleet do not apply to a part and are dropped.
// Requests picked at random from a bursty stream have their excess dispersion reduced in proportion to their
// share.
func (c *Config) Pool(class string) *Config {
	own := *c
	share := c.Workload.Share(class)
	i := slices.IndexFunc(c.Workload.Shapes, func(s workload.Shape) bool { return s.Name == class })
	own.Workload.Class, own.Workload.Shapes = class, []workload.Shape{c.Workload.Shapes[i]}
	own.Objective = c.Objective.Of(class)
	own.Objective.Bounds = append(own.Objective.Bounds, list.Filter(c.Objective.Bounds, func(b measure.Bound) bool { return b.Class == "" })...)
	own.Objective.Throughput = len(own.Objective.Bounds) == 0
	d := &own.Demand
	d.Rate, d.MeanRate = share*d.Rate, share*d.MeanRate
	d.BurstIndex = 1 + share*(d.BurstIndex-1)
	d.MaxGPUs, d.MaxUSDPerHour = 0, 0
	if longest := own.Workload.Longest(); !c.Given("max_model_len") && longest > 0 && longest < c.Workload.MaxLen {
		own.Workload.MaxLen = longest
		own.Space = maps.Clone(c.Space)
		own.Space["max_model_len"] = []any{longest}
	}
	return &own
}
