package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"planner/sweep/workload"
)

// lengths is a distribution of lengths, nil as long as none is given.
type lengths struct{ p **workload.Lengths }

func (v lengths) take(n node) {
	if l, ok := readLengths(n); ok {
		*v.p = &l
	}
}

func (v lengths) text() string {
	if *v.p == nil {
		return ""
	}
	return lengthsText(**v.p)
}

// lengthKeys are the keys that each family of distributions has.
var lengthKeys = map[workload.Dist][]string{
	workload.Fixed:     {"dist", "value"},
	workload.Uniform:   {"dist", "min", "max"},
	workload.Normal:    {"dist", "mean", "stddev", "min", "max"},
	workload.Lognormal: {"dist", "median", "mean", "sigma", "min", "max"},
	workload.Empirical: {"dist", "file", "min", "max"},
}

// readLengths reads a table such as { dist = "normal", mean = 256, stddev = 100 }.
func readLengths(n node) (workload.Lengths, bool) {
	before := len(n.r.problems)
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong(`a table such as { dist = "fixed", value = 447 }`)
		return workload.Lengths{}, false
	}
	name, ok := n.child("dist")
	if !ok {
		n.refuse("has no dist, want fixed, uniform, normal, lognormal or empirical")
		return workload.Lengths{}, false
	}
	text, ok := readWord(name, []string{"fixed", "uniform", "normal", "lognormal", "empirical"})
	if !ok {
		return workload.Lengths{}, false
	}
	dist, err := workload.ParseDist(text)
	if err != nil {
		name.refuse("%v", err)
		return workload.Lengths{}, false
	}
	n.table(lengthKeys[dist]...)
	l := workload.Lengths{Dist: dist}
	switch dist {
	case workload.Fixed:
		n.require("value", whole{&l.Value, 1})
	case workload.Uniform:
		n.require("min", whole{&l.Min, 1})
		n.require("max", whole{&l.Max, 1})
	case workload.Normal:
		n.require("mean", float{&l.Mean, positive})
		n.require("stddev", float{&l.StdDev, positive})
	case workload.Lognormal:
		n.lognormal(&l)
	case workload.Empirical:
		n.empirical(&l)
	}
	if dist != workload.Fixed && dist != workload.Uniform {
		n.maybe("min", whole{&l.Min, 1})
		n.maybe("max", whole{&l.Max, 1})
	}
	if l.Max > 0 && l.Min > l.Max {
		c, _ := n.child("min")
		c.refuse("is %d, above max %d, want min not above max", l.Min, l.Max)
	}
	return l, len(n.r.problems) == before
}

// require reads a key of a table that must be there.
func (n node) require(key string, v value) {
	if !n.maybe(key, v) {
		n.refuse("lacks the key %s, which it needs", key)
	}
}

// maybe reads a key of a table, if it is there.
func (n node) maybe(key string, v value) bool {
	c, ok := n.child(key)
	if ok {
		v.take(c)
	}
	return ok
}

// lognormal reads the shape from its median or from the mean before clipping.
func (n node) lognormal(l *workload.Lengths) {
	n.require("sigma", float{&l.Sigma, span{low: 0, above: true, high: 10}})
	mean := 0.0
	hasMedian := n.maybe("median", float{&l.Median, positive})
	hasMean := n.maybe("mean", float{&mean, positive})
	switch {
	case hasMedian && hasMean:
		c, _ := n.child("mean")
		c.refuse("is given together with median, want one of the two")
	case hasMean:
		l.Median = workload.LognormalMedian(mean, l.Sigma)
	case !hasMedian:
		n.refuse("has neither median nor mean, want one of the two")
	}
}

// empirical reads the lengths from a file.
func (n node) empirical(l *workload.Lengths) {
	n.require("file", pathname{&l.File})
	if l.File == "" {
		return
	}
	c, _ := n.child("file")
	f, ok := c.open(l.File, "a file with one length a line")
	if !ok {
		return
	}
	defer f.Close()
	samples, err := readSamples(f)
	if err != nil {
		c.refuse("%s: %v, want one length a line", l.File, err)
		return
	}
	l.Samples = samples
}

// lengthsText prints a distribution with the keys of its family.
func lengthsText(l workload.Lengths) string {
	parts := []string{"dist = " + quote(l.Dist.String())}
	add := func(key, text string) { parts = append(parts, key+" = "+text) }
	switch l.Dist {
	case workload.Fixed:
		add("value", strconv.Itoa(l.Value))
	case workload.Normal:
		add("mean", number(l.Mean))
		add("stddev", number(l.StdDev))
	case workload.Lognormal:
		add("median", number(l.Median))
		add("sigma", number(l.Sigma))
	case workload.Empirical:
		add("file", quote(l.File))
	}
	if l.Min > 0 {
		add("min", strconv.Itoa(l.Min))
	}
	if l.Max > 0 {
		add("max", strconv.Itoa(l.Max))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// prefix is a table of shared prefixes; an empty one means none.
type prefix struct{ p **workload.Prefix }

func (v prefix) take(n node) {
	if !n.table("groups", "tokens", "prompts") {
		return
	}
	out := workload.Prefix{}
	if table, _ := n.value.(map[string]any); len(table) > 0 {
		n.require("groups", whole{&out.Groups, 1})
		n.require("tokens", whole{&out.Tokens, 1})
		n.maybe("prompts", whole{&out.Prompts, 0})
	}
	*v.p = &out
}

func (v prefix) text() string {
	if *v.p == nil {
		return ""
	}
	return prefixText(**v.p)
}

func prefixText(p workload.Prefix) string {
	if p.Groups == 0 {
		return "{}"
	}
	return fmt.Sprintf("{ groups = %d, tokens = %d, prompts = %d }", p.Groups, p.Tokens, p.Prompts)
}

// errNoSamples is a file without a single length.
var errNoSamples = errors.New("holds no length")

// parseSample reads one length; a real number is rounded, as exports of other
// tools write 447.0.
func parseSample(text string) (int, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0.5) || x > mostTokens {
		return 0, fmt.Errorf("%q is no length above 0", shorten(text))
	}
	return int(math.Round(x)), nil
}

// sortedSamples puts lengths in order, as the distribution wants them.
func sortedSamples(samples []int) ([]int, error) {
	if len(samples) == 0 {
		return nil, errNoSamples
	}
	slices.Sort(samples)
	return samples, nil
}
