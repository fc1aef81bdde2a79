package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fastjson"
	"sigs.k8s.io/yaml"

	"planner/internal/input"
)

// lineError is a problem in a line of a file.
type lineError struct {
	line int
	err  error
}

// Error is the problem itself; who knows the file names the line.
func (e *lineError) Error() string { return e.err.Error() }

// A parser finds the documents of a file and passes on each with its line, until one is an
// error. A [lineError] says where the file itself is wrong.
type parser func(data []byte, each func(line int, v *fastjson.Value) error) error

// parseJSON reads every object of a file that holds one, an array of them, or one a line.
// A key that is there twice is an error: which of the two holds, nobody can say.
func parseJSON(data []byte, each func(line int, v *fastjson.Value) error) error {
	data = pythonJSON(data)
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for line, end := 1, 0; ; {
		text, err := d.ReadValue()
		if err == io.EOF {
			return nil
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
			return &lineError{line, err}
		}
		all := []*fastjson.Value{v}
		if v.Type() == fastjson.TypeArray {
			all = v.GetArray()
		}
		for _, v := range all {
			if err := each(line, v); err != nil {
				return err
			}
		}
		end = int(d.InputOffset())
		line += bytes.Count(data[begin:end], []byte("\n"))
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

// yamlNumbers matches what YAML has for what is no number, and JSON does not know.
var yamlNumbers = regexp.MustCompile(`[-+]?\.(?i:nan|inf)\b`)

// mostYAML is the largest file of YAML that is read: its parser takes much memory.
const mostYAML = 4 << 20

// parseYAML reads the document of a file of YAML.
func parseYAML(data []byte, each func(line int, v *fastjson.Value) error) error {
	if len(data) > mostYAML {
		return fmt.Errorf("larger than %d bytes, which is the most that is read of YAML: give the same in JSON", mostYAML)
	}
	if err := input.CheckJSON(data, input.AnyValue+":\n", mostValues); err != nil {
		return err
	}
	text, err := yaml.YAMLToJSONStrict(yamlNumbers.ReplaceAll(data, []byte("null")))
	if err != nil {
		return err
	}
	v, err := fastjson.ParseBytes(text)
	if err != nil {
		return err
	}
	return each(1, v)
}

// csvRow is one of CSV, and the line in which it begins.
type csvRow struct {
	line  int
	cells []string
}

func table(data []byte, each func(csvRow) error) error {
	if err := input.CheckJSON(data, ",\n", mostValues); err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord = -1
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			return &lineError{wrong.Line, wrong.Err}
		}
		line, _ := r.FieldPos(0)
		if err := each(csvRow{line, cells}); err != nil {
			return err
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
func parseRows(data []byte, each func(line int, v *fastjson.Value) error) error {
	var header []string
	return table(data, func(r csvRow) error {
		if header == nil {
			header = r.cells
			return nil
		}
		v, err := r.under(header)
		if err != nil {
			return err
		}
		return each(r.line, v)
	})
}

// parseMetrics reads tables of CSV that have a metric a row and its statistics in columns,
// with a blank line between two: one document with an object of the statistics under the
// name of each metric.
func parseMetrics(data []byte, each func(line int, v *fastjson.Value) error) error {
	var a fastjson.Arena
	var header []string
	o, before := a.NewObject(), -1
	err := table(data, func(r csvRow) error {
		first := r.line > before+1
		before = r.line
		switch {
		case first:
			header = r.cells
			return nil
		case header[0] != "Metric":
			return nil
		case o.GetObject().Len() == mostNames:
			return &lineError{r.line, errManyNames}
		case o.Get(r.cells[0]) != nil:
			return &lineError{r.line, fmt.Errorf("%q is there twice", r.cells[0])}
		}
		v, err := r.under(header)
		if err == nil {
			o.Set(r.cells[0], v)
		}
		return err
	})
	if err != nil {
		return err
	}
	return each(1, o)
}

// parsePairs reads lines of "name : value" into one document.
func parsePairs(data []byte, each func(line int, v *fastjson.Value) error) error {
	if err := input.CheckJSON(data, ":", mostValues); err != nil {
		return err
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
			return &lineError{line, errManyNames}
		}
		if x := o.Get(name); x != nil && string(x.GetStringBytes()) != value {
			return &lineError{line, fmt.Errorf("%q is there twice", name)}
		}
		o.Set(name, a.NewString(value))
	}
	return each(1, o)
}
