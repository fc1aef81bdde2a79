package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Override is one value from the command line; it replaces what the file says.
type Override struct {
	// Key is the full key: "demand.rate", "slo.ttft.p99".
	Key string
	// Value is a TOML value; anything that is none is taken as a string, so that
	// neither 500ms nor H100 SXM needs quotes.
	Value string
	// Flag is the flag that gave it, for problems: "--rate"; "" means --set.
	Flag string
}

// source is a configuration as it was written: values, and where each came from.
type source struct {
	file   string
	tree   map[string]any
	places map[string]place
	texts  map[string]string // of overrides, as typed
}

// readSource reads the file, if there is one, and puts the overrides on top. It is
// not ok if the file could not be read, from which all else would follow.
func readSource(path string, overrides []Override) (src *source, problems Problems, ok bool) {
	src = &source{file: path, tree: map[string]any{}, places: map[string]place{}, texts: map[string]string{}}
	if path != "" {
		if problems := src.read(path); problems != nil {
			return src, problems, false
		}
	}
	for i, o := range overrides {
		if p := src.override(o, i+1); p != nil {
			problems = append(problems, *p)
		}
	}
	return src, problems, true
}

func (s *source) read(path string) Problems {
	data, err := os.ReadFile(path)
	if err != nil {
		return Problems{{Text: "cannot be read: " + reason(err) + ", want a TOML file", at: place{file: path}}}
	}
	return s.parse(string(data))
}

// reason is the error without the operation and the path, which the problem names
// already.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

func (s *source) parse(text string) Problems {
	if _, err := toml.Decode(text, &s.tree); err != nil {
		s.tree = map[string]any{}
		at := place{file: s.file, line: 1, column: 1}
		var pe toml.ParseError
		if !errors.As(err, &pe) {
			return Problems{{Text: "is no TOML: " + oneLine(err.Error()), at: at}}
		}
		at.line, at.column = pe.Position.Line, pe.Position.Col
		key := oneLine(pe.LastKey) // the last one read, which may be long before the error
		if !strings.Contains(lineOf(text, at.line), key[strings.LastIndexByte(key, '.')+1:]) {
			key = ""
		}
		return Problems{{Key: key, Text: fmt.Sprintf("is no TOML at column %d: %s", at.column, oneLine(pe.Message)), at: at}}
	}
	s.places = scanPlaces(withoutMark(text), s.file)
	return nil
}

// withoutMark takes a byte order mark off, as the decoder does.
func withoutMark(text string) string {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\ufeff"} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return rest
		}
	}
	return text
}

// lineOf returns a line of a text, counted from 1.
func lineOf(text string, n int) string {
	for line := range strings.Lines(text) {
		if n--; n == 0 {
			return line
		}
	}
	return ""
}

// override puts one value of the command line into the tree.
func (s *source) override(o Override, order int) *Problem {
	if o.Flag == "" {
		o.Flag = strings.TrimSpace("--set " + oneLine(o.Key))
	}
	at := place{flag: o.Flag, order: order}
	refuse := func(text string) *Problem { return &Problem{Text: text, at: at} }
	key := scan(o.Key, "")
	keys := canonicalStat(key.dotted())
	if len(keys) == 0 || !key.done() || strings.HasSuffix(o.Key, ".") {
		return refuse("is no key, want --set section.key=value")
	}
	if !utf8.ValidString(o.Value) {
		return refuse("is no UTF-8 text")
	}
	s.drop(keys)
	table, path := s.tree, ""
	for _, key := range keys[:len(keys)-1] {
		path = join(path, key)
		inner, ok := table[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			table[key] = inner
			s.places[path] = at
		}
		table = inner
	}
	path = join(path, keys[len(keys)-1])
	table[keys[len(keys)-1]] = literal(o.Value)
	s.places[path] = at
	s.texts[path] = o.Value
	return nil
}

// drop forgets the places of everything at or below a key that is replaced, and
// the other spelling of a statistic.
func (s *source) drop(keys []string) {
	path := toml.Key(keys).String()
	for old := range s.places {
		if old == path || strings.HasPrefix(old, path+".") || strings.HasPrefix(old, path+"[") {
			delete(s.places, old)
			delete(s.texts, old)
		}
	}
	if len(keys) == 3 && keys[2] == "p99.9" {
		if section, ok := s.tree[keys[0]].(map[string]any); ok {
			if metric, ok := section[keys[1]].(map[string]any); ok {
				delete(metric, "p999")
			}
		}
	}
}

// canonicalStat mends slo.ttft.p99.9, which is how everybody names that bound but
// which TOML would read as a key 9 inside p99; p999 means the same.
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

// literal reads the text of an override as a TOML value, or else as a string.
func literal(text string) any {
	var tree map[string]any
	if strings.ContainsAny(text, "\n\r") {
		return text
	}
	if _, err := toml.Decode("x = "+text, &tree); err != nil || len(tree) != 1 {
		return text
	}
	return tree["x"]
}

// place finds where a path was given: itself, or the table or list it is in.
func (s *source) place(path string) place {
	for {
		if at, ok := s.places[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	if s.file == "" {
		return place{}
	}
	return place{file: s.file, line: 1}
}

// given reports whether a path has a value.
func (s *source) given(path string) bool {
	_, ok := s.places[path]
	return ok
}
