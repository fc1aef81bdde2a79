package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"planner/model"
)

// columns are the figures of the table that are milliseconds, with their formats.
var columns = []struct {
	metric metric
	format string
}{{metricTTFT, "%.1f"}, {metricE2E, "%.0f"}, {metricTPOT, "%.2f"}, {metricP99, "%.1f"}, {metricCompleted, "%.3f"}}

// printTable writes one line a load: predicted, measured and the difference in percent,
// and the same difference with constants that never saw this model on this GPU.
func printTable(w io.Writer, servers []server, got, unseen [][]figures) {
	fmt.Fprintf(w, "%-28s %-34s", "file", "load")
	for _, c := range columns {
		unit := " (ms)"
		if c.metric.name == metricCompleted.name {
			unit = ""
		}
		fmt.Fprintf(w, " | %-29s", c.metric.name+unit+" model / real / %")
	}
	fmt.Fprintf(w, " | left out %%: TTFT TPOT\n")
	for i := range servers {
		s := &servers[i]
		for k := range s.loads {
			l := &s.loads[k]
			fmt.Fprintf(w, "%-28s %-34s", strings.TrimSuffix(s.file, ".csv"), l.label)
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
	if m.of(measured) == 0 {
		return fmt.Sprintf("%9s %9s %8s", fmt.Sprintf(format, m.of(predicted)), "-", "")
	}
	return fmt.Sprintf("%9s %9s %8s", fmt.Sprintf(format, m.of(predicted)), fmt.Sprintf(format, m.of(measured)), percent(errorOf(m, predicted, measured)))
}

func percent(e float64) string {
	if math.IsNaN(e) {
		return "-"
	}
	return fmt.Sprintf("%+.1f", e)
}

// printGroups writes the mean absolute errors of every group, and of every model on a
// GPU with and without it in the fit.
func printGroups(w io.Writer, servers []server, got, unseen [][]figures) {
	fmt.Fprintf(w, "\n%-42s %5s", "mean absolute error, percent", "loads")
	for _, c := range columns {
		fmt.Fprintf(w, " %12s", c.metric.name)
	}
	fmt.Fprintf(w, "   left out: %6s %6s %6s\n", "TTFT", "E2E", "TPOT")
	line := func(name string, belongs func(*server) bool) {
		fmt.Fprintf(w, "%-42s %5d", name, len(errorsOf(servers, got, metricTPOT, belongs)))
		for _, c := range columns {
			fmt.Fprintf(w, " %12s", average(errorsOf(servers, got, c.metric, belongs)))
		}
		if unseen != nil {
			fmt.Fprintf(w, "   %9s", "")
			for _, m := range []metric{metricTTFT, metricE2E, metricTPOT} {
				fmt.Fprintf(w, " %6s", average(errorsOf(servers, unseen, m, belongs)))
			}
		}
		fmt.Fprintln(w)
	}
	for _, g := range names(servers, func(s *server) string { return s.group }) {
		line(g, func(s *server) bool { return s.group == g })
	}
	fmt.Fprintln(w)
	for _, m := range names(servers, func(s *server) string { return s.model }) {
		line(m+" (not overloaded)", func(s *server) bool { return s.model == m && s.group != groupOverload })
	}
}

func average(e []float64) string {
	if len(e) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", mean(e))
}

// names lists what servers are called, in order of first mention.
func names(servers []server, of func(*server) string) []string {
	var out []string
	for i := range servers {
		if n := of(&servers[i]); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// printOmitted lists what is not counted, and why.
func printOmitted(w io.Writer, servers []server) {
	fmt.Fprintln(w, "\nnot counted in the errors:")
	for i := range servers {
		for _, l := range servers[i].loads {
			if l.omitted != "" {
				fmt.Fprintf(w, "  %-34s %s\n", l.label, l.omitted)
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
