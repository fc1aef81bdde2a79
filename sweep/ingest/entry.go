package ingest

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"planner/internal/input"
	"planner/internal/list"
	"planner/internal/printable"
	"planner/sweep/workload"
)

// logEntry is one request of a log: a JSON object, made from the cells of a row and the names of
// their columns if the log is CSV.
type logEntry struct {
	columns []string
	parser  fastjson.Parser
	arena   fastjson.Arena
	object  *fastjson.Value
	// problem is the line's first, estimated says that one of its lengths is estimated.
	problem   *fileError
	estimated bool
}

func (e *logEntry) wrong(field, format string, a ...any) {
	if e.problem == nil {
		e.problem = &fileError{Field: field, What: fmt.Sprintf(format, a...)}
	}
}

// begin takes the first line of a log: the header of CSV, or the first JSON object.
func (e *logEntry) begin(line string) error {
	if !strings.HasPrefix(line, "{") {
		cells, err := splitCSV(line)
		if err != nil {
			return err
		}
		e.columns = list.Map(cells, strings.TrimSpace)
		for i, name := range e.columns {
			if name != "" && slices.Contains(e.columns[:i], name) {
				return fmt.Errorf("the column %s is there twice", name)
			}
		}
	}
	return e.read(line)
}

func (e *logEntry) read(line string) (err error) {
	e.problem, e.estimated = nil, false
	if e.columns == nil {
		if err = input.CheckJSON(line, input.AnyValue, mostValues); err != nil {
			return err
		}
		e.object, err = e.parser.Parse(line)
		if err == nil && e.object.Type() != fastjson.TypeObject {
			err = fmt.Errorf("a %s, not an object", e.object.Type())
		}
		return err
	}
	cells, err := splitCSV(line)
	if err == nil && len(cells) != len(e.columns) {
		err = fmt.Errorf("%d cells, the header has %d", len(cells), len(e.columns))
	}
	if err != nil {
		return err
	}
	e.arena.Reset()
	e.object = e.arena.NewObject()
	for i, name := range e.columns {
		if e.object.Get(name) == nil {
			e.object.Set(name, e.arena.NewString(cells[i]))
		}
	}
	return nil
}

// splitCSV splits one line; only a line with quotes needs the rules of RFC 4180.
func splitCSV(line string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), nil
	}
	return csv.NewReader(strings.NewReader(line)).Read()
}

// find looks up a key of an object, with dots between the keys of nested objects; a key may also
// contain dots itself.
func find(v *fastjson.Value, path string) *fastjson.Value {
	if x := v.Get(path); x != nil {
		return x
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if x := v.Get(path[:i]); x != nil {
			if x = find(x, path[i+1:]); x != nil {
				return x
			}
		}
	}
	return nil
}

// at returns the value under a name and its text; false if it is missing, empty or null. The name
// "" stands for what a mapping leaves out and has no value, even if a column has no name, as in
// tables with numbered rows.
func (e *logEntry) at(name string) (text string, v *fastjson.Value, ok bool) {
	v = find(e.object, name)
	switch {
	case name == "" || v == nil || v.Type() == fastjson.TypeNull:
		return "", nil, false
	case v.Type() == fastjson.TypeString:
		text = strings.TrimSpace(string(v.GetStringBytes()))
		return text, v, text != ""
	case v.Type() == fastjson.TypeObject || v.Type() == fastjson.TypeArray:
		return "", v, true
	}
	return v.String(), v, true
}

func (e *logEntry) has(keys ...key) bool {
	return !slices.ContainsFunc(keys, func(k key) bool {
		_, _, ok := e.at(k.name())
		return !ok
	})
}

// describe names the columns, or the keys of the object and of those nested in it.
func (e *logEntry) describe() string {
	if e.columns != nil {
		return "the columns " + printable.Short(strings.Join(e.columns, ","), 400)
	}
	var keys []string
	var walk func(v *fastjson.Value, path string)
	walk = func(v *fastjson.Value, path string) {
		if v.Type() != fastjson.TypeObject {
			keys = append(keys, path)
			return
		}
		v.GetObject().Visit(func(k []byte, v *fastjson.Value) { walk(v, strings.TrimPrefix(path+"."+string(k), ".")) })
	}
	walk(e.object, "")
	return "these keys: " + printable.Short(strings.Join(keys, ", "), 400)
}

// maxTokens is the longest prompt or output that is accepted.
const maxTokens = 1 << 30

// tokens reads a number of tokens, or the sum of those under several names, of which only the first
// is required.
func (e *logEntry) tokens(k key) (n int) {
	for i, name := range k.names {
		text, v, ok := e.at(name)
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case !ok && i == 0:
			e.wrong(name, "is missing")
		case !ok:
		case k.unit == "text":
			chars := utf8.RuneCountInString(text)
			if text == "" {
				chars = characters(v, true)
			}
			n, e.estimated = n+estimateTokens(chars), true
		case err != nil || !(x >= 0 && x <= maxTokens) || x != math.Trunc(x):
			e.wrong(name, "%q is no number of tokens", printable.Short(text, 40))
		default:
			n += int(x)
		}
	}
	return n
}

// textKeys are the keys of the text within messages, choices and tool calls.
var textKeys = []string{"content", "text", "parts", "reasoning_content", "reasoning", "arguments"}

// characters counts the characters of the texts in a JSON value; within objects these are under
// textKeys.
func characters(v *fastjson.Value, text bool) (n int) {
	switch v.Type() {
	case fastjson.TypeString:
		if text {
			n = utf8.RuneCount(v.GetStringBytes())
		}
	case fastjson.TypeArray:
		for _, item := range v.GetArray() {
			n += characters(item, text)
		}
	case fastjson.TypeObject:
		v.GetObject().Visit(func(key []byte, item *fastjson.Value) { n += characters(item, slices.Contains(textKeys, string(key))) })
	}
	return n
}

// dateLayouts are the ways in which logs write a time; without a zone it is UTC.
var dateLayouts = []string{
	"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700",
	"2006-01-02T15:04:05-0700", "2006-01-02 15:04:05,000", "02/Jan/2006:15:04:05 -0700", time.RFC1123Z, time.RFC1123, time.ANSIC,
}

func date(text string) (time.Duration, error) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
			return t.Sub(time.Unix(0, 0)), nil
		}
	}
	return 0, fmt.Errorf("%q is no date and time", printable.Short(text, 40))
}

// time reads a time: a number in the unit of its key, or its text as parsed by read.
func (e *logEntry) time(k key, read func(string) (time.Duration, error)) (d time.Duration) {
	text, _, ok := e.at(k.name())
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case !ok:
		err = errors.New("is missing")
	case k.unit != "" && err != nil:
		err = fmt.Errorf("%q is no time in %s", printable.Short(text, 40), k.unit)
	case k.unit != "":
		unit, _ := time.ParseDuration("1" + k.unit)
		d, err = clockTime(x, unit)
	case err == nil:
		err = fmt.Errorf("the unit of %s is not known: map it as %s:s, %[2]s:ms, %[2]s:us or %[2]s:ns", text, k)
	default:
		d, err = read(text)
	}
	if err != nil {
		e.wrong(k.String(), "%v", err)
	}
	return d
}

// clockTime converts a time in a unit; the clocks of logs may start at any epoch.
func clockTime(v float64, unit time.Duration) (time.Duration, error) {
	d := v * float64(unit)
	if math.IsNaN(d) || math.Abs(d) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%g is no time", v)
	}
	return time.Duration(math.Round(d)), nil
}

// failed reports whether the log says that the request failed: by an HTTP status, or by anything
// else under the key of an error.
func (e *logEntry) failed(m mapping) bool {
	text, v, ok := e.at(m["error"].name())
	if status, err := strconv.ParseFloat(text, 64); err == nil {
		return status >= 400 || status < 0
	}
	return ok && text != "false" && !slices.Contains([]string{"{}", "[]"}, v.String())
}

// row returns the request; if need be, its arrival is its end minus its duration.
func (e *logEntry) row(m mapping) (r workload.TraceRow) {
	if m["arrival"].names != nil {
		r.Arrival = e.time(m["arrival"], date)
	} else {
		r.Arrival = e.time(m["end"], date) - max(e.time(m["duration"], time.ParseDuration), 0)
	}
	r.Prompt, r.Output = e.tokens(m["prompt"]), e.tokens(m["output"])
	r.Shared = e.shared(m, r.Prompt)
	return r
}

// shared returns the leading parts of a prompt that others may share: those that the log names, or
// hashed blocks. Two prompts whose hashes begin alike begin with the same text.
func (e *logEntry) shared(m mapping, prompt int) (parts []workload.Segment) {
	if ids, v, ok := e.at(m["prefix"].name()); ok {
		lengths, _, _ := e.at(m["prefix_tokens"].name())
		return e.prefixParts(cmp.Or(ids, v.String()), lengths, prompt)
	}
	ids := find(e.object, m["blocks"].name()).GetArray()
	size, _ := strconv.Atoi(m["blocks"].unit)
	if len(ids) > 0 && len(ids) != (prompt+size-1)/size {
		e.wrong("", "%d %s for %d tokens: blocks are not of %d tokens", len(ids), m["blocks"], prompt, size)
		return nil
	}
	for i, id := range ids {
		content := workload.NamedContent(id.String())
		if n, err := id.Uint64(); err == nil {
			content = workload.TraceContent(n)
		}
		parts = append(parts, workload.Segment{Content: content, Tokens: min(size, prompt-i*size)})
	}
	return parts
}

// prefixParts reads the shared beginning of a prompt: an id and its number of tokens, or lists of
// ids and of as many numbers, separated by spaces.
func (e *logEntry) prefixParts(ids, lengths string, prompt int) (parts []workload.Segment) {
	names, counts := strings.Fields(ids), strings.Fields(lengths)
	if len(counts) <= 1 {
		names, counts = []string{ids}, []string{lengths}
	}
	if len(names) != len(counts) {
		e.wrong("prefix_tokens", "%d lengths for %d ids", len(counts), len(names))
		return nil
	}
	sum := 0
	for i, name := range names {
		n, err := strconv.Atoi(counts[i])
		if sum += n; err != nil || n < 0 || n > maxTokens {
			e.wrong("prefix_tokens", "%q is no number of tokens", printable.Short(counts[i], 40))
		} else if sum > prompt {
			e.wrong("prefix_tokens", "%d are more than the %d of the whole prompt", sum, prompt)
		}
		if n > 0 {
			parts = append(parts, workload.Segment{Content: workload.NamedContent(name), Tokens: n})
		}
	}
	return parts
}
