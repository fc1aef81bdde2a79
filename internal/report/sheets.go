package report

import (
	"strconv"

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
	if name == TrialsSheet {
		return d.Data, true
	}
	for _, s := range d.Sheets {
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
	return []Sheet{{AlternativesSheet, alternativesData(p.All())}, {SensitivitySheet, sensitivityData(p.Sensitivity)}}
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
	var out []*T
	for i := range all {
		out = append(out, &all[i])
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
