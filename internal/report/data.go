package report

import (
	"slices"
	"strconv"
	"time"

	"planner/sweep/measure"
)

// data tabulates trials under the names that result files use, with further columns
// behind the first. Rejected configurations measured nothing and are left out.
func data(trials []measure.Measurement, further ...figure[measure.Measurement]) Data {
	return sheet(ran(trials), slices.Insert(figures(), 1, further...))
}

// figures are the columns of result files.
func figures() []figure[measure.Measurement] {
	var all []figure[measure.Measurement]
	add := func(name string, text func(*measure.Measurement) string) {
		all = append(all, figure[measure.Measurement]{name, text})
	}
	add("trial", func(m *measure.Measurement) string { return strconv.Itoa(m.Trial.Number) })
	add("rate_per_s", func(m *measure.Measurement) string { return positive(m.Trial.Rate) })
	add("concurrency", func(m *measure.Measurement) string { return positive(float64(m.Trial.Concurrency)) })
	add("sent_per_s", func(m *measure.Measurement) string { return raw(m.Sent) })
	add("achieved_per_s", func(m *measure.Measurement) string { return raw(m.Achieved) })
	add("duration_s", func(m *measure.Measurement) string { return known(m.Duration) })
	add("requests", func(m *measure.Measurement) string { return strconv.Itoa(m.Requests) })
	add("failed", func(m *measure.Measurement) string { return strconv.Itoa(m.Failed) })
	for _, metric := range measure.AllLatencies() {
		for _, stat := range stats {
			add(metric.String()+"_"+stat.name+"_ms", func(m *measure.Measurement) string {
				s := m.Latency(metric)
				v := s.Stat(stat.quantile)
				if !resolved(s, v) {
					return ""
				}
				return raw(millis(v))
			})
		}
	}
	add("prompt_tokens_per_s", func(m *measure.Measurement) string { return raw(m.PromptTokens) })
	add("output_tokens_per_s", func(m *measure.Measurement) string { return raw(m.OutputTokens) })
	add("goodput_per_s", func(m *measure.Measurement) string { return raw(m.Goodput) })
	add("kv_blocks", func(m *measure.Measurement) string { return told(m.Server.KVBlocks, strconv.Itoa) })
	add("preemptions", func(m *measure.Measurement) string { return told(m.Server.Preemptions, strconv.Itoa) })
	add("prefix_hit_rate", func(m *measure.Measurement) string { return told(m.Server.HitRate, raw) })
	add("verdict", func(m *measure.Measurement) string {
		return told(m.Verdict, func(v measure.Verdict) string { return v.State.String() })
	})
	add("binding", func(m *measure.Measurement) string {
		return told(m.Verdict, func(v measure.Verdict) string { return v.Binding })
	})
	add("valid", func(m *measure.Measurement) string { return strconv.FormatBool(m.Valid) })
	add("overloaded", func(m *measure.Measurement) string { return strconv.FormatBool(m.Overloaded) })
	add("seed", func(m *measure.Measurement) string { return strconv.FormatUint(m.Trial.Seed, 10) })
	for _, n := range measure.KnobTable {
		// kv_blocks is also what the engine reports.
		add("knobs."+n.Name, func(m *measure.Measurement) string { return knobText(n, m.Trial.Knobs) })
	}
	return all
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

// known is a time in seconds, empty for one that is not known.
func known(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return raw(d.Seconds())
}

func told[T any](v *T, print func(T) string) string {
	if v == nil {
		return ""
	}
	return print(*v)
}
