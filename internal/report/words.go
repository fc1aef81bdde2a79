package report

import (
	"strings"

	"planner/sweep/measure"
)

// boundName turns "ttft.p99" into "p99 TTFT".
func boundName(bound string) string {
	switch bound {
	case "":
		return unknown
	case measure.ErrorsBound:
		return "failed requests"
	}
	metric, stat, ok := strings.Cut(bound, ".")
	if !ok {
		return bound
	}
	return stat + " " + strings.ToUpper(metric)
}

// objective lists the bounds: "p99 TTFT 500 ms and p99 TPOT 50 ms".
func objective(s measure.SLO) string {
	parts := make([]string, len(s.Bounds))
	for i, b := range s.Bounds {
		parts[i] = boundName(b.String()) + " " + limits(b)
		if b.Metric == measure.Goodput {
			parts[i] = percent(b.Quantile) + " of requests within " + limits(b)
		}
	}
	return join(parts)
}

// limits is the limit of a bound, with goodput all of them: "TTFT 500 ms and
// TPOT 50 ms".
func limits(b measure.Bound) string {
	if b.Metric != measure.Goodput {
		return limit(b.Limit)
	}
	var parts []string
	for _, p := range b.Limits.Parts(b.Quantile) {
		parts = append(parts, strings.ToUpper(p.Metric.String())+" "+limit(p.Limit))
	}
	return join(parts)
}

// join lists things as a sentence does: "a, b and c".
func join(parts []string) string {
	switch n := len(parts); n {
	case 0:
		return ""
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

// verdict tells the state of a measurement as a table cell. One that is not valid
// has no state, unless it missed by more than its client explains.
func verdict(m *measure.Measurement) Cell {
	switch {
	case m.Rejected.Text != "":
		return Cell{"rejected", Bad}
	case !m.Valid && (m.Verdict == nil || m.Verdict.State != measure.Missed):
		return Cell{"invalid", Doubt}
	case m.Verdict == nil:
		return Cell{unknown, Plain}
	}
	switch m.Verdict.State {
	case measure.Met:
		return Cell{"met", Good}
	case measure.Missed:
		return Cell{"missed", Bad}
	}
	return Cell{"unsure", Doubt}
}
