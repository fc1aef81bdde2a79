package config

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	fileinput "planner/internal/input"
)

// Override is one value from the command line, which replaces that of the file.
type Override struct {
	// Key is the full key: "demand.rate", "slo.ttft.p99".
	Key string
	// Value is a TOML value; anything else is taken as a string, so that 500ms and H100 SXM need no quotes.
	Value string
	// Flag is the flag that gave it, for messages: "--rate"; "" means --set.
	Flag string
}

// read reads the file, if there is one, and applies the overrides. It returns false if the file could not be
// read, since everything else would follow from that.
func (r *reader) read(overrides []Override) (ok bool) {
	if r.file != "" {
		data, err := fileinput.ReadFile(r.file, fileinput.Settings)
		if err != nil {
			r.note(place{file: r.file}, "", "cannot be read: %s, want a TOML file", reason(err))
			return false
		}
		if !r.parse(string(data)) {
			return false
		}
	}
	for i, o := range overrides {
		r.override(o, i+1)
	}
	return true
}

// reason returns the error without the operation and path, which the problem already names.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}

func (r *reader) parse(text string) bool {
	at := place{file: r.file, line: 1, column: 1}
	if line, err := fileinput.CheckTOML(text); err != nil {
		at.line = line
		r.note(at, "", "holds %v", err)
		return false
	}
	_, err := toml.Decode(text, &r.tree)
	if err == nil {
		r.places = placesOf(withoutMark(text), r.file)
		r.renameStats()
		return true
	}
	pe, ok := errors.AsType[toml.ParseError](err)
	if !ok {
		r.note(at, "", "is no TOML: %v", err)
		return false
	}
	at.line, at.column = pe.Position.Line, pe.Position.Col
	key := oneLine(pe.LastKey) // the last key read, which may be far before the error
	lines := strings.Split(text, "\n")
	if i := at.line - 1; i < 0 || i >= len(lines) || !strings.Contains(lines[i], key[strings.LastIndexByte(key, '.')+1:]) {
		key = ""
	}
	r.note(at, key, "is no TOML at column %d: %s", at.column, pe.Message)
	return false
}

// withoutMark removes a byte order mark, as the decoder does.
func withoutMark(text string) string {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\ufeff"} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return rest
		}
	}
	return text
}

// longestKey is the most that a problem quotes of a key, in bytes.
const longestKey = 200

func (r *reader) override(o Override, order int) {
	if o.Flag == "" {
		o.Flag = strings.TrimSpace("--set " + oneLine(o.Key[:min(len(o.Key), longestKey)]))
	}
	at := place{flag: o.Flag, order: order}
	if _, err := fileinput.CheckTOML(o.Key); err != nil {
		r.note(at, "", "is %v", err)
		return
	}
	keys := canonicalStat(keyParts(o.Key))
	switch {
	case len(keys) == 0:
		r.note(at, "", "is no key, want --set section.key=value")
		return
	case !utf8.ValidString(o.Value):
		r.note(at, "", "is no UTF-8 text")
		return
	}
	r.drop(keys)
	table, path := r.tree, ""
	for _, key := range keys[:len(keys)-1] {
		path = join(path, key)
		inner, ok := table[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			table[key] = inner
			r.places[path] = at
		}
		table = inner
	}
	path = join(path, keys[len(keys)-1])
	table[keys[len(keys)-1]] = literal(o.Value)
	at.typed, at.text = true, o.Value
	r.places[path] = at
}

// drop removes the places of everything at or below a replaced key.
func (r *reader) drop(keys []string) {
	path := toml.Key(keys).String()
	maps.DeleteFunc(r.places, func(old string, _ place) bool {
		return old == path || strings.HasPrefix(old, path+".") || strings.HasPrefix(old, path+"[")
	})
}

// canonicalStat repairs slo.ttft.p99.9, the natural name of that bound, which TOML reads as a key 9 inside p99;
// p999 means the same.
func canonicalStat(keys []string) []string {
	if len(keys) < 3 || keys[0] != "slo" {
		return keys
	}
	stat := strings.Join(keys[2:], ".")
	if stat == "p999" {
		stat = "p99.9"
	}
	return []string{keys[0], keys[1], stat}
}

// renameStats renames p999, which TOML can write without quotes, to p99.9 in the limits of a file and of its
// mix's classes.
func (r *reader) renameStats() {
	whole := input{r: r, value: r.tree}
	slo, _ := whole.child("slo")
	limits := slo.children()
	section, _ := whole.child("workload")
	if mix, ok := section.child("mix"); ok {
		for _, class := range mix.list() {
			slo, _ := class.child("slo")
			limits = append(limits, slo.children()...)
		}
	}
	for _, n := range limits {
		table, _ := n.value.(map[string]any)
		limit, ok := table["p999"]
		if !ok {
			continue
		}
		written, name := join(n.path, "p999"), join(n.path, "p99.9")
		if _, twice := table["p99.9"]; twice {
			r.at(name).refuse(`is given twice, want either p999 or "p99.9"`)
		} else {
			table["p99.9"], r.places[name] = limit, r.places[written]
		}
		delete(table, "p999")
	}
}

func literal(text string) any {
	var tree map[string]any
	if _, err := fileinput.CheckTOML(text); err != nil || strings.ContainsAny(text, "\n\r") {
		return text
	}
	if _, err := toml.Decode("x = "+text, &tree); err != nil || len(tree) != 1 {
		return text
	}
	return tree["x"]
}

// place returns where a path was given: its own place, or that of the table or list that contains it.
func (r *reader) place(path string) place {
	for {
		if at, ok := r.places[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	if r.file == "" {
		return place{}
	}
	return place{file: r.file, line: 1}
}

func (r *reader) given(path string) bool {
	_, ok := r.places[path]
	return ok
}
