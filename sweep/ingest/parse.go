package ingest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fastjson"
	"go.yaml.in/yaml/v3"

	"planner/internal/input"
)

// lineError is a problem in a line of a file.
type lineError struct {
	line int
	err  error
}

// Error is the problem itself; who knows the file names the line.
func (e *lineError) Error() string { return e.err.Error() }

// cut ends the documents of a file with a problem in a line.
func cut(line int, err error) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) { yield(document{}, &lineError{line, err}) }
}

func one(v *fastjson.Value) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) { yield(document{1, v}, nil) }
}

// parseJSON reads every object of a file that holds one, an array of them, or one a line.
// A key that is there twice is an error: which of the two holds, nobody can say.
func parseJSON(data []byte) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		data := pythonJSON(data)
		d := jsontext.NewDecoder(bytes.NewReader(data))
		for line, end := 1, 0; ; {
			text, err := d.ReadValue()
			if err == io.EOF {
				return
			}
			// A document begins behind the blanks that follow the last one.
			begin := len(data) - len(bytes.TrimLeft(data[end:], " \t\r\n"))
			line += bytes.Count(data[end:begin], []byte("\n"))
			var v *fastjson.Value
			if err == nil {
				err = input.CheckJSON(text, input.AnyValue, mostValues)
			}
			if err == nil {
				v, err = fastjson.ParseBytes(text)
			}
			if err != nil {
				yield(document{}, &lineError{line, err})
				return
			}
			all := []*fastjson.Value{v}
			if v.Type() == fastjson.TypeArray {
				all = v.GetArray()
			}
			for _, v := range all {
				if !yield(document{line, v}, nil) {
					return
				}
			}
			end = int(d.InputOffset())
			line += bytes.Count(data[begin:end], []byte("\n"))
		}
	}
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

// mostYAML is the largest file of YAML that is read: its parser takes much memory.
const mostYAML = 4 << 20

// parseYAML reads the document of a file of YAML.
func parseYAML(data []byte) iter.Seq2[document, error] {
	if len(data) > mostYAML {
		return cut(0, fmt.Errorf("larger than %d bytes, which is the most that is read of YAML: give the same in JSON", mostYAML))
	}
	if err := input.CheckJSON(data, input.AnyValue+":\n", mostValues); err != nil {
		return cut(0, err)
	}
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return cut(0, err)
	}
	text, err := json.Marshal(plainValue(value))
	if err != nil {
		return cut(0, err)
	}
	v, err := fastjson.ParseBytes(text)
	if err != nil {
		return cut(0, err)
	}
	return one(v)
}

// plainValue is a value of YAML as JSON has it: with strings for keys, and null for what is
// no number.
func plainValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plainValue(x)
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[fmt.Sprint(k)] = plainValue(x)
		}
		return out
	case []any:
		for i, x := range v {
			v[i] = plainValue(x)
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	return v
}

// csvRow is one of CSV, and the line in which it begins.
type csvRow struct {
	line  int
	cells []string
}

func table(data []byte) iter.Seq2[csvRow, error] {
	return func(yield func(csvRow, error) bool) {
		if err := input.CheckJSON(data, ",\n", mostValues); err != nil {
			yield(csvRow{}, err)
			return
		}
		r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
		r.FieldsPerRecord = -1
		for {
			cells, err := r.Read()
			var wrong *csv.ParseError
			switch {
			case err == io.EOF:
				return
			case errors.As(err, &wrong):
				yield(csvRow{}, &lineError{wrong.Line, wrong.Err})
				return
			}
			line, _ := r.FieldPos(0)
			if !yield(csvRow{line, cells}, nil) {
				return
			}
		}
	}
}

// mostColumns and mostNames are how many columns a table has at most, and how many names a file
// of metrics or of pairs: each is looked up among the others.
const (
	mostColumns = 1000
	mostNames   = 10_000
)

var errManyNames = fmt.Errorf("more than %d names, which is the most that is read of such a file", mostNames)

// under makes an object of the cells of a row under the names of a header; empty ones are left out.
func (r csvRow) under(header []string) (*fastjson.Value, error) {
	switch {
	case len(header) > mostColumns:
		return nil, &lineError{r.line, fmt.Errorf("more than %d columns, which is the most that is read of a table", mostColumns)}
	case len(r.cells) != len(header):
		return nil, &lineError{r.line, fmt.Errorf("%d cells, the header has %d", len(r.cells), len(header))}
	}
	var a fastjson.Arena
	o := a.NewObject()
	for k, name := range header {
		if cell := strings.TrimSpace(r.cells[k]); cell != "" {
			if name = strings.TrimSpace(name); o.Get(name) != nil {
				return nil, &lineError{r.line, fmt.Errorf("the column %q is there twice", name)}
			}
			o.Set(name, a.NewString(cell))
		}
	}
	return o, nil
}

// parseRows reads CSV of which each row is a document under the names of the first.
func parseRows(data []byte) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		var header []string
		for r, err := range table(data) {
			if err == nil && header == nil {
				header = r.cells
				continue
			}
			var v *fastjson.Value
			if err == nil {
				v, err = r.under(header)
			}
			if !yield(document{r.line, v}, err) {
				return
			}
		}
	}
}

// parseMetrics reads tables of CSV that have a metric a row and its statistics in columns,
// with a blank line between two: one document with an object of the statistics under the
// name of each metric.
func parseMetrics(data []byte) iter.Seq2[document, error] {
	var a fastjson.Arena
	var header []string
	o, before := a.NewObject(), -1
	for r, err := range table(data) {
		var v *fastjson.Value
		switch {
		case err != nil:
		case r.line > before+1:
			header = r.cells
		case header[0] != "Metric":
		case o.GetObject().Len() == mostNames:
			err = &lineError{r.line, errManyNames}
		case o.Get(r.cells[0]) != nil:
			err = &lineError{r.line, fmt.Errorf("%q is there twice", r.cells[0])}
		default:
			v, err = r.under(header)
		}
		if err != nil {
			return func(yield func(document, error) bool) { yield(document{}, err) }
		}
		if v != nil {
			o.Set(r.cells[0], v)
		}
		before = r.line
	}
	return one(o)
}

// parsePairs reads lines of "name : value" into one document.
func parsePairs(data []byte) iter.Seq2[document, error] {
	if err := input.CheckJSON(data, ":", mostValues); err != nil {
		return cut(0, err)
	}
	var a fastjson.Arena
	o, line := a.NewObject(), 0
	for text := range strings.Lines(string(data)) {
		line++
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			continue
		}
		if o.GetObject().Len() == mostNames {
			return cut(line, errManyNames)
		}
		if x := o.Get(name); x != nil && string(x.GetStringBytes()) != value {
			return cut(line, fmt.Errorf("%q is there twice", name))
		}
		o.Set(name, a.NewString(value))
	}
	return one(o)
}
