package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// goal is the largest error that is aimed at over the loads of a group, percent.
type goal struct {
	group  string
	metric metric
	limit  float64
	median bool // of the loads' errors instead of their mean
	worst  bool // the largest instead
	gap    string
}

// goals are the aims, in the order of the report; gap says what is known of a miss.
var goals = []goal{
	{group: groupOpen, metric: metricE2E, limit: 2},
	{group: groupOpen, metric: metricTTFT, limit: 6},
	{group: groupOpen, metric: metricTPOT, limit: 2},
	{group: groupOpen, metric: metricP99, limit: 10, median: true},
	{group: groupScout, metric: metricTPOT, limit: 8},
	{group: groupClosed, metric: metricTTFT, limit: 9},
	{group: groupClosed, metric: metricTTFT, limit: 7, median: true},
	{group: groupClosed, metric: metricTPOT, limit: 4},
	{group: groupClosed, metric: metricTPOT, limit: 3, median: true},
	{group: groupTrace, metric: metricTPOT, limit: 4},
	{group: groupTrace, metric: metricP99, limit: 7},
	{group: groupOverload, metric: metricCompleted, limit: 8, worst: true,
		gap: "CodeLlama-34B: a step of 128 sequences took 26.8 ms, modelled 23.9; with the prefix cache off it would be 28.9. Why prompts that are always in flight should not be found in the cache is not known, and no constant is bent for it"},
}

// errorOf returns the error of a prediction in percent; NaN if nothing was measured.
func errorOf(m metric, predicted, measured *figures) float64 {
	if measured[m] == 0 {
		return math.NaN()
	}
	return 100 * (predicted[m]/measured[m] - 1)
}

// errorsOf collects the absolute errors of a metric over the loads that count.
func errorsOf(servers []server, got [][]figures, m metric, belongs func(*server) bool) []float64 {
	var out []float64
	for i := range servers {
		if !belongs(&servers[i]) {
			continue
		}
		for k := range servers[i].loads {
			l := &servers[i].loads[k]
			if e := errorOf(m, &got[i][k], &l.measured); l.omitted == "" && !math.IsNaN(e) {
				out = append(out, math.Abs(e))
			}
		}
	}
	return out
}

// reached returns the error that a goal is about.
func (g *goal) reached(servers []server, got [][]figures) float64 {
	e := errorsOf(servers, got, g.metric, func(s *server) bool { return s.group == g.group })
	switch {
	case len(e) == 0:
		return math.NaN()
	case g.median:
		return quantile(e, 0.5)
	case g.worst:
		return slices.Max(e)
	}
	return mean(e)
}

// statistic says how the errors of a goal are put together.
func (g *goal) statistic() string {
	switch {
	case g.median:
		return "median"
	case g.worst:
		return "worst"
	}
	return "mean"
}

// printGoals writes one line a goal.
func printGoals(w io.Writer, servers []server, got [][]figures) {
	fmt.Fprintf(w, "\n%-42s %-12s %-7s %8s %8s\n", "goals: absolute error, percent", "figure", "over", "goal", "reached")
	for i := range goals {
		g := &goals[i]
		e, verdict := g.reached(servers, got), ""
		if e > g.limit {
			verdict = fmt.Sprintf("  missed by %.1f", e-g.limit)
			if g.gap != "" {
				verdict += ": " + g.gap
			}
		}
		fmt.Fprintf(w, "%-42s %-12s %-7s %8.1f %8.1f%s\n", g.group, g.metric, g.statistic(), g.limit, e, verdict)
	}
}
