package config

import (
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// scanPlaces finds the line and column of every key, table and list element of a
// TOML text that the decoder has accepted. The decoder keeps positions only for
// syntax errors, and a problem without a line is no help in a long file.
//
// The keys of the result are paths: dotted, parts quoted where TOML wants quotes,
// elements of lists as [i]: workload.mix[0].prompt.median, slo.ttft."p99.9".
func scanPlaces(text, file string) map[string]place {
	s := &scanner{text: text, line: 1, file: file, places: map[string]place{}, tables: map[string]int{}}
	prefix := ""
	for s.skipBlank(); !s.done(); s.skipBlank() {
		start := s.pos
		if s.peek() == '[' {
			prefix = s.header()
		} else {
			s.entry(prefix)
		}
		if s.pos == start { // not TOML after all
			return s.places
		}
	}
	return s.places
}

type scanner struct {
	text      string
	file      string
	pos, line int
	lineStart int
	places    map[string]place
	tables    map[string]int // how many tables an array of tables has so far
}

func (s *scanner) done() bool { return s.pos >= len(s.text) }

func (s *scanner) peek() byte {
	if s.done() {
		return 0
	}
	return s.text[s.pos]
}

func (s *scanner) next() {
	if s.done() {
		return
	}
	if s.peek() == '\n' {
		s.line++
		s.lineStart = s.pos + 1
	}
	s.pos++
}

// skip moves over the bytes of a set.
func (s *scanner) skip(set string) {
	for !s.done() && strings.IndexByte(set, s.peek()) >= 0 {
		s.next()
	}
}

// skipBlank moves over white space, line ends and comments.
func (s *scanner) skipBlank() {
	for {
		s.skip(" \t\r\n")
		if s.peek() != '#' {
			return
		}
		for !s.done() && s.peek() != '\n' {
			s.next()
		}
	}
}

func (s *scanner) here() place {
	return place{file: s.file, line: s.line, column: s.pos - s.lineStart + 1}
}

// mark notes the place of a path; the first one counts.
func (s *scanner) mark(path string, at place) {
	if _, ok := s.places[path]; !ok {
		s.places[path] = at
	}
}

// header reads [a.b] or [[a.b]] and returns the path that its keys begin with.
func (s *scanner) header() string {
	at := s.here()
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	s.skip(" \t")
	parts := s.dotted()
	s.skip(" \t]")
	path := ""
	for i, part := range parts {
		path = join(path, part)
		s.mark(path, at)
		if array && i == len(parts)-1 {
			s.tables[path]++
		}
		if n := s.tables[path]; n > 0 {
			path += index(n - 1)
			s.mark(path, at)
		}
	}
	if len(parts) > 0 && !array {
		s.places[path] = at // an explicit header tells more than an implied one
	}
	return path
}

// entry reads key = value.
func (s *scanner) entry(prefix string) {
	at := s.here()
	parts := s.dotted()
	path := prefix
	for _, part := range parts {
		path = join(path, part)
		s.mark(path, at)
	}
	s.skip(" \t")
	if s.peek() != '=' {
		return
	}
	s.next()
	s.skip(" \t")
	s.value(path)
}

// dotted reads a key: bare or quoted parts with dots between them.
func (s *scanner) dotted() []string {
	var parts []string
	for {
		s.skip(" \t")
		part, ok := s.part()
		if !ok {
			return parts
		}
		parts = append(parts, part)
		s.skip(" \t")
		if s.peek() != '.' {
			return parts
		}
		s.next()
	}
}

func (s *scanner) part() (string, bool) {
	start := s.pos
	if c := s.peek(); c == '"' || c == '\'' {
		s.quoted()
		return unquoteKey(s.text[start:s.pos]), true
	}
	for !s.done() && isBare(s.peek()) {
		s.next()
	}
	return s.text[start:s.pos], s.pos > start
}

// unquoteKey lets the decoder itself read a quoted key, so that the two never
// disagree about an escape.
func unquoteKey(quoted string) string {
	var tree map[string]any
	if _, err := toml.Decode(quoted+" = 0", &tree); err == nil {
		for key := range tree {
			return key
		}
	}
	return strings.Trim(quoted, `"'`)
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// quoted moves over a string of any of the four kinds.
func (s *scanner) quoted() {
	quote := s.text[s.pos : s.pos+1]
	escapes := quote == `"`
	if strings.HasPrefix(s.text[s.pos:], strings.Repeat(quote, 3)) {
		s.pos += 3
		for !s.done() && !strings.HasPrefix(s.text[s.pos:], strings.Repeat(quote, 3)) {
			if escapes && s.peek() == '\\' {
				s.next()
			}
			s.next()
		}
		s.skip(quote) // up to two quotes may stand before the closing three
		return
	}
	s.next()
	for !s.done() && s.text[s.pos:s.pos+1] != quote && s.peek() != '\n' {
		if escapes && s.peek() == '\\' {
			s.next()
		}
		s.next()
	}
	s.next()
}

// value moves over a value and notes what is inside.
func (s *scanner) value(path string) {
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.next()
		s.items(']', func(i int) {
			s.mark(path+index(i), s.here())
			s.value(path + index(i))
		})
	case '{':
		s.next()
		s.items('}', func(int) { s.entry(path) })
	default:
		for !s.done() && strings.IndexByte(",]}#\r\n", s.peek()) < 0 {
			s.next()
		}
	}
}

// items reads what stands between a bracket and its end, separated by commas.
func (s *scanner) items(end byte, item func(i int)) {
	for i := 0; ; i++ {
		s.skipBlank()
		if s.done() {
			return
		}
		if s.peek() == end {
			s.next()
			return
		}
		start := s.pos
		item(i)
		s.skipBlank()
		if s.peek() == ',' {
			s.next()
		}
		if s.pos == start {
			return
		}
	}
}

// join puts one more key on a path.
func join(path, key string) string {
	key = toml.Key{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }
