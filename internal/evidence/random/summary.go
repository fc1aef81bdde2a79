package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

const (
	rowHead = "  i   answer (low..high)             safe       truth (low..high)            ln err   cov safe outcome  trials  wall" +
		"   binding / truth's   instance"
	kindHead = "%-26s %4s %4s  %8s %8s %8s %9s  %8s %8s %8s  %9s %7s  %9s %9s %7s\n"
	kindRow  = "%-26s %4d %4.0f  %8.3f %8.3f %8.3f %9.3f  %8.4f %8.4f %8.4f  %9d %7d  %8.2fs %8.2fs %7.0f\n"
)

// row is an answer in a line.
func (a *answer) row(i int) string {
	e, t := a.Estimate, a.truth
	mark := map[bool]string{true: "yes", false: "NO"}
	return fmt.Sprintf("%3d %8.4g (%8.4g..%8.4g) %8.4g  %8.4g (%8.4g..%8.4g)  %+7.4f %4s %4s %-10s %3d %6.2fs  %s / %s  %v %s",
		i, e.Value, e.Low, e.High, e.Safe, t.Rate, t.Low, t.High, a.log, mark[a.covered], mark[a.safe], a.Outcome, a.Trials,
		a.wall.Seconds(), a.Binding, t.Binding, a.in, a.bad())
}

// tally is what answers come to. All but the first line are over those that were given
// where there is a truth.
type tally struct {
	n, silent, invented int
	// exact counts intervals that hold the true rate itself, covered those that hold a rate that counts as right.
	both, exact, covered, safe float64
	// highest is the largest safe rate over the highest rate that counts as right.
	highest float64
	// logs are the logarithms of the errors, sizes the same without their signs, sorted.
	logs, sizes []float64
	// walls are seconds of each search, trials how many it ran, both sorted.
	walls, trials []float64
}

func tallyOf(all []*answer) tally {
	t := tally{n: len(all)}
	for _, a := range all {
		t.walls, t.trials = append(t.walls, a.wall.Seconds()), append(t.trials, float64(a.Trials))
		switch {
		case a.exists && !a.answered:
			t.silent++
		case a.answered && !a.exists:
			t.invented++
		case a.answered:
			t.logs, t.sizes = append(t.logs, a.log), append(t.sizes, math.Abs(a.log))
			t.highest = max(t.highest, a.Estimate.Safe/a.truth.High)
			if a.Estimate.Low <= a.truth.Rate && a.truth.Rate <= a.Estimate.High {
				t.exact++
			}
			if a.covered {
				t.covered++
			}
			if a.safe {
				t.safe++
			}
		}
	}
	t.both = float64(len(t.logs))
	t.exact, t.covered, t.safe = t.exact/max(t.both, 1), t.covered/max(t.both, 1), t.safe/max(t.both, 1)
	slices.Sort(t.sizes)
	slices.Sort(t.walls)
	slices.Sort(t.trials)
	return t
}

// summarize prints the summary over all, and by kind.
func summarize(w io.Writer, answers []*answer) {
	fmt.Fprintf(w, "\n"+kindHead, "", "n", "with", "exact", "coverage", "safe ok", "max safe", "|ln| p50", "p95", "max",
		"no answer", "no rate", "wall p50", "max", "trials")
	byKind := map[string][]*answer{}
	for _, a := range answers {
		limit := cmp.Or(a.truth.Binding, "no rate")
		for _, name := range []string{"  all", " limit " + limit, "arrivals " + a.in.arrivals, "shape " + a.in.shape} {
			byKind[name] = append(byKind[name], a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byKind)) {
		t := tallyOf(byKind[name])
		fmt.Fprintf(w, kindRow, name, t.n, t.both, t.exact, t.covered, t.safe, t.highest, quantile(t.sizes, 0.5), quantile(t.sizes, 0.95),
			quantile(t.sizes, 1), t.silent, t.invented, quantile(t.walls, 0.5), quantile(t.walls, 1), quantile(t.trials, 0.5))
	}
}
