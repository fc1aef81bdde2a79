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

// parseJSON reads every object of a file that holds one, an array of them, or one per line. A
// duplicate key is an error: nobody can say which of the two holds.
func parseJSON(data []byte, at *int, each func(*fastjson.Value) error) error {
	data = pythonJSON(data)
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for line, end := 1, 0; ; {
		text, err := d.ReadValue()
		if err == io.EOF {
			return nil
		}
		// A document begins after the white space that follows the previous one.
		begin := len(data) - len(bytes.TrimLeft(data[end:], " \t\r\n"))
		line += bytes.Count(data[end:begin], []byte("\n"))
		*at = line
		var v *fastjson.Value
		if err == nil {
			err = input.CheckJSON(text, input.AnyValue, mostValues)
		}
		if err == nil {
			v, err = fastjson.ParseBytes(text)
		}
		if err != nil {
			return err
		}
		all := []*fastjson.Value{v}
		if v.Type() == fastjson.TypeArray {
			all = v.GetArray()
		}
		for _, v := range all {
			if err := each(v); err != nil {
				return err
			}
		}
		end = int(d.InputOffset())
		line += bytes.Count(data[begin:end], []byte("\n"))
	}
}

// pythonNumbers matches the tokens that Python writes but JSON does not have, and strings, which
// may contain the same.
var pythonNumbers = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// pythonJSON replaces the tokens Infinity and NaN by null, and removes a byte-order mark.
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

// yamlNumbers matches YAML's infinities and NaN, which JSON does not have.
var yamlNumbers = regexp.MustCompile(`(?m)(^|[\s:,\[])[-+]?\.(?i:nan|inf)\b`)

// mostYAML is the largest YAML file that is read, in bytes: its parser takes much memory.
const mostYAML = 4 << 20

func parseYAML(data []byte, line *int, each func(*fastjson.Value) error) error {
	if len(data) > mostYAML {
		return fmt.Errorf("larger than %d bytes, which is the most that is read of YAML: give the same in JSON", mostYAML)
	}
	if err := input.CheckJSON(data, input.AnyValue+":\n", mostValues); err != nil {
		return err
	}
	text, err := yaml.YAMLToJSONStrict(yamlNumbers.ReplaceAll(data, []byte("${1}null")))
	if err != nil {
		return err
	}
	v, err := fastjson.ParseBytes(text)
	if err != nil {
		return err
	}
	*line = 1
	return each(v)
}

// table passes on the rows of CSV, each with the line in which it begins.
func table(data []byte, line *int, each func(cells []string) error) error {
	if err := input.CheckJSON(data, ",\n", mostValues); err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = -1, '#', true
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			*line = wrong.Line
			return wrong.Err
		}
		*line, _ = r.FieldPos(0)
		if err := each(cells); err != nil {
			return err
		}
	}
}

// mostColumns is how many columns a table may have, and mostNames how many names a file of metrics
// or of pairs: each is looked up among the others.
const (
	mostColumns = 1000
	mostNames   = 10_000
)

// put sets a name in an object; it is an error if the name has another value already.
func put(o *fastjson.Value, name string, v *fastjson.Value) error {
	switch old := o.Get(name); {
	case o.GetObject().Len() == mostNames:
		return fmt.Errorf("more than %d names, which is the most that is read of such a file", mostNames)
	case old != nil && old.String() != v.String():
		return fmt.Errorf("%q is there twice", name)
	}
	o.Set(name, v)
	return nil
}

// under makes an object of the cells of a row, keyed by a header; empty cells are left out.
func under(header, cells []string) (*fastjson.Value, error) {
	switch {
	case len(header) > mostColumns:
		return nil, fmt.Errorf("more than %d columns, which is the most that is read of a table", mostColumns)
	case len(cells) != len(header):
		return nil, fmt.Errorf("%d cells, the header has %d", len(cells), len(header))
	}
	var a fastjson.Arena
	o := a.NewObject()
	for k, name := range header {
		if cell := strings.TrimSpace(cells[k]); cell != "" {
			if name = strings.TrimSpace(name); o.Get(name) != nil {
				return nil, fmt.Errorf("the column %q is there twice", name)
			}
			o.Set(name, a.NewString(cell))
		}
	}
	return o, nil
}

// parseRows reads CSV in which each row is a document, keyed by the first row.
func parseRows(data []byte, line *int, each func(*fastjson.Value) error) error {
	var header []string
	return table(data, line, func(cells []string) error {
		if header == nil {
			header = cells
			return nil
		}
		v, err := under(header, cells)
		if err != nil {
			return err
		}
		return each(v)
	})
}

// parseMetrics reads CSV tables that are separated by blank lines, of which those whose first
// column is Metric have a metric per row and its statistics in columns: one document with an object
// of the statistics under the name of each metric.
func parseMetrics(data []byte, line *int, each func(*fastjson.Value) error) error {
	var a fastjson.Arena
	var header []string
	o, before := a.NewObject(), -1
	err := table(data, line, func(cells []string) error {
		first := *line > before+1
		before = *line
		switch {
		case first:
			header = cells
			return nil
		case header[0] != "Metric":
			return nil
		}
		v, err := under(header, cells)
		if err == nil {
			err = put(o, cells[0], v)
		}
		return err
	})
	if err != nil {
		return err
	}
	*line = 1
	return each(o)
}

// parsePairs reads lines of "name : value" into one document.
func parsePairs(data []byte, line *int, each func(*fastjson.Value) error) error {
	if err := input.CheckJSON(data, ":", mostValues); err != nil {
		return err
	}
	var a fastjson.Arena
	o := a.NewObject()
	for text := range strings.Lines(string(data)) {
		*line++
		key, value, _ := strings.Cut(text, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "" || value == "" {
			continue
		}
		if err := put(o, key, a.NewString(value)); err != nil {
			return err
		}
	}
	*line = 1
	return each(o)
}
