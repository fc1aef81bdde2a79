package report

import (
	"fmt"
	"strings"

	"planner/internal/list"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// either returns one of two values, by whether a condition holds.
func either[T any](holds bool, then, otherwise T) T {
	if holds {
		return then
	}
	return otherwise
}

// where returns a text if a condition holds, and "" otherwise.
func where(holds bool, text string) string { return either(holds, text, "") }

// said returns the texts that are not empty.
func said(texts ...string) []string {
	return list.Filter(texts, func(text string) bool { return text != "" })
}

// behind returns a text preceded by the joint to its sentence; "" if the text is empty.
func behind(joint, text string) string { return where(text != "", joint+text) }

// costing prints a known amount at the end of a sentence: ", $83.72 per hour".
func costing(usd *float64, per string) string {
	return told(usd, func(v float64) string { return ", " + money(v) + per })
}

// meantBy adds to a rate which of its trace's rates it is, if any.
func meantBy(words string, of *workload.Rates) string {
	return strings.TrimRight(words+" "+of.Meant(), " ")
}

// rateMeant prints a rate and which of its trace's rates it is, if any.
func rateMeant(v float64, of *workload.Rates) string { return meantBy(rate(v), of) }

// traced returns the rates of the requests' trace and which of them loads refer to; nothing without a trace.
func traced(of *workload.Rates) Facts {
	if of == nil {
		return nil
	}
	return Facts{{Label: "trace", Text: traceRates(of) + "; loads are told by the rate " + of.Meant()}}
}

func traceRates(of *workload.Rates) string {
	return fmt.Sprintf("%s requests/s in the mean, %s in its busiest hour and %s in its busiest minute",
		number(of.Mean, 3), number(of.BusiestHour, 3), number(of.BusiestMinute, 3))
}

// boundName turns "ttft.p99" into "p99 TTFT", and "ttft.p99 of chat" into "p99 TTFT of chat".
func boundName(bound string) string {
	switch bound {
	case "":
		return unknown
	case measure.ErrorsBound:
		return "failed requests"
	}
	name, class, _ := strings.Cut(bound, " ")
	if metric, stat, ok := strings.Cut(name, "."); ok {
		name = stat + " " + strings.ToUpper(metric)
	}
	return strings.TrimSpace(name + " " + class)
}

// objective lists the bounds: "p99 TTFT 500 ms and p99 TPOT 50 ms"; those of classes as "p99 TTFT 500 ms of
// chat".
func objective(s measure.SLO) string {
	var parts []string
	for _, class := range append([]string{""}, s.Classes()...) {
		own := list.Map(s.Of(class).Bounds, func(b measure.Bound) string {
			return either(b.Metric == measure.Goodput, percent(b.Quantile)+" of requests within ", boundName(b.String())+" ") + limits(b)
		})
		if class != "" && len(own) > 0 {
			own = []string{join(own) + " of " + class}
		}
		parts = append(parts, own...)
	}
	return join(parts)
}

// limits prints the limit of a bound, or all limits of a goodput: "TTFT 500 ms and TPOT 50 ms".
func limits(b measure.Bound) string {
	parts := list.Map(b.Limits.Parts(b.Quantile), func(p measure.Bound) string { return strings.ToUpper(p.Metric.String()) + " " + limit(p.Limit) })
	return either(b.Metric == measure.Goodput, join(parts), limit(b.Limit))
}

// join lists items as in a sentence: "a, b and c".
func join(parts []string) string {
	n := len(parts)
	if n < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
}

// verdict returns the state of a measurement as a cell. An invalid one has no state, unless it missed by more
// than its client explains.
func verdict(m *measure.Measurement) Cell {
	switch {
	case !m.Ran():
		return Cell{"rejected", Bad}
	case !m.Valid && !m.Missed():
		return Cell{"invalid", Doubt}
	case m.Verdict == nil:
		return Cell{unknown, Plain}
	}
	return verdicts[m.Verdict.State]
}

var verdicts = map[measure.State]Cell{measure.Met: {"met", Good}, measure.Missed: {"missed", Bad}, measure.Unsure: {"unsure", Doubt}}
