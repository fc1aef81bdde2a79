package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"planner/internal/list"
	"planner/model"
)

// columns are the figures of the table that are milliseconds, with their formats.
var columns = []struct {
	metric metric
	format string
}{{metricTTFT, "%.1f"}, {metricE2E, "%.0f"}, {metricTPOT, "%.2f"}, {metricP99, "%.1f"}, {metricCompleted, "%.3f"}}

// printTable writes one line a load: predicted, measured and the difference in percent,
// and the same difference with constants that never saw this model.
func printTable(w io.Writer, servers []server, got, unseen [][]figures) {
	fmt.Fprintf(w, "%-28s %-46s", "file", "load")
	for _, c := range columns {
		unit := " (ms)"
		if c.metric == metricCompleted {
			unit = ""
		}
		fmt.Fprintf(w, " | %-29s", c.metric.String()+unit+" model / real / %")
	}
	fmt.Fprintf(w, " | left out %%: TTFT TPOT\n")
	for i := range servers {
		s := &servers[i]
		for k := range s.loads {
			l := &s.loads[k]
			fmt.Fprintf(w, "%-28s %-46s", strings.TrimSuffix(s.file, ".csv"), l.label)
			for _, c := range columns {
				fmt.Fprintf(w, " | %-29s", cell(c.metric, c.format, &got[i][k], &l.measured))
			}
			if unseen != nil {
				fmt.Fprintf(w, " | %9s %9s", percent(errorOf(metricTTFT, &unseen[i][k], &l.measured)), percent(errorOf(metricTPOT, &unseen[i][k], &l.measured)))
			}
			if l.omitted != "" {
				fmt.Fprint(w, "  not counted")
			}
			fmt.Fprintln(w)
		}
	}
}

// cell writes one figure: predicted, measured and the difference in percent.
func cell(m metric, format string, predicted, measured *figures) string {
	if measured[m] == 0 {
		return fmt.Sprintf("%9s %9s %8s", fmt.Sprintf(format, predicted[m]), "-", "")
	}
	return fmt.Sprintf("%9s %9s %8s", fmt.Sprintf(format, predicted[m]), fmt.Sprintf(format, measured[m]), percent(errorOf(m, predicted, measured)))
}

func percent(e float64) string {
	if math.IsNaN(e) {
		return "-"
	}
	return fmt.Sprintf("%+.1f", e)
}

// printGroups writes the mean absolute errors of every group, and of every model on a
// GPU, with and without it in the fit, where that was made; medians behind strokes.
func printGroups(w io.Writer, servers []server, got, unseenModel, unseenGPU [][]figures) {
	fmt.Fprintf(w, "\n%-42s %5s", "absolute error, percent: mean/median", "loads")
	for _, c := range columns {
		fmt.Fprintf(w, " %11s", c.metric)
	}
	left := []struct {
		name string
		got  [][]figures
	}{{"model", unseenModel}, {"GPU", unseenGPU}}
	for _, l := range left {
		if l.got != nil {
			fmt.Fprintf(w, " | without the %s: %9s %9s %9s", l.name, "TTFT", "E2E", "TPOT")
		}
	}
	fmt.Fprintln(w)
	line := func(name string, belongs func(*server) bool) {
		fmt.Fprintf(w, "%-42s %5d", name, len(errorsOf(servers, got, metricTPOT, belongs)))
		for _, c := range columns {
			fmt.Fprintf(w, " %11s", average(errorsOf(servers, got, c.metric, belongs)))
		}
		for _, l := range left {
			if l.got == nil {
				continue
			}
			fmt.Fprintf(w, " | %*s", len("without the :")+len(l.name), "")
			for _, m := range []metric{metricTTFT, metricE2E, metricTPOT} {
				fmt.Fprintf(w, " %9s", average(errorsOf(servers, l.got, m, belongs)))
			}
		}
		fmt.Fprintln(w)
	}
	for _, g := range names(servers, func(s *server) string { return s.group }) {
		line(g, func(s *server) bool { return s.group == g })
	}
	fmt.Fprintln(w)
	pair := func(s *server) string {
		return fmt.Sprintf("%s %s, %s", s.model(), s.dep.Precision.Weights, s.gpu())
	}
	for _, m := range names(servers, pair) {
		line(m, func(s *server) bool { return pair(s) == m && s.group != groupOverload })
	}
}

func average(e []float64) string {
	if len(e) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f/%.1f", mean(e), quantile(e, 0.5))
}

// names lists what servers are called, in order of first mention.
func names(servers []server, of func(*server) string) []string {
	return list.Distinct(list.Map(servers, func(s server) string { return of(&s) }))
}

// printOmitted lists what is not counted, and why.
func printOmitted(w io.Writer, servers []server) {
	fmt.Fprintln(w, "\nnot counted in the errors:")
	for i := range servers {
		for _, l := range servers[i].loads {
			if l.omitted != "" {
				fmt.Fprintf(w, "  %-46s %s\n", l.label, l.omitted)
			}
		}
	}
}

// printPools compares pools that engines reported with the computed ones.
func printPools(w io.Writer, servers []server) error {
	fmt.Fprintln(w, "\nKV blocks, reported (and used) / computed:")
	for i := range servers {
		s := &servers[i]
		if s.pool == 0 {
			continue
		}
		l := s.limits
		l.KVBlocks = 0
		m, err := model.MemoryPlan(s.dep, l)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %-32s %6d / %6d %+.1f %%\n", s.file, s.pool, m.Blocks, 100*(float64(m.Blocks)/float64(s.pool)-1))
	}
	return nil
}
