package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/measure"
)

// PlainCSV reads a table of measured load points: one row a point, a header
// that names the columns, numbers with a decimal point. Lines that begin with #
// are comments, and an empty cell is a figure that is not known. Columns are
// rate_per_s (needed), at least one latency such as ttft_p99_ms ({ttft, tpot,
// itl, e2e} x {mean, p50, p90, p95, p99, p99.9}), and what plainColumns lists.
// All problems are reported at once, joined, each a *FileError.
func PlainCSV(name string, data []byte) (*Results, error) {
	t := &plainTable{name: name}
	t.read(data)
	if len(t.problems) > 0 {
		return nil, errors.Join(t.problems...)
	}
	return &Results{Format: "csv", Measurements: t.rows}, nil
}

// mostProblems is how many problems of one file are reported.
const mostProblems = 20

type plainTable struct {
	name     string
	columns  []plainColumn
	rows     []measure.Measurement
	problems []error
}

// plainColumn knows how to put a cell into a measurement.
type plainColumn struct {
	name    string
	latency bool
	set     func(m *measure.Measurement, cell string) error
}

func (t *plainTable) problem(line int, field, format string, a ...any) {
	if len(t.problems) < mostProblems {
		t.problems = append(t.problems, &FileError{t.name, line, field, fmt.Sprintf(format, a...)})
	}
}

func (t *plainTable) read(data []byte) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	r.Comment = '#'
	r.TrimLeadingSpace = true
	header, err := r.Read()
	if err != nil {
		t.unreadable(err, "no header: the first line names the columns, rate_per_s and latencies such as ttft_p99_ms")
		return
	}
	if t.header(header); len(t.problems) > 0 {
		return
	}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.unreadable(err, "")
			return
		}
		line, _ := r.FieldPos(0)
		t.row(line, cells)
	}
	if len(t.rows) == 0 && len(t.problems) == 0 {
		t.problem(0, "", "no rows below the header")
	}
}

// unreadable reports what encoding/csv refuses, with its own line.
func (t *plainTable) unreadable(err error, atEnd string) {
	var p *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		t.problem(0, "", "%s", atEnd)
	case errors.As(err, &p):
		t.problem(p.Line, "", "%v", p.Err)
	default:
		t.problem(0, "", "%v", err)
	}
}

func (t *plainTable) header(names []string) {
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t") {
		t.problem(1, "", "the columns are separated by semicolons or tabs, want commas, and points in the numbers")
		return
	}
	var seen []string
	for _, n := range names {
		n = strings.ToLower(strings.TrimSpace(n))
		c, ok := plainColumnOf(n)
		switch {
		case !ok:
			t.problem(1, n, "unknown column; allowed: %s", strings.Join(plainHeader(), ", "))
		case slices.Contains(seen, n):
			t.problem(1, n, "the column is there twice")
		}
		seen = append(seen, n)
		t.columns = append(t.columns, c)
	}
	if !slices.Contains(seen, "rate_per_s") {
		t.problem(1, "rate_per_s", "the column is missing")
	}
	if !slices.ContainsFunc(t.columns, func(c plainColumn) bool { return c.latency }) {
		t.problem(1, "", "no column of latencies, such as ttft_p99_ms")
	}
}

func (t *plainTable) row(line int, cells []string) {
	m := newMeasurement()
	m.Trial.Number = len(t.rows) + 1
	latencies, before := 0, len(t.problems)
	for i, cell := range cells {
		c := t.columns[i]
		cell = strings.TrimSpace(cell)
		if cell == "" {
			if c.name == "rate_per_s" {
				t.problem(line, c.name, "is empty; every row needs a rate")
			}
			continue
		}
		if err := c.set(&m, cell); err != nil {
			t.problem(line, c.name, "%v", err)
			continue
		}
		if c.latency {
			latencies++
		}
	}
	if latencies == 0 && len(t.problems) == before {
		t.problem(line, "", "no latency in this row")
	}
	for metric := measure.TTFT; metric <= measure.E2E; metric++ {
		if err := ordered(m.Latency(metric)); err != nil {
			t.problem(line, metric.String(), "%v", err)
		}
	}
	if m.Failed > m.Requests && m.Requests > 0 {
		t.problem(line, "failed", "%d of %d requests", m.Failed, m.Requests)
	}
	if m.Requests > 0 {
		for metric := measure.TTFT; metric <= measure.E2E; metric++ {
			m.Latency(metric).N = m.Requests - m.Failed
		}
	}
	t.rows = append(t.rows, m)
}

// plainColumns are the columns of a plain CSV, without those of latencies.
func plainColumns() []plainColumn {
	columns := []plainColumn{
		number("rate_per_s", func(m *measure.Measurement) *float64 { return &m.Trial.Rate }),
		number("achieved_per_s", func(m *measure.Measurement) *float64 { return &m.Achieved }),
		number("sent_per_s", func(m *measure.Measurement) *float64 { return &m.Sent }),
		number("output_tokens_per_s", func(m *measure.Measurement) *float64 { return &m.OutputTokens }),
		number("prompt_tokens_per_s", func(m *measure.Measurement) *float64 { return &m.PromptTokens }),
		count("requests", 1, func(m *measure.Measurement) *int { return &m.Requests }),
		count("failed", 0, func(m *measure.Measurement) *int { return &m.Failed }),
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

// plainHeader lists the columns of a plain CSV.
func plainHeader() []string {
	names := []string{"{ttft,tpot,itl,e2e}_{" + strings.Join(measure.Stats(), ",") + "}_ms"}
	for _, c := range plainColumns() {
		names = append(names, c.name)
	}
	return names
}

// plainColumnOf finds the column of a name, those of latencies by names such as
// ttft_p99_ms.
func plainColumnOf(name string) (plainColumn, bool) {
	for _, c := range plainColumns() {
		if c.name == name {
			return c, true
		}
	}
	base, ok := strings.CutSuffix(name, "_ms")
	metricName, stat, _ := strings.Cut(base, "_")
	metric, errMetric := measure.ParseMetric(metricName)
	q, errStat := measure.ParseStat(stat)
	if !ok || errMetric != nil || errStat != nil {
		return plainColumn{}, false
	}
	return plainColumn{name: name, latency: true, set: func(m *measure.Measurement, cell string) error {
		d, err := timeCell(cell, "ms is no latency", time.Millisecond)
		if err == nil {
			m.Latency(metric).Set(q, d)
		}
		return err
	}}, true
}

func number(name string, field func(*measure.Measurement) *float64) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) (err error) {
		*field(m), err = positive(cell)
		return err
	}}
}

func count(name string, least int, field func(*measure.Measurement) *int) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) (err error) {
		*field(m), err = whole(cell, least)
		return err
	}}
}

// setKnob gives a knob the value of a cell.
func setKnob(k measure.Knob, to *measure.Knobs, cell string) (err error) {
	var v any
	switch k.Zero().(type) {
	case int:
		v, err = whole(cell, 1)
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

func whole(cell string, least int) (int, error) {
	n, err := strconv.Atoi(cell)
	if err != nil || n < least {
		return 0, fmt.Errorf("%q is not a whole number of at least %d", cell, least)
	}
	return n, nil
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

// positive reads a finite number above 0.
func positive(cell string) (float64, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
		return 0, fmt.Errorf("%q is not a finite number above 0", cell)
	}
	return v, nil
}
