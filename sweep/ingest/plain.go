package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

func isPlain(head []byte) bool {
	for line := range bytes.Lines(head) {
		text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")))
		if text != "" && !strings.HasPrefix(text, "#") {
			return !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") && strings.Contains(text, "rate_per_s")
		}
	}
	return false
}

// plainColumn knows how to put a cell of a plain CSV into a measurement.
type plainColumn struct {
	name    string
	latency bool
	set     func(m *measure.Measurement, cell string) error
}

// plainCSV reads a table of measured load points: one row a point, a header
// that names the columns, numbers with a decimal point. Lines that begin with #
// are comments, and an empty cell is a figure that is not known. Columns are
// rate_per_s (needed), at least one latency such as ttft_p99_ms ({ttft, tpot,
// itl, e2e} x {mean, p50, p90, p95, p99, p99.9}), and what plainColumns lists.
// All problems are reported at once, joined, each a *FileError.
func (p *pointReader) plainCSV(data []byte) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	r.Comment = '#'
	r.TrimLeadingSpace = true
	var columns []plainColumn
	for {
		cells, err := r.Read()
		var wrong *csv.ParseError
		switch {
		case errors.As(err, &wrong):
			p.line = wrong.Line
			p.fail("", "%v", wrong.Err)
		case err != nil && columns == nil:
			p.fail("", "no header: the first line names the columns, rate_per_s and latencies such as ttft_p99_ms")
		case err != nil && len(p.points) == 0 && len(p.problems) == 0:
			p.line = 0
			p.fail("", "no rows below the header")
		case err == nil && columns == nil:
			p.line = 1
			if columns = p.plainHeader(cells); len(p.problems) > 0 {
				err = p.problems[0]
			}
		case err == nil:
			p.line, _ = r.FieldPos(0)
			p.plainRow(columns, cells)
		}
		if err != nil || len(p.problems) == mostProblems {
			return errors.Join(p.problems...)
		}
	}
}

func (p *pointReader) plainHeader(names []string) (columns []plainColumn) {
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t") {
		p.fail("", "the columns are separated by semicolons or tabs, want commas, and points in the numbers")
		return nil
	}
	rate, latency := false, false
	for _, n := range names {
		n = strings.ToLower(strings.TrimSpace(n))
		c, ok := plainColumnOf(n)
		if !ok {
			names := list.Map(plainColumns(), func(c plainColumn) string { return c.name })
			p.fail(n, "unknown column; allowed: {ttft,tpot,itl,e2e}_{%s}_ms, %s", strings.Join(measure.Stats(), ","), strings.Join(names, ", "))
		}
		if ok && slices.ContainsFunc(columns, func(x plainColumn) bool { return x.name == n }) {
			p.fail(n, "the column is there twice")
		}
		rate, latency = rate || n == "rate_per_s", latency || c.latency
		columns = append(columns, c)
	}
	if !rate {
		p.fail("rate_per_s", "the column is missing")
	}
	if !latency {
		p.fail("", "no column of latencies, such as ttft_p99_ms")
	}
	return columns
}

func (p *pointReader) plainRow(columns []plainColumn, cells []string) {
	p.m = newMeasurement()
	latencies, before := 0, len(p.problems)
	for i, c := range columns {
		cell := strings.TrimSpace(cells[i])
		if cell == "" {
			if c.name == "rate_per_s" {
				p.fail(c.name, "is empty; every row needs a rate")
			}
			continue
		}
		if err := c.set(&p.m, cell); err != nil {
			p.fail(c.name, "%v", err)
		} else if c.latency {
			latencies++
		}
	}
	if latencies == 0 && len(p.problems) == before {
		p.fail("", "no latency in this row")
	}
	for metric := measure.TTFT; metric <= measure.E2E && p.m.Requests > 0; metric++ {
		p.m.Latency(metric).N = p.m.Requests - p.m.Failed
	}
	p.add()
}

// plainColumns are the columns of a plain CSV, without those of latencies.
func plainColumns() []plainColumn {
	columns := []plainColumn{
		column("rate_per_s", positive, func(m *measure.Measurement) *float64 { return &m.Trial.Rate }),
		column("achieved_per_s", positive, func(m *measure.Measurement) *float64 { return &m.Achieved }),
		column("sent_per_s", positive, func(m *measure.Measurement) *float64 { return &m.Sent }),
		column("output_tokens_per_s", positive, func(m *measure.Measurement) *float64 { return &m.OutputTokens }),
		column("prompt_tokens_per_s", positive, func(m *measure.Measurement) *float64 { return &m.PromptTokens }),
		column("requests", whole(1), func(m *measure.Measurement) *int { return &m.Requests }),
		column("failed", whole(0), func(m *measure.Measurement) *int { return &m.Failed }),
		{name: "duration_s", set: func(m *measure.Measurement, cell string) (err error) {
			m.Duration, err = timeCell(cell, "s is no duration of a trial", time.Second)
			m.Trial.Window = m.Duration
			return err
		}},
	}
	for _, k := range measure.KnobTable {
		columns = append(columns, plainColumn{name: k.Name, set: func(m *measure.Measurement, cell string) error { return setKnob(k, &m.Trial.Knobs, cell) }})
	}
	return columns
}

// plainColumnOf finds the column of a name, those of latencies by names such as
// ttft_p99_ms.
func plainColumnOf(name string) (plainColumn, bool) {
	columns := plainColumns()
	if i := slices.IndexFunc(columns, func(c plainColumn) bool { return c.name == name }); i >= 0 {
		return columns[i], true
	}
	base, ok := strings.CutSuffix(name, "_ms")
	metricName, stat, _ := strings.Cut(base, "_")
	metric, errMetric := measure.ParseMetric(metricName)
	q, errStat := measure.ParseStat(stat)
	return plainColumn{name: name, latency: true, set: func(m *measure.Measurement, cell string) error {
		d, err := timeCell(cell, "ms is no latency", time.Millisecond)
		if err == nil {
			m.Latency(metric).Set(q, d)
		}
		return err
	}}, ok && errMetric == nil && errStat == nil
}

// column is one whose cells are read into a field.
func column[T any](name string, read func(string) (T, error), field func(*measure.Measurement) *T) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) (err error) {
		*field(m), err = read(cell)
		return err
	}}
}

func setKnob(k measure.Knob, to *measure.Knobs, cell string) (err error) {
	var v any
	switch k.Zero().(type) {
	case int:
		v, err = whole(1)(cell)
	case float64:
		if v, err = positive(cell); err != nil || v.(float64) > 1 {
			err = fmt.Errorf("%s is no share in 0..1", cell)
		}
	case bool:
		if v, err = strconv.ParseBool(cell); err != nil {
			err = fmt.Errorf("%q is neither true nor false", cell)
		}
	default:
		v = cell
	}
	if err == nil {
		k.Set(to, v)
	}
	return err
}

func whole(least int) func(cell string) (int, error) {
	return func(cell string) (int, error) {
		n, err := strconv.Atoi(cell)
		if err != nil || n < least {
			return 0, fmt.Errorf("%q is not a whole number of at least %d", cell, least)
		}
		return n, nil
	}
}

func timeCell(cell, complaint string, unit time.Duration) (time.Duration, error) {
	v, err := positive(cell)
	if err != nil {
		return 0, err
	}
	d, ok := duration(v, unit)
	if !ok || d == 0 {
		return 0, fmt.Errorf("%s %s", cell, complaint)
	}
	return d, nil
}

func positive(cell string) (float64, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
		return 0, fmt.Errorf("%q is not a finite number above 0", cell)
	}
	return v, nil
}
