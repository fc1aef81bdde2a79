package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"planner/sweep/workload"
)

// part is one key of an inline table, and whether it is printed.
type part struct {
	name string
	binding
	given bool
}

func names(parts []part) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p.name
	}
	return out
}

// takeParts reads an inline table of no other keys than the parts', of which some
// are needed; it reports whether it is a table.
func (n input) takeParts(parts []part, needed ...string) bool {
	if !n.table(names(parts)...) {
		return false
	}
	n.inner = false
	for _, p := range parts {
		if !n.maybe(p.name, p.binding) && slices.Contains(needed, p.name) {
			n.refuse("lacks the key %s, which it needs", p.name)
		}
	}
	return true
}

// maybe reads a key of a table, if it is there.
func (n input) maybe(key string, s binding) bool {
	c, ok := n.child(key)
	if ok {
		s.take(c)
	}
	return ok
}

// printParts prints the parts that are given as an inline table.
func printParts(parts []part) string {
	parts = slices.DeleteFunc(parts, func(p part) bool { return !p.given })
	return braces(names(parts), func(name string) string {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		return parts[i].text()
	})
}

var distribution = words(workload.Fixed, workload.Uniform, workload.Normal, workload.Lognormal, workload.Empirical)

// families say which keys each family of distributions has beside dist, and how many
// of these, from the first, it needs.
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

// lengthParts are the keys of a distribution in the order in which they are printed.
func lengthParts(l *workload.Lengths) []part {
	return []part{
		{"dist", distribution.in(&l.Dist), true},
		{"value", wholeFrom(1).in(&l.Value), l.Value > 0},
		{"median", positive.in(&l.Median), l.Median > 0},
		{"mean", positive.in(&l.Mean), l.Mean > 0},
		{"stddev", positive.in(&l.StdDev), l.StdDev > 0},
		{"sigma", numberIn(numberRange{low: 0, above: true, high: 10}).in(&l.Sigma), l.Sigma > 0},
		{"file", pathname.in(&l.File), l.File != ""},
		{"min", wholeFrom(1).in(&l.Min), l.Min > 0},
		{"max", wholeFrom(1).in(&l.Max), l.Max > 0},
	}
}

// lengths is a distribution, a table such as { dist = "normal", mean = 256, stddev = 100 }.
var lengths = codec[workload.Lengths]{
	read:      readLengths,
	print:     func(l workload.Lengths) string { return printParts(lengthParts(&l)) },
	composite: true,
}

func readLengths(n input) (workload.Lengths, bool) {
	before := len(n.r.problems)
	var l workload.Lengths
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong(`a table such as { dist = "fixed", value = 447 }`)
		return l, false
	}
	name, ok := n.child("dist")
	if !ok {
		n.refuse("has no dist, want fixed, uniform, normal, lognormal or empirical")
		return l, false
	}
	if l.Dist, ok = distribution.read(name); !ok {
		return l, false
	}
	family := families[l.Dist]
	parts := slices.DeleteFunc(lengthParts(&l), func(p part) bool {
		return p.name != "dist" && !slices.Contains(family.keys, p.name)
	})
	n.takeParts(parts, family.keys[:family.needed]...)
	switch l.Dist {
	case workload.Lognormal:
		n.checkLognormal(&l)
	case workload.Empirical:
		n.readSamples(&l)
	}
	if l.Max > 0 && l.Min > l.Max {
		c, _ := n.child("min")
		c.refuse("is %d, above max %d, want min not above max", l.Min, l.Max)
	}
	return l, len(n.r.problems) == before
}

// checkLognormal settles the shape by its median, or by the mean before clipping.
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

// readSamples reads the lengths of an empirical distribution from its file.
func (n input) readSamples(l *workload.Lengths) {
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

// prefix is a table of shared prefixes; an empty one means none.
var prefix = codec[workload.Prefix]{read: func(n input) (workload.Prefix, bool) {
	before := len(n.r.problems)
	var p workload.Prefix
	needed := []string{"groups", "tokens"}
	if table, ok := n.value.(map[string]any); ok && len(table) == 0 {
		needed = nil
	}
	n.takeParts(prefixParts(&p), needed...)
	return p, len(n.r.problems) == before
}, print: func(p workload.Prefix) string { return printParts(prefixParts(&p)) }, composite: true}

func prefixParts(p *workload.Prefix) []part {
	given := p.Groups > 0
	return []part{
		{"groups", wholeFrom(1).in(&p.Groups), given}, {"tokens", wholeFrom(1).in(&p.Tokens), given},
		{"prompts", wholeFrom(0).in(&p.Prompts), given},
	}
}

// readSamples reads lengths, one a line; of several columns the first counts. A
// first line that is no number is a header; empty lines and those that begin with
// # are left out.
func readSamples(r io.Reader) ([]int, error) {
	var samples []int
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), ",")
		text = strings.Trim(strings.TrimSpace(text), `"`)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil && number == 1 {
			continue
		}
		n, err := parseSample(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		samples = append(samples, n)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line after %d lengths: %w", len(samples), err)
	}
	if len(samples) == 0 {
		return nil, errors.New("holds no length")
	}
	slices.Sort(samples)
	return samples, nil
}

// parseSample reads one length; a real number is rounded, as exports of other
// tools write 447.0.
func parseSample(text string) (int, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0.5) || x > mostTokens {
		return 0, fmt.Errorf("%q is no length above 0", shorten(text))
	}
	return int(math.Round(x)), nil
}
