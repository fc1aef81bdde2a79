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

	fileinput "planner/internal/input"
	"planner/sweep/workload"
)

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

// lengthRows are the keys of a distribution of its family, or of any where it has none.
func lengthRows(l *workload.Lengths) []row {
	family := families[l.Dist]
	kind := words(workload.Fixed, workload.Uniform, workload.Normal, workload.Lognormal, workload.Empirical)
	tokens, figure := orNothing(wholeIn(atLeast(1))), orNothing(numberIn(above(0)))
	rows := []row{
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
	return slices.DeleteFunc(rows, func(k row) bool {
		return l.Dist != "" && k.name != "dist" && !slices.Contains(family.keys, k.name)
	})
}

// lengths is a distribution, a table such as { dist = "normal", mean = 256, stddev = 100 }.
func lengths() codec[workload.Lengths] {
	return codec[workload.Lengths]{readLengths, func(l workload.Lengths) string { return printTable(lengthRows(&l)) }, true, nil}
}

func readLengths(n input) (l workload.Lengths, ok bool) {
	before := len(n.r.problems)
	if dist, given := n.child("dist"); given {
		if lengthRows(&l)[0].take(dist); l.Dist == "" {
			return l, false
		}
	}
	family := families[l.Dist]
	if !n.takeTable(lengthRows(&l), append([]string{"dist"}, family.keys[:family.needed]...)...) {
		return l, false
	}
	switch l.Dist {
	case workload.Lognormal:
		n.checkLognormal(&l)
	case workload.Empirical:
		if file, _ := n.child("file"); l.File != "" {
			l.Samples = readFile(file, l.File, "a file with one length a line", fileinput.Lengths, readSamples)
		}
	}
	if low, _ := n.child("min"); l.Max > 0 && l.Min > l.Max {
		low.refuse("is %d, above max %d, want min not above max", l.Min, l.Max)
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
