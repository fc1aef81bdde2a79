package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/internal/wire"
	"planner/plan"
	"planner/sweep/measure"
)

// Sheet is a named table of unrounded figures, for spreadsheets.
type Sheet struct {
	Name string
	Data Data
}

// Sheet returns the data with a name: "trials", or one of the further sheets.
func (d Document) Sheet(name string) (Data, bool) {
	s, ok := list.Find(append(d.Sheets, Sheet{TrialsSheet, d.Data}), func(s Sheet) bool { return s.Name == name })
	return s.Data, ok
}

// The sheets of a plan.
const (
	TrialsSheet       = "trials"
	AlternativesSheet = "alternatives"
	SensitivitySheet  = "sensitivity"
)

func sheets(p *plan.Plan) []Sheet {
	changes := p.Sensitivity
	if pooled(p) {
		changes = p.Handover.Pools.Sensitivity
	}
	sensitivity := sheet(changes, "if=what safe_rate_per_s instances gpus usd_per_hour usd_for_job gpu_hours_for_job approximate reason",
		func(_ plan.Change, f map[string]string) { dropZeros(f, true) })
	return []Sheet{{AlternativesSheet, alternativesData(fleetChoices(p))}, {SensitivitySheet, sensitivity}}
}

// sheet tabulates figures under their JSON names, such as rate_per_s, or under others: gpus=fleet.gpus. mend, if
// given, changes the figures of a row.
func sheet[T any](rows []T, columns string, mend func(row T, figures map[string]string)) Data {
	var d Data
	var keys []string
	for c := range strings.FieldsSeq(columns) {
		name, key, _ := strings.Cut(c, "=")
		d.Header, keys = append(d.Header, name), append(keys, cmp.Or(key, name))
	}
	for _, row := range rows {
		f := map[string]string{}
		var object map[string]any
		data, err := wire.Marshal(row)
		if err = errors.Join(err, json.Unmarshal(data, &object)); err != nil {
			panic(err) // impossible: run folders store it as JSON
		}
		flatten(f, "", object)
		if mend != nil {
			mend(row, f)
		}
		d.Rows = append(d.Rows, list.Map(keys, func(key string) string { return f[key] }))
	}
	return d
}

// unit matches the unit at the end of a figure's name.
var unit = regexp.MustCompile(`(_ms|_per_s)?$`)

// flatten collects figures. A nested one is named by the keys joined with a dot, but a statistic goes before
// the unit, as in ttft_p99_ms, and an estimate's value has the name of the estimate.
func flatten(out map[string]string, prefix string, object map[string]any) {
	_, estimate := object["value"]
	_, summary := object["p50"]
	for key, v := range object {
		name := prefix + "." + key
		switch {
		case prefix == "":
			name = key
		case key == "value":
			name = prefix
		case estimate || summary:
			name = unit.ReplaceAllString(prefix, "_"+key+"$1")
		}
		switch v := v.(type) {
		case map[string]any:
			flatten(out, name, v)
		case float64:
			out[name] = raw(v)
		case bool, string:
			out[name] = fmt.Sprint(v)
		}
	}
}

// offered are the columns that a buyer compares.
const offered = `gpu feasible gpus=fleet.gpus instances=fleet.instances gpus_per_instance kw=fleet.kw
	usd_per_hour=cost.usd_per_hour usd_per_month=cost.usd_per_month usd_per_year=cost.usd_per_year
	usd_per_million_input_tokens=cost.usd_per_million_input_tokens usd_per_million_output_tokens=cost.usd_per_million_output_tokens
	usd_per_million_tokens=cost.usd_per_million_tokens usd_per_thousand_requests=cost.usd_per_thousand_requests
	times_the_cheapest usd_per_gpu_hour break_even_usd_per_gpu_hour=note.figures.break_even_usd_per_gpu_hour priced_by max_rate_per_s safe_rate_per_s=max_rate_safe_per_s binding
	smallest_feasible_limit_ms=idle.smallest_feasible_limit_ms reason uncalibrated `

func alternativesData(all []plan.Alternative) Data {
	return sheet(all, offered+knobColumns(), func(a plan.Alternative, f map[string]string) {
		dropZeros(f, a.Offer.Priced())
		f["gpu"], f["times_the_cheapest"] = gpuName(&a.Offer), raw(timesOf(&a, &all[0]))
		for _, n := range a.Offer.Warnings.Of(note.Uncalibrated) {
			f["uncalibrated"] = fmt.Sprint(n.Figures["what"])
		}
		if a.Offer.GPUs > 0 { // not several pools
			addKnobs(f, a.Offer.Knobs)
		}
	})
}

// dropZeros removes the zeros of a fleet that does not exist, but keeps known prices of 0.
func dropZeros(f map[string]string, priced bool) {
	maps.DeleteFunc(f, func(key, text string) bool { return text == "0" && !(priced && strings.Contains(key, "usd_")) })
}

// data tabulates trials under the names used in result files, with further columns after the first. Rejected
// configurations measured nothing and are omitted.
func data(trials []measure.Measurement, further ...string) Data {
	columns := "trial " + strings.Join(further, " ") + " rate_per_s concurrency sent_per_s achieved_per_s duration_s requests failed "
	for _, metric := range measure.AllLatencies() {
		for _, q := range measure.Statistics {
			columns += metric.String() + "_" + measure.StatName(q) + "_ms "
		}
	}
	columns += "prompt_tokens_per_s output_tokens_per_s mean_prompt_tokens mean_output_tokens goodput_per_s kv_blocks preemptions prefix_hit_rate " +
		"verdict=verdict.state binding=verdict.binding valid overloaded seed " + knobColumns()
	return sheet(ran(trials), columns, func(m *measure.Measurement, f map[string]string) {
		f["seed"] = strconv.FormatUint(m.Trial.Seed, 10)
		addKnobs(f, m.Trial.Knobs)
	})
}

func knobColumns() string {
	return strings.Join(list.Map(measure.KnobTable, func(n measure.Knob) string { return "knobs." + n.Name }), " ")
}

func addKnobs(f map[string]string, k measure.Knobs) {
	for _, n := range measure.KnobTable {
		f["knobs."+n.Name] = knobText(n, k)
	}
}

// raw prints a figure in full except for floating-point noise; empty if it is not a number.
func raw(v float64) string {
	return where(finite(v), strconv.FormatFloat(stat.Rounded(v, 15), 'f', -1, 64))
}

func told[T any](v *T, print func(T) string) string {
	if v == nil {
		return ""
	}
	return print(*v)
}

// CSV prints data with a header, for spreadsheets and for reading back: 15 digits, empty if unknown. Text that
// a spreadsheet would take for a formula is prefixed with an apostrophe.
func (d Data) CSV() []byte {
	d = shown(d)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range slices.Concat([][]string{d.Header}, d.Rows) {
		safe := list.Map(row, func(s string) string { return where(isFormula(s), "'") + s })
		// A bytes.Buffer never fails, so there is no error to report.
		_ = w.Write(safe)
	}
	w.Flush()
	return b.Bytes()
}

// isFormula reports whether a spreadsheet would take a cell for a formula: also after blanks, and after a sign
// unless the cell is a number.
func isFormula(cell string) bool {
	text := strings.TrimLeftFunc(cell, unicode.IsSpace)
	_, err := strconv.ParseFloat(text, 64)
	return text != "" && strings.ContainsAny(text[:1], "=@+-") && err != nil
}
