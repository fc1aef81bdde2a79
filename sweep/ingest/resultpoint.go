package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/input"
	"planner/internal/note"
	"planner/sweep/measure"
)

// pointReader gathers the load points of a file.
type pointReader struct {
	name   string
	format *ResultFormat
	line   int
	// doc holds the load point that is read into m.
	doc    *fastjson.Value
	m      measure.Measurement
	points []measure.Measurement
	// void names the figures without a value of the point being read, and doubts
	// say so of the points read before.
	void     []string
	doubts   note.Notes
	problems []error
}

// Limits of what is read of a file: load points, and values of one document, for each of
// which the parser takes half a kilobyte.
const (
	mostPoints = 20_000
	mostValues = 700_000
)

// mostProblems is how many problems of one file are reported.
const mostProblems = 20

// fail records a problem with the line that is read.
func (p *pointReader) fail(field, format string, a ...any) {
	if len(p.problems) < mostProblems {
		p.problems = append(p.problems, &FileError{p.name, p.line, field, fmt.Sprintf(format, a...)})
	}
}

// documents reads every JSON object of a file that holds one, an array of them, or one
// a line, up to the first problem.
func (p *pointReader) documents(data []byte) error {
	data = pythonJSON(data)
	d := json.NewDecoder(bytes.NewReader(data))
	for len(p.problems) == 0 {
		// Lines count from where the last document ended.
		end := int(d.InputOffset())
		rest := data[end:]
		blank := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n\ufeff"))
		p.line = 1 + bytes.Count(data[:end+blank], []byte("\n"))
		if blank == len(rest) {
			return nil
		}
		var text json.RawMessage
		var document *fastjson.Value
		err := d.Decode(&text)
		if err == nil {
			err = input.CheckJSON(text, input.AnyValue, mostValues)
		}
		if err == nil {
			document, err = fastjson.ParseBytes(text)
		}
		if err != nil {
			p.fail("", "%v", err)
			break
		}
		documents := []*fastjson.Value{document}
		if document.Type() == fastjson.TypeArray {
			documents = document.GetArray()
		}
		for _, document := range documents {
			p.document(document)
		}
	}
	return p.problems[0]
}

// pythonNumbers matches the tokens that Python writes and JSON does not know, and strings,
// which may hold the same.
var pythonNumbers = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// pythonJSON replaces the tokens Infinity and NaN by null, and cuts a byte-order mark.
func pythonJSON(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.Contains(data, []byte("Infinity")) && !bytes.Contains(data, []byte("NaN")) {
		return data
	}
	return pythonNumbers.ReplaceAllFunc(data, func(token []byte) []byte {
		if token[0] == '"' {
			return token
		}
		return []byte("null")
	})
}

func (p *pointReader) document(v *fastjson.Value) {
	points := []*fastjson.Value{v}
	if p.format.points != "" {
		points = v.GetArray(p.format.points)
	}
	for _, v := range points {
		if v.Type() != fastjson.TypeObject {
			p.fail("", "a %s, not an object", v.Type())
			return
		}
		p.doc, p.m = v, newMeasurement()
		m, f := &p.m, p.format
		completed := p.count(f.completed)
		m.Failed = p.count(f.failed)
		m.Requests = completed + m.Failed
		for _, k := range f.latencies {
			p.latency(m.Latency(k.metric), k.path, k.unit)
			if k.metric != measure.ITL {
				m.Latency(k.metric).N = completed
			}
		}
		m.OutputTokens = p.number(f.outputTokens)
		f.rest(p, completed)
		p.add()
	}
}

// add checks the load point and keeps it. A point that is neither at a known rate
// nor at a known concurrency is kept as invalid.
func (p *pointReader) add() {
	m := &p.m
	for metric := measure.TTFT; metric <= measure.E2E; metric++ {
		if err := ordered(m.Latency(metric)); err != nil {
			p.fail(metric.String(), "%v", err)
		}
	}
	if m.Failed < 0 || m.Failed > m.Requests && m.Requests > 0 {
		p.fail("failed", "%d of %d requests", m.Failed, m.Requests)
	}
	switch {
	case m.Trial.Rate < 0:
		p.fail("", "a rate of %g", m.Trial.Rate)
	case m.Trial.Rate == 0 && m.Trial.Concurrency <= 0:
		m.Valid = false
		p.warn(note.NoLoad)
	}
	m.Trial.Number = len(p.points) + 1
	if len(p.void) > 0 {
		figures := strings.Join(p.void, ", ")
		p.warn(note.WithoutValue, figures)
		p.doubts = append(p.doubts, note.New(note.WithoutValueAt, m.Trial.Number, p.line, figures))
		p.void = nil
	}
	if len(p.points) == mostPoints {
		p.fail("", "more than %d load points, which is the most that is read of a file", mostPoints)
		return
	}
	p.points = append(p.points, *m)
}

func (p *pointReader) warn(k note.Kind, figures ...any) {
	p.m.Warnings = append(p.m.Warnings, note.New(k, figures...))
}

// has reports whether the load point has a key, with another value than null.
func (p *pointReader) has(path string) bool {
	v := find(p.doc, path)
	return v != nil && v.Type() != fastjson.TypeNull
}

// text is the string under a key, empty if there is none.
func (p *pointReader) text(path string) string {
	if v := find(p.doc, path); v != nil {
		return string(v.GetStringBytes())
	}
	return ""
}

// figure is the number under a key. Void says that the key is there without a value:
// tools write null, or NaN, where they could not compute a figure, and that is another
// thing than a figure they do not have.
func (p *pointReader) figure(path string) (x float64, known, void bool) {
	v := find(p.doc, path)
	switch {
	case v == nil:
		return 0, false, false
	case v.Type() == fastjson.TypeNull:
		return 0, false, true
	case v.Type() == fastjson.TypeNumber:
		x = v.GetFloat64()
	case !p.format.text:
		p.fail(path, "a %s, not a float64", v.Type())
		return 0, false, false
	default:
		var err error
		if x, err = strconv.ParseFloat(string(v.GetStringBytes()), 64); err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, false, true
		}
	}
	if math.IsInf(x, 0) {
		p.fail(path, "a number out of range")
		return 0, false, false
	}
	return x, true, false
}

// number is the figure under a key, 0 if there is none.
func (p *pointReader) number(path string) float64 {
	x, _, _ := p.figure(path)
	return x
}

func (p *pointReader) count(path string) int { return p.whole(path, p.number(path)) }

// whole turns a figure that counts into an int.
func (p *pointReader) whole(path string, x float64) int {
	if x < 0 || x > 1e12 || x != math.Trunc(x) {
		p.fail(path, "%g is no count", x)
		return 0
	}
	return int(x)
}

// span is a time under a key, 0 if there is none.
func (p *pointReader) span(path string, unit time.Duration) time.Duration {
	d, _ := duration(p.number(path), unit)
	return d
}

// units are the units that stand beside figures.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "sec": time.Second, "seconds": time.Second,
}

// unitBeside is the unit of a block of figures.
func (p *pointReader) unitBeside(block string) time.Duration {
	name := p.text(block + ".unit")
	if units[name] == 0 {
		p.fail(block, "unit %q is unknown", name)
	}
	return units[name]
}

func (p *pointReader) latency(s *measure.Summary, path string, unit time.Duration) {
	if block, _, _ := strings.Cut(path, ".*"); unit == 0 {
		if !p.has(block) {
			return
		}
		unit = p.unitBeside(block)
	}
	for i, names := range p.format.stats {
		for name := range strings.SplitSeq(names, "|") {
			p.statistic(s, statistics[i], strings.Replace(path, "*", name, 1), unit)
		}
	}
}

// statistic reads one of a latency, by its quantile, 0 for the mean.
func (p *pointReader) statistic(s *measure.Summary, quantile float64, path string, unit time.Duration) {
	x, known, void := p.figure(path)
	if void {
		p.void = append(p.void, path)
	}
	// The delay of a request that left early is negative: no lag.
	if !known || x < 0 && s == &p.m.SendLag {
		return
	}
	d, ok := duration(x, unit)
	if !ok {
		p.fail(path, "%g is no latency", x)
	}
	if d > 0 {
		s.Set(quantile, d)
	}
}

// figures are the numbers of a list, or of the lists of a list, in one row each; null
// counts as 0 and is remembered.
func (p *pointReader) figures(path string) (rows [][]float64) {
	v := find(p.doc, path)
	if v == nil || v.Type() == fastjson.TypeNull {
		return nil
	}
	void := false
	for _, row := range v.GetArray() {
		cells := []*fastjson.Value{row}
		if row.Type() == fastjson.TypeArray {
			cells = row.GetArray()
		}
		numbers := make([]float64, len(cells))
		for i, cell := range cells {
			x, err := cell.Float64()
			if cell.Type() == fastjson.TypeNull {
				void = true
			} else if err != nil {
				p.fail(path, "not a list of figures, one a request")
			}
			numbers[i] = x
		}
		rows = append(rows, numbers)
	}
	if void {
		p.void = append(p.void, "entries of "+path)
	}
	if v.Type() != fastjson.TypeArray {
		p.fail(path, "not a list of figures, one a request")
	}
	return rows
}
