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
// itl, e2e} x {mean, p50, p90, p95, p99, p99.9}), and what plainHeader lists.
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
	name string
	// latency and quantile are set for columns of latencies.
	latency  measure.Metric
	quantile float64
	set      func(m *measure.Measurement, cell string) error
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
	if !slices.ContainsFunc(t.columns, func(c plainColumn) bool { return c.latency != 0 }) {
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
		if c.latency != 0 {
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

// plainColumnOf finds the column of a name.
func plainColumnOf(name string) (plainColumn, bool) {
	if c, ok := latencyColumn(name); ok {
		return c, true
	}
	for _, c := range otherColumns {
		if c.name == name {
			return c, true
		}
	}
	return plainColumn{}, false
}

// latencyColumn reads names such as ttft_p99_ms.
func latencyColumn(name string) (plainColumn, bool) {
	base, ok := strings.CutSuffix(name, "_ms")
	if !ok {
		return plainColumn{}, false
	}
	metricName, stat, ok := strings.Cut(base, "_")
	if !ok {
		return plainColumn{}, false
	}
	metric, err := measure.ParseMetric(metricName)
	if err != nil {
		return plainColumn{}, false
	}
	q, err := measure.ParseStat(stat)
	if err != nil {
		return plainColumn{}, false
	}
	return plainColumn{name, metric, q, func(m *measure.Measurement, cell string) error {
		v, err := positive(cell)
		if err != nil {
			return err
		}
		d, ok := duration(v, time.Millisecond)
		if !ok || d == 0 {
			return fmt.Errorf("%s ms is no latency", cell)
		}
		setStat(m.Latency(metric), q, d)
		return nil
	}}, true
}

// otherColumns are the columns that are no latencies.
var otherColumns = append([]plainColumn{
	number("rate_per_s", func(m *measure.Measurement, v float64) { m.Trial.Rate = v }),
	number("achieved_per_s", func(m *measure.Measurement, v float64) { m.Achieved = v }),
	number("sent_per_s", func(m *measure.Measurement, v float64) { m.Sent = v }),
	number("output_tokens_per_s", func(m *measure.Measurement, v float64) { m.OutputTokens = v }),
	number("prompt_tokens_per_s", func(m *measure.Measurement, v float64) { m.PromptTokens = v }),
	count("requests", 1, func(m *measure.Measurement, n int) { m.Requests = n }),
	count("failed", 0, func(m *measure.Measurement, n int) { m.Failed = n }),
	{name: "duration_s", set: func(m *measure.Measurement, cell string) error {
		v, err := positive(cell)
		if err != nil {
			return err
		}
		d, ok := duration(v, time.Second)
		if !ok || d == 0 {
			return fmt.Errorf("%s s is no duration of a trial", cell)
		}
		m.Duration, m.Trial.Window = d, d
		return nil
	}},
}, knobColumns()...)

// knobColumns are the columns of the knobs.
func knobColumns() []plainColumn {
	var columns []plainColumn
	for _, n := range measure.KnobTable {
		var c plainColumn
		switch n.Zero().(type) {
		case int:
			c = count(n.Name, 1, func(m *measure.Measurement, v int) { n.Set(&m.Trial.Knobs, v) })
		case bool:
			c = flag(n.Name, func(m *measure.Measurement, v bool) { n.Set(&m.Trial.Knobs, v) })
		case float64:
			c = plainColumn{name: n.Name, set: func(m *measure.Measurement, cell string) error {
				v, err := positive(cell)
				if err != nil || v > 1 {
					return fmt.Errorf("%s is no share in 0..1", cell)
				}
				n.Set(&m.Trial.Knobs, v)
				return nil
			}}
		default:
			c = plainColumn{name: n.Name, set: func(m *measure.Measurement, cell string) error {
				n.Set(&m.Trial.Knobs, cell)
				return nil
			}}
		}
		columns = append(columns, c)
	}
	return columns
}

// plainHeader lists the columns of a plain CSV.
func plainHeader() []string {
	names := []string{"{ttft,tpot,itl,e2e}_{" + strings.Join(measure.Stats(), ",") + "}_ms"}
	for _, c := range otherColumns {
		names = append(names, c.name)
	}
	return names
}

func number(name string, set func(*measure.Measurement, float64)) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) error {
		v, err := positive(cell)
		if err == nil {
			set(m, v)
		}
		return err
	}}
}

func count(name string, least int, set func(*measure.Measurement, int)) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) error {
		n, err := strconv.Atoi(cell)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a whole number of at least %d", cell, least)
		}
		set(m, n)
		return nil
	}}
}

func flag(name string, set func(*measure.Measurement, bool)) plainColumn {
	return plainColumn{name: name, set: func(m *measure.Measurement, cell string) error {
		v, err := strconv.ParseBool(cell)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", cell)
		}
		set(m, v)
		return nil
	}}
}

// positive reads a finite number above 0.
func positive(cell string) (float64, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
		return 0, fmt.Errorf("%q is not a finite number above 0", cell)
	}
	return v, nil
}
