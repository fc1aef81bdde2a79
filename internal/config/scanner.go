package config

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// token is a piece of TOML: a string of any of the four kinds, a comment, what a bare
// key may be of, or any other sign. Up to two quotes may stand before the closing three.
var token = regexp.MustCompile(`(?s)"""(?:\\.|[^\\])*?"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|#[^\n]*|[A-Za-z0-9_\x{80}-\x{10FFFF}-]+|.`)

// scanner walks over the tokens of a TOML text that the decoder has accepted and notes
// the line and column of every key, table and list element. The decoder keeps positions
// only for syntax errors, and a problem without a line is no help in a long file.
type scanner struct {
	text      string
	file      string
	tokens    [][]int // where each token begins and ends
	line      int
	lineStart int
	places    map[string]place
	tables    map[string]int // how many tables an array of tables has so far
}

func scan(text, file string) *scanner {
	return &scanner{text: text, file: file, tokens: token.FindAllStringIndex(text, -1), line: 1,
		places: map[string]place{}, tables: map[string]int{}}
}

// scanPlaces finds the places of a text. The keys of the result are paths: dotted,
// parts quoted where TOML wants quotes, elements of lists as [i]:
// workload.mix[0].prompt.median, slo.ttft."p99.9".
func scanPlaces(text, file string) map[string]place {
	s := scan(text, file)
	prefix := ""
	for s.skip(" \t\r\n"); !s.done(); s.skip(" \t\r\n") {
		left := len(s.tokens)
		if s.peek() == "[" {
			prefix = s.header()
		} else {
			s.entry(prefix)
		}
		if len(s.tokens) == left { // not TOML after all
			break
		}
	}
	return s.places
}

func (s *scanner) done() bool { return len(s.tokens) == 0 }

// peek is the next token, "" behind the last.
func (s *scanner) peek() string {
	if s.done() {
		return ""
	}
	return s.text[s.tokens[0][0]:s.tokens[0][1]]
}

// next takes the next token.
func (s *scanner) next() string {
	t := s.peek()
	if n := strings.Count(t, "\n"); n > 0 {
		s.line += n
		s.lineStart = s.tokens[0][0] + strings.LastIndexByte(t, '\n') + 1
	}
	if t != "" {
		s.tokens = s.tokens[1:]
	}
	return t
}

// skip moves over the tokens of a set of signs, and over comments where lines may end.
func (s *scanner) skip(set string) {
	for t := s.peek(); t != "" && (strings.Contains(set, t) || t[0] == '#' && strings.Contains(set, "\n")); t = s.peek() {
		s.next()
	}
}

func (s *scanner) here() place {
	at := place{file: s.file, line: s.line, column: len(s.text) - s.lineStart + 1}
	if !s.done() {
		at.column = s.tokens[0][0] - s.lineStart + 1
	}
	return at
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
	array := s.peek() == "["
	s.skip(" \t[")
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

func (s *scanner) entry(path string) {
	at := s.here()
	for _, part := range s.dotted() {
		path = join(path, part)
		s.mark(path, at)
	}
	if s.peek() == "=" {
		s.next()
		s.skip(" \t")
		s.value(path)
	}
}

// dotted reads a key: bare or quoted parts with dots between them.
func (s *scanner) dotted() []string {
	var parts []string
	for s.skip(" \t"); isKey.MatchString(s.peek()); s.skip(" \t") {
		parts = append(parts, unquoteKey(s.next()))
		if s.skip(" \t"); s.peek() != "." {
			break
		}
		s.next()
	}
	return parts
}

// isKey matches the tokens that are a bare or quoted key.
var isKey = regexp.MustCompile(`^["'A-Za-z0-9_\x{80}-\x{10FFFF}-]`)

// unquoteKey lets the decoder itself read a quoted key, so that the two never
// disagree about an escape.
func unquoteKey(key string) string {
	if trimmed := strings.Trim(key, `"'`); trimmed == key {
		return key
	}
	var tree map[string]any
	if _, err := toml.Decode(key+" = 0", &tree); err == nil {
		for name := range tree {
			return name
		}
	}
	return strings.Trim(key, `"'`)
}

// value moves over a value and notes what is inside.
func (s *scanner) value(path string) {
	switch s.peek() {
	case "[":
		s.items("]", func(i int) {
			s.mark(path+index(i), s.here())
			s.value(path + index(i))
		})
	case "{":
		s.items("}", func(int) { s.entry(path) })
	default:
		for t := s.peek(); t != "" && t[0] != '#' && !strings.Contains(",]}\r\n", t); t = s.peek() {
			s.next()
		}
	}
}

// items reads what stands between brackets, separated by commas.
func (s *scanner) items(end string, item func(i int)) {
	s.next()
	for i := 0; ; i++ {
		s.skip(" \t\r\n")
		left := len(s.tokens)
		if s.done() || s.peek() == end {
			s.next()
			return
		}
		item(i)
		if s.skip(" \t\r\n"); s.peek() == "," {
			s.next()
		}
		if len(s.tokens) == left {
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
