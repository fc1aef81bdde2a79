package report

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"planner/internal/list"
	"planner/plan"
	"planner/sweep/measure"
)

// Sheet is a named table of unrounded figures, for spreadsheets.
type Sheet struct {
	Name string
	Data Data
}

// Sheet returns the data of a name: "trials", or one of the further sheets.
func (d Document) Sheet(name string) (Data, bool) {
	for _, s := range append(d.Sheets, Sheet{TrialsSheet, d.Data}) {
		if s.Name == name {
			return s.Data, true
		}
	}
	return Data{}, false
}

// The sheets of a plan.
const (
	TrialsSheet       = "trials"
	AlternativesSheet = "alternatives"
	SensitivitySheet  = "sensitivity"
)

// sheets are the tables of a plan that a buyer computes with.
func sheets(p *plan.Plan) []Sheet {
	changes := p.Sensitivity
	if pooled(p) {
		changes = p.Handover.Pools.Sensitivity
	}
	return []Sheet{{AlternativesSheet, alternativesData(p.All())}, {SensitivitySheet, sensitivityData(changes)}}
}

// figure is a column of a sheet whose rows are made of a T.
type figure[T any] struct {
	name string
	text func(*T) string
}

func sheet[T any](rows []*T, columns []figure[T]) Data {
	return Data{
		Header: list.Map(columns, func(c figure[T]) string { return c.name }),
		Rows:   list.Map(rows, func(row *T) []string { return list.Map(columns, func(c figure[T]) string { return c.text(row) }) }),
	}
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

func alternativesData(all []plan.Alternative) Data {
	type row = plan.Alternative
	usd := func(name string, of func(*plan.Cost) *float64) figure[row] {
		return figure[row]{name, func(a *row) string { return told(of(&a.Cost), raw) }}
	}
	columns := []figure[row]{
		{"gpu", func(a *row) string { return gpuName(&a.Offer) }},
		{"feasible", func(a *row) string { return strconv.FormatBool(a.Feasible) }},
		{"gpus", func(a *row) string { return positive(float64(a.Fleet.GPUs)) }},
		{"instances", func(a *row) string { return positive(float64(a.Fleet.Instances)) }},
		{"gpus_per_instance", func(a *row) string { return strconv.Itoa(a.Offer.GPUs) }},
		{"kw", func(a *row) string { return positive(a.Fleet.KW) }},
		usd("usd_per_hour", func(c *plan.Cost) *float64 { return c.PerHour }),
		usd("usd_per_month", func(c *plan.Cost) *float64 { return c.PerMonth }),
		usd("usd_per_year", func(c *plan.Cost) *float64 { return c.PerYear }),
		usd("usd_per_million_input_tokens", func(c *plan.Cost) *float64 { return c.PerMillionInputTokens }),
		usd("usd_per_million_output_tokens", func(c *plan.Cost) *float64 { return c.PerMillionOutputTokens }),
		usd("usd_per_million_tokens", func(c *plan.Cost) *float64 { return c.PerMillionTokens }),
		usd("usd_per_thousand_requests", func(c *plan.Cost) *float64 { return c.PerThousandRequests }),
		{"times_the_cheapest", func(a *row) string { return raw(timesOf(a, &all[0])) }},
		{"usd_per_gpu_hour", func(a *row) string { return positive(a.Offer.PricePerGPUHour) }},
		{"priced_by", func(a *row) string { return a.Offer.PricedBy }},
		{"max_rate_per_s", func(a *row) string { return positive(a.Offer.Rate.Value) }},
		{"safe_rate_per_s", func(a *row) string { return positive(a.Offer.Rate.Safe) }},
		{"binding", func(a *row) string { return a.Offer.Binding }},
		{"smallest_feasible_limit_ms", func(a *row) string {
			return told(a.Offer.Idle, func(i plan.IdleLatency) string { return raw(i.Feasible) })
		}},
		{"reason", func(a *row) string { return a.Reason.Text }},
	}
	for _, n := range measure.KnobTable {
		columns = append(columns, figure[row]{"knobs." + n.Name, func(a *row) string { return knobText(n, a.Offer.Knobs) }})
	}
	return sheet(pointers(all), columns)
}

func sensitivityData(all []plan.Change) Data {
	type row = plan.Change
	return sheet(pointers(all), []figure[row]{
		{"if", func(c *row) string { return c.What }},
		{"safe_rate_per_s", func(c *row) string { return positive(c.SafeRate) }},
		{"instances", func(c *row) string { return positive(float64(c.Instances)) }},
		{"gpus", func(c *row) string { return positive(float64(c.GPUs)) }},
		{"usd_per_hour", func(c *row) string { return told(c.PerHour, raw) }},
		{"approximate", func(c *row) string { return strconv.FormatBool(c.Approximate) }},
		{"reason", func(c *row) string { return c.Reason.Text }},
	})
}

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
	add("duration_s", func(m *measure.Measurement) string { return nonNegative(m.Duration.Seconds()) })
	add("requests", func(m *measure.Measurement) string { return strconv.Itoa(m.Requests) })
	add("failed", func(m *measure.Measurement) string { return strconv.Itoa(m.Failed) })
	for _, metric := range measure.AllLatencies() {
		for _, stat := range stats {
			add(metric.String()+"_"+stat.name+"_ms", func(m *measure.Measurement) string {
				s := m.Latency(metric)
				if v := s.Stat(stat.quantile); resolved(s, v) {
					return raw(millis(v))
				}
				return ""
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

// raw prints a figure in full but for what floating point adds to decimals, empty if it is
// no number.
func raw(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(round(v, 15), 'f', -1, 64)
}

// positive is raw for figures that are 0 when unknown, told for those that are nil.
func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	return raw(v)
}

// nonNegative is raw for figures that are below 0 when unknown.
func nonNegative(v float64) string {
	if v < 0 {
		return ""
	}
	return raw(v)
}

func told[T any](v *T, print func(T) string) string {
	if v == nil {
		return ""
	}
	return print(*v)
}

// CSV prints data with a header, for spreadsheets and for reading back: 15 digits,
// empty where a figure is not known. A text that a spreadsheet would take for a formula is
// led by an apostrophe.
func (d Data) CSV() []byte {
	d = shown(d)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range slices.Concat([][]string{d.Header}, d.Rows) {
		safe := list.Map(row, func(s string) string {
			if isFormula(s) {
				return "'" + s
			}
			return s
		})
		// A bytes.Buffer takes every write, so there is no error to report.
		_ = w.Write(safe)
	}
	w.Flush()
	return b.Bytes()
}

// isFormula reports whether a spreadsheet takes a cell for a formula: also behind blanks,
// and behind a sign unless the cell is a number.
func isFormula(cell string) bool {
	text := strings.TrimLeftFunc(cell, unicode.IsSpace)
	_, err := strconv.ParseFloat(text, 64)
	return text != "" && strings.ContainsAny(text[:1], "=@+-") && err != nil
}
