package config

import (
	"slices"

	fileinput "planner/internal/input"
	"planner/sweep/ingest"
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
			l.Samples = readFile(file, l.File, "a file with one length a line", fileinput.Lengths, ingest.ReadLengths)
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
