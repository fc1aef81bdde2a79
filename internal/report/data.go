package report

import (
	"strconv"
	"time"

	"planner/sweep/measure"
)

// data tabulates trials under the names that result files use. Rejected
// configurations measured nothing and are left out.
func data(trials []measure.Measurement) Data {
	d := Data{Header: []string{"trial", "rate_per_s", "concurrency", "sent_per_s", "achieved_per_s", "duration_s", "requests", "failed"}}
	for _, metric := range []string{"ttft", "tpot", "itl", "e2e"} {
		for _, stat := range []string{"mean", "p50", "p90", "p95", "p99", "p99.9"} {
			d.Header = append(d.Header, metric+"_"+stat+"_ms")
		}
	}
	d.Header = append(d.Header, "prompt_tokens_per_s", "output_tokens_per_s", "goodput_per_s", "kv_blocks", "preemptions", "prefix_hit_rate",
		"verdict", "binding", "valid", "overloaded", "seed")
	for _, n := range measure.KnobTable {
		d.Header = append(d.Header, "knobs."+n.Name) // kv_blocks is also what the engine reports
	}
	for i := range trials {
		if m := &trials[i]; m.Rejected == "" {
			d.Rows = append(d.Rows, dataRow(m))
		}
	}
	return d
}

func dataRow(m *measure.Measurement) []string {
	row := []string{strconv.Itoa(m.Trial.Number), positive(m.Trial.Rate), "", raw(m.Sent), raw(m.Achieved), raw(m.Duration.Seconds()),
		strconv.Itoa(m.Requests), strconv.Itoa(m.Failed)}
	if m.Trial.Closed() {
		row[2] = strconv.Itoa(m.Trial.Concurrency)
	}
	for _, s := range []measure.Summary{m.TTFT, m.TPOT, m.ITL, m.E2E} {
		for _, v := range []time.Duration{s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999} {
			if !resolved(&s, v) {
				row = append(row, "")
				continue
			}
			row = append(row, raw(millis(v)))
		}
	}
	row = append(row, raw(m.PromptTokens), raw(m.OutputTokens), raw(m.Goodput), told(m.Server.KVBlocks, strconv.Itoa),
		told(m.Server.Preemptions, strconv.Itoa), told(m.Server.HitRate, raw))
	state, binding := "", ""
	if m.Verdict != nil {
		state, binding = m.Verdict.State.String(), m.Verdict.Binding
	}
	row = append(row, state, binding, strconv.FormatBool(m.Valid), strconv.FormatBool(m.Overloaded), strconv.FormatUint(m.Trial.Seed, 10))
	for _, n := range measure.KnobTable {
		row = append(row, knobText(n, m.Trial.Knobs))
	}
	return row
}

// raw prints a figure in full, empty if it is no number.
func raw(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// positive is raw for figures that are 0 when unknown, told for those that are nil
// then.
func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	return raw(v)
}

func told[T int | float64](v *T, print func(T) string) string {
	if v == nil {
		return ""
	}
	return print(*v)
}
