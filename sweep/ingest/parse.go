package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fastjson"
	"sigs.k8s.io/yaml"

	"planner/internal/input"
	"planner/internal/printable"
)

// damaged reports that a file is not of its form.
func (p *pointReader) damaged(err error) {
	what := printable.Short(strings.TrimPrefix(err.Error(), "jsontext: "), 400)
	if p.layout.marks != nil && !strings.Contains(what, "the most that is read") {
		what += ": the file is cut or damaged, have the tool write it again"
	}
	p.fail("", "%s", what)
}

// parseJSON reads every object of a file that holds one, an array of them, or one per line.
func parseJSON(p *pointReader, data []byte) {
	p.line = 1
	for v := range p.objects(data) {
		p.document(v)
	}
}

// objects passes on the objects of a text of JSON, with p at the line in which each, or the array
// that holds it, begins. A duplicate key is an error: nobody can say which of the two holds.
func (p *pointReader) objects(data []byte) iter.Seq[*fastjson.Value] {
	return func(yield func(*fastjson.Value) bool) {
		data = pythonJSON(data)
		d := jsontext.NewDecoder(bytes.NewReader(data))
		for line, end := p.line, 0; ; {
			text, err := d.ReadValue()
			if err == io.EOF {
				return
			}
			// A document begins after the white space that follows the previous one.
			begin := len(data) - len(bytes.TrimLeft(data[end:], " \t\r\n"))
			line += bytes.Count(data[end:begin], []byte("\n"))
			p.line = line
			var v *fastjson.Value
			if err == nil {
				err = input.CheckJSON(text, input.AnyValue, mostValues)
			}
			if err == nil {
				v, err = fastjson.ParseBytes(text)
			}
			if err != nil {
				p.damaged(err)
				return
			}
			all := []*fastjson.Value{v}
			if v.Type() == fastjson.TypeArray {
				all = v.GetArray()
			}
			for _, v := range all {
				if !yield(v) || p.done() {
					return
				}
			}
			end = int(d.InputOffset())
			line += bytes.Count(data[begin:end], []byte("\n"))
		}
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

func parseYAML(p *pointReader, data []byte) {
	err := input.CheckJSON(data, input.AnyValue+":\n", mostValues)
	if len(data) > mostYAML {
		err = fmt.Errorf("larger than %d bytes, which is the most that is read of YAML: give the same in JSON", mostYAML)
	}
	var v *fastjson.Value
	if err == nil {
		data, err = yaml.YAMLToJSONStrict(yamlNumbers.ReplaceAll(data, []byte("${1}null")))
	}
	if err == nil {
		v, err = fastjson.ParseBytes(data)
	}
	if err != nil {
		p.damaged(err)
		return
	}
	p.line = 1
	p.document(v)
}

// table passes on the rows of CSV, with p at the line in which each begins.
func (p *pointReader) table(data []byte) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if err := input.CheckJSON(data, ",\n", mostValues); err != nil {
			p.damaged(err)
			return
		}
		r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
		r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = -1, '#', true
		for {
			cells, err := r.Read()
			if wrong, ok := errors.AsType[*csv.ParseError](err); ok && p.first() == nil {
				p.line = wrong.Line
				p.damaged(wrong.Err)
			}
			if err != nil {
				return
			}
			p.line, _ = r.FieldPos(0)
			if !yield(cells) || p.done() {
				return
			}
		}
	}
}

// mostColumns is how many columns a table may have, and mostNames how many names a file of metrics
// or of pairs: each is looked up among the others.
const (
	mostColumns = 1000
	mostNames   = 10_000
)

// put sets a name in an object; it is an error if the name has another value already. A value that
// is nil was an error already.
func (p *pointReader) put(o *fastjson.Value, name string, v *fastjson.Value) {
	switch old := o.Get(name); {
	case v == nil:
	case o.GetObject().Len() == mostNames:
		p.damaged(fmt.Errorf("more than %d names, which is the most that is read of such a file", mostNames))
	case old != nil && old.String() != v.String():
		p.damaged(fmt.Errorf("%q is there twice", name))
	default:
		o.Set(name, v)
	}
}

// under makes an object of the cells of a row, keyed by a header; empty cells are left out. It is
// nil for a row that does not fit.
func (p *pointReader) under(header, cells []string) *fastjson.Value {
	switch {
	case len(header) > mostColumns:
		p.damaged(fmt.Errorf("more than %d columns, which is the most that is read of a table", mostColumns))
		return nil
	case len(cells) != len(header):
		p.damaged(fmt.Errorf("%d cells, the header has %d", len(cells), len(header)))
		return nil
	}
	var a fastjson.Arena
	o := a.NewObject()
	for k, name := range header {
		if cell := strings.TrimSpace(cells[k]); cell != "" {
			if name = strings.TrimSpace(name); o.Get(name) != nil {
				p.damaged(fmt.Errorf("the column %q is there twice", name))
				return nil
			}
			o.Set(name, a.NewString(cell))
		}
	}
	return o
}

// keyed passes on the rows of CSV as objects, keyed by the first row.
func (p *pointReader) keyed(data []byte) iter.Seq[*fastjson.Value] {
	return func(yield func(*fastjson.Value) bool) {
		var header []string
		for cells := range p.table(data) {
			if header == nil {
				header = cells
			} else if v := p.under(header, cells); v == nil || !yield(v) {
				return
			}
		}
	}
}

// parseRows reads CSV in which each row is a document, keyed by the first row.
func parseRows(p *pointReader, data []byte) {
	for v := range p.keyed(data) {
		p.document(v)
	}
}

// parseMetrics reads CSV tables that are separated by blank lines, of which those whose first
// column is Metric have a metric per row and its statistics in columns: one document with an object
// of the statistics under the name of each metric.
func parseMetrics(p *pointReader, data []byte) {
	var a fastjson.Arena
	var header []string
	o, before := a.NewObject(), -1
	for cells := range p.table(data) {
		first := p.line > before+1
		before = p.line
		switch {
		case first:
			header = cells
		case header[0] == "Metric":
			p.put(o, cells[0], p.under(header, cells))
		}
	}
	p.line = 1
	p.document(o)
}

// parsePairs reads lines of "name : value" into one document.
func parsePairs(p *pointReader, data []byte) {
	if err := input.CheckJSON(data, ":", mostValues); err != nil {
		p.damaged(err)
		return
	}
	var a fastjson.Arena
	o := a.NewObject()
	for text := range strings.Lines(string(data)) {
		p.line++
		key, value, _ := strings.Cut(text, ":")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); key != "" && value != "" && !p.done() {
			p.put(o, key, a.NewString(value))
		}
	}
	p.line = 1
	p.document(o)
}
