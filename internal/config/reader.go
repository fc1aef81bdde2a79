package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	fileinput "planner/internal/input"
	"planner/internal/list"
	"planner/internal/printable"
	"planner/internal/spelling"
	"planner/model"
)

// reader holds a configuration as written, with the place of each value, and collects what is wrong.
type reader struct {
	file     string
	tree     map[string]any
	places   map[string]place
	problems Problems
	warnings []string
	catalog  *model.Catalog // this reading's own
}

func newReader(file string, catalog *model.Catalog) *reader {
	return &reader{file: file, tree: map[string]any{}, places: map[string]place{}, catalog: catalog}
}

func (r *reader) note(at place, key, format string, args ...any) {
	r.problems = append(r.problems, Problem{Key: key, Text: oneLine(fmt.Sprintf(format, args...)), at: at})
}

// take reads every key that was written into the configuration.
func (r *reader) take(c *Config) {
	all := c.sections()
	for _, n := range (input{r: r, value: r.tree}).children() {
		known := all
		if n.name == "run" {
			known = []tomlTable{{"run", c.runRows()}}
		}
		section, is := list.Find(known, func(s tomlTable) bool { return s.name == n.name })
		switch _, ok := n.value.(map[string]any); {
		case !is && ok:
			sections := list.Map(all, func(s tomlTable) string { return s.name })
			text := "is no section"
			if near := spelling.Nearest(n.name, sections); spelling.Slip(n.name, near) {
				text += ", the nearest is [" + near + "]"
			} else if key := nearestKey("", n.name, all); strings.HasSuffix(key, "."+n.name) {
				text += ", but there is the key " + key
			}
			n.refuse("%s; want one of %s", text, strings.Join(sections, ", "))
		case !is:
			n.refuse("is no key, %s", instead("", n.name, all))
		case !ok:
			n.wrong("a section [" + n.name + "] of keys")
		default:
			for _, c := range n.takeRows(section.rows) {
				c.refuse("is no key, %s", instead(n.name, c.name, known))
			}
		}
	}
}

// nearestKey finds the key most likely meant by a misspelt or misplaced one. A key of another section must be
// clearly nearer than those of the section itself, and not far.
func nearestKey(within, name string, all []tomlTable) string {
	best, least := "", math.MaxInt
	for _, s := range all {
		for _, k := range s.rows {
			d := 2 * spelling.Steps(name, k.name)
			if s.name != within {
				d += 3
				if within != "" && !spelling.Slip(name, k.name) {
					continue
				}
			}
			if d < least {
				best, least = s.name+"."+k.name, d
			}
		}
	}
	return best
}

func (r *reader) clean(keys ...string) bool {
	return !slices.ContainsFunc(r.problems, func(p Problem) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return p.Key == key || strings.HasPrefix(p.Key, key+".") })
	})
}

func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, oneLine(fmt.Sprintf(format, args...)))
}

func (r *reader) warnIf(holds bool, format string, args ...any) {
	if holds {
		r.warn(format, args...)
	}
}

// absent reports a missing key, unless its section was unreadable.
func (r *reader) absent(key, text string) {
	section, _, _ := strings.Cut(key, ".")
	if !slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Key == section }) {
		r.at(key).refuse("%s", text)
	}
}

// missing is a missing key, at the place of the key that requires it unless it was given but empty.
func (r *reader) missing(key, asker string) input {
	n := r.at(key)
	if !r.given(key) {
		n.path = asker
	}
	return n
}

// input is a value as written, on its way into a Config.
type input struct {
	r     *reader
	path  string // where it is: "knobs.max_num_seqs[2]"
	key   string // how a problem names it: "knobs.max_num_seqs"
	name  string // its own key in a table
	value any
	inner bool // whether it is a list element, so that the key "holds" it instead of "is" it
}

func (r *reader) at(path string) input { return input{r: r, path: path, key: path} }

// element returns the input of the list element from which a value was read, or of the list itself.
func (r *reader) element(key string, value any) input {
	n := r.at(key)
	section, name, _ := strings.Cut(key, ".")
	table, _ := r.tree[section].(map[string]any)
	items, _ := elements(table[name])
	if i := slices.Index(items, value); i >= 0 {
		n.path += index(i)
	}
	return n
}

func (n input) refuse(format string, args ...any) {
	n.r.note(n.r.place(n.path), n.key, format, args...)
}

func (n input) refuseIf(wrong bool, format string, args ...any) {
	if wrong {
		n.refuse(format, args...)
	}
}

func (n input) wrong(want string) {
	verb := "is"
	if n.inner {
		verb = "holds"
	}
	n.refuse("%s %s, want %s", verb, describe(n.value), want)
}

func describe(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(printable.Short(v, 60))
	case int64, bool:
		return fmt.Sprint(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "not a number (nan)"
		case math.IsInf(v, 0):
			return "infinite"
		}
		text := number(v)
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // otherwise a refused 4.0 would look like a whole number
		}
		return text
	case time.Time:
		return "a date"
	case map[string]any:
		return "a table"
	}
	if items, ok := elements(v); ok {
		if len(items) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	return fmt.Sprintf("a %T", v)
}

// elements returns the elements of a list in either of the decoder's representations.
func elements(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case []map[string]any:
		return list.Map(v, func(table map[string]any) any { return table }), true
	}
	return nil, false
}

// typed returns a string, or the text of an override if a string is expected: there, a value that looks like a
// number (--set engine.version=0.11) is taken as typed.
func (n input) typed() (string, bool) {
	if s, ok := n.value.(string); ok {
		return s, true
	}
	at := n.r.places[n.path]
	return at.text, at.typed
}

// list returns the elements of a list, or a single value as a list of one. An override may write a list as
// a,b,c.
func (n input) list() []input {
	items, ok := elements(n.value)
	if !ok {
		text, isText := n.value.(string)
		if !n.r.places[n.path].typed || !isText || !strings.Contains(text, ",") {
			return []input{n}
		}
		for part := range strings.SplitSeq(text, ",") {
			items = append(items, literal(strings.TrimSpace(part)))
		}
	}
	return list.Times(len(items), func(i int) input {
		return input{r: n.r, path: n.path + index(i), key: n.key, value: items[i], inner: true}
	})
}

// only returns the single element of a list of one, or the input itself.
func (n input) only() input {
	if items, ok := elements(n.value); ok && len(items) == 1 {
		n.path += index(0)
		n.value = items[0]
	}
	return n
}

func (n input) child(key string) (input, bool) {
	table, _ := n.value.(map[string]any)
	v, ok := table[key]
	return input{r: n.r, path: join(n.path, key), key: join(n.key, key), name: key, value: v}, ok
}

// children returns the values inside a table in the order given; none if it is not a table.
func (n input) children() []input {
	table, _ := n.value.(map[string]any)
	all := list.Map(slices.Sorted(maps.Keys(table)), func(name string) input {
		c, _ := n.child(name)
		return c
	})
	slices.SortStableFunc(all, func(a, b input) int { return comparePlaces(n.r.place(a.path), n.r.place(b.path)) })
	return all
}

// readFile reads the file that a key names, of at most most bytes, or reports why it cannot.
func readFile[T any](n input, name, want string, most int64, read func(io.Reader) (T, error)) (x T) {
	f, err := os.Open(name)
	if err == nil {
		defer f.Close()
		x, err = read(fileinput.Limit(f, most))
	}
	inaccessible, ok := errors.AsType[*fs.PathError](err)
	switch {
	case ok:
		n.refuse("%s cannot be read: %v, want %s", name, inaccessible.Err, want)
	case err != nil && strings.HasPrefix(err.Error(), name):
		n.refuse("%v", err)
	case err != nil:
		n.refuse("%s: %v", name, err)
	}
	return x
}
