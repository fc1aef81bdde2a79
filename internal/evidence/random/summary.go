package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

const rowHead = "  i    answer (low..high)            safe       truth (low..high)           ln err  cov safe outcome   trials  wall  binding / truth's     instance"

// row is an answer in a line.
func (a *answer) row(i int, in *instance) string {
	e, t := a.Estimate, a.truth
	mark := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "NO"
	}
	return fmt.Sprintf("%3d %8.4g (%8.4g..%8.4g) %8.4g  %8.4g (%8.4g..%8.4g)  %+7.4f %4s %4s %-9s %3d %6.2fs  %s / %s  %v %s", i, e.Value, e.Low, e.High, e.Safe,
		t.Rate, t.Low, t.High, a.log, mark(a.covered), mark(a.safe), a.Outcome, a.Trials, a.wall.Seconds(), a.Binding, t.Binding, in, a.bad())
}

// instanceKinds are by what answers are told apart in a summary.
type instanceKinds struct{ arrivals, shape string }

// summarize prints the summary over all, and by kind.
func summarize(w io.Writer, answers []*answer, kinds []*instanceKinds) {
	fmt.Fprintf(w, "\n%-26s %4s %4s  %8s %8s %9s  %8s %8s %8s  %9s %7s  %9s %9s %7s\n", "", "n", "with", "coverage", "safe ok", "max safe", "|ln| p50", "p95", "max",
		"no answer", "no rate", "wall p50", "max", "trials")
	byKind := map[string][]*answer{}
	for i, a := range answers {
		if a == nil {
			continue
		}
		limit := a.truth.Binding
		if limit == "" {
			limit = "no rate"
		}
		for _, name := range []string{"  all", " limit " + limit, "arrivals " + kinds[i].arrivals, "shape " + kinds[i].shape} {
			byKind[name] = append(byKind[name], a)
		}
	}
	var names []string
	for name := range byKind {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		summarizeKind(w, name, byKind[name])
	}
}

func summarizeKind(w io.Writer, name string, all []*answer) {
	var logs, walls, trials []float64
	covered, safe, silent, invented, highest := 0, 0, 0, 0, 0.0
	for _, a := range all {
		walls, trials = append(walls, a.wall.Seconds()), append(trials, float64(a.Trials))
		switch {
		case a.exists && !a.answered:
			silent++
		case a.answered && !a.exists:
			invented++
		case a.answered:
			logs = append(logs, math.Abs(a.log))
			highest = max(highest, a.Estimate.Safe/a.truth.High)
			covered += number(a.covered)
			safe += number(a.safe)
		}
	}
	n := max(float64(len(logs)), 1)
	slices.Sort(logs)
	slices.Sort(walls)
	slices.Sort(trials)
	fmt.Fprintf(w, "%-26s %4d %4d  %8.3f %8.3f %9.3f  %8.4f %8.4f %8.4f  %9d %7d  %8.2fs %8.2fs %7.0f\n", name, len(all), len(logs), float64(covered)/n, float64(safe)/n,
		highest, quantile(logs, 0.5), quantile(logs, 0.95), quantile(logs, 1), silent, invented, quantile(walls, 0.5), quantile(walls, 1), quantile(trials, 0.5))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
