package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/pelletier/go-toml/v2/unstable"

	"planner/internal/list"
)

// placesOf finds the position of every key, table and list element of a TOML text that the decoder has
// accepted. The decoder keeps positions only for syntax errors, and a problem without a line is no help in a
// long file. The keys of the result are paths: dotted, with parts quoted as TOML requires, and list elements as
// [i]: workload.mix[0].prompt.median, slo.ttft."p99.9".
func placesOf(text, file string) map[string]place {
	f := finder{at: place{file: file, line: 1, column: 1}, places: map[string]place{}, tables: map[string]int{}}
	f.Reset([]byte(text))
	prefix := ""
	for f.NextExpression() {
		if n := f.Expression(); n.Kind == unstable.KeyValue {
			f.entry(prefix, n)
		} else {
			prefix = f.header(n)
		}
	}
	return f.places
}

// A finder walks over the expressions of a text from beginning to end.
type finder struct {
	unstable.Parser
	at     place // of the last node that has a position
	offset int   // in bytes
	places map[string]place
	tables map[string]int // number of tables so far in each array of tables
}

// move advances to a node. An empty list has no position of its own and takes that of the node before it.
func (f *finder) move(n *unstable.Node) {
	for n.Kind == unstable.Array && n.Child() != nil {
		n = n.Child()
	}
	if n.Kind == unstable.Array {
		return
	}
	to := int(n.Raw.Offset)
	passed := f.Data()[f.offset:to]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		f.at.line += bytes.Count(passed, []byte("\n"))
		f.at.column, passed = 1, passed[i+1:]
	}
	f.at.column, f.offset = f.at.column+len(passed), to
}

// mark records the place of a path, unless it already has one.
func (f *finder) mark(path string) {
	if _, ok := f.places[path]; !ok {
		f.places[path] = f.at
	}
}

// header returns the path of the table [a.b] or [[a.b]], a prefix of the keys below it.
func (f *finder) header(n *unstable.Node) (path string) {
	f.move(n.Child())
	for key := n.Key(); key.Next(); {
		path = join(path, string(key.Node().Data))
		f.mark(path)
		if n.Kind == unstable.ArrayTable && key.IsLast() {
			f.tables[path]++
		}
		if n := f.tables[path]; n > 0 {
			path += index(n - 1)
			f.mark(path)
		}
	}
	if n.Kind == unstable.Table {
		f.places[path] = f.at // an explicit header takes precedence over an implied one
	}
	return path
}

func (f *finder) entry(path string, n *unstable.Node) {
	f.move(n.Value().Next()) // the key
	for key := n.Key(); key.Next(); {
		path = join(path, string(key.Node().Data))
		f.mark(path)
	}
	f.value(path, n.Value())
}

func (f *finder) value(path string, n *unstable.Node) {
	inside := n.Children()
	for i := 0; inside.Next(); i++ {
		if n.Kind == unstable.InlineTable {
			f.entry(path, inside.Node())
			continue
		}
		f.move(inside.Node())
		f.mark(path + index(i))
		f.value(path+index(i), inside.Node())
	}
}

// keyParts returns the parts of a dotted key; none if it is not a key.
func keyParts(text string) (parts []string) {
	var p unstable.Parser
	p.Reset([]byte(text + "=0"))
	if !p.NextExpression() || p.Expression().Kind != unstable.KeyValue {
		return nil
	}
	for key := p.Expression().Key(); key.Next(); {
		parts = append(parts, string(key.Node().Data))
	}
	if p.NextExpression() {
		return nil
	}
	return parts
}

func join(path, key string) string {
	key = toml.Key{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// place is where a value was given: in a file, or on the command line.
type place struct {
	file         string
	line, column int    // from 1; 0 when the place is a file as a whole
	flag         string // "--rate", "--set demand.rate"; empty for a file
	order        int    // of the flag on the command line
	typed        bool   // whether it is the value of a flag itself, with this text
	text         string
}

// String returns the beginning of a problem's line: "planner.toml:12" or "--rate".
func (p place) String() string {
	switch {
	case p.flag != "":
		return p.flag
	case p.line > 0:
		return fmt.Sprintf("%s:%d", p.file, p.line)
	case p.file != "":
		return p.file
	}
	return "command line"
}

// Problem is one thing wrong with a configuration.
type Problem struct {
	// Key is the full key, "demand.rate"; empty if no key is concerned.
	Key string
	// Text says what is wrong and what is allowed.
	Text string

	at place // FILE:LINE, or the flag that gave the value
}

// String formats the problem as one line: "FILE:LINE: section.key: what is wrong".
func (p Problem) String() string {
	text := p.at.String() + ": "
	if p.Key != "" {
		text += p.Key + ": "
	}
	return text + p.Text
}

// Problems lists everything wrong with a configuration, in the order of the file and then of the command line.
// It is the only type of error that [Load] returns.
type Problems []Problem

// Error joins the problems, one per line.
func (ps Problems) Error() string {
	return strings.Join(list.Map(ps, Problem.String), "\n")
}

// sorted orders problems by place: the file from top to bottom, then the flags.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(comparePlaces(a.at, b.at), strings.Compare(a.Key, b.Key))
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool { return a.String() == b.String() })
}

func comparePlaces(a, b place) int {
	return cmp.Or(
		cmp.Compare(a.order, b.order),
		cmp.Compare(a.line, b.line),
		cmp.Compare(a.column, b.column))
}

// oneLine joins lines, so that a problem stays on one line whatever text it quotes.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
