package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// words is a string, one of a set unless the set is empty.
func words[T ~string](allowed ...T) codec[T] {
	texts := make([]string, len(allowed))
	for i, word := range allowed {
		texts[i] = string(word)
	}
	read := func(n input) (T, bool) {
		s, ok := readWord(n, texts)
		return T(s), ok
	}
	return codec[T]{read: read, print: func(word T) string { return quote(string(word)) }}
}

// anyWord is any string, filled one that is not empty.
var (
	anyWord = words[string]()
	filled  = codec[string]{read: func(n input) (string, bool) {
		s, ok := readWord(n, nil)
		if ok && s == "" {
			n.wrong("a name")
		}
		return s, ok && s != ""
	}, print: quote}
)

func readWord(n input, allowed []string) (string, bool) {
	s, ok := n.typed()
	switch {
	case !ok && len(allowed) == 0:
		n.wrong("a string in quotes")
		return "", false
	case len(allowed) == 0 || slices.Contains(allowed, s):
		return s, true
	}
	allowed = slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" })
	want := "one of " + strings.Join(allowed, ", ")
	if near := nearest(s, allowed); s != "" && likeness(s, near) <= (len(s)+1)/2 {
		want += " (nearest: " + near + ")"
	}
	n.wrong(want)
	return "", false
}

// named is a value that has a name, one of a set; the empty one, where it is allowed,
// stands for the zero value.
func named[T fmt.Stringer](parse func(string) (T, error), allowed ...string) codec[T] {
	read := func(n input) (T, bool) {
		var zero T
		s, ok := readWord(n, allowed)
		if !ok || s == "" {
			return zero, ok
		}
		x, err := parse(s)
		if err != nil {
			n.refuse("%v", err)
		}
		return x, err == nil
	}
	return codec[T]{read: read, print: func(x T) string { return quote(x.String()) }}
}

// quote prints a string as TOML reads it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// pathname is the name of a file. In a file it is relative to that file, from the
// command line to the current folder; in a Config it is absolute, so that a
// printed configuration can be read from anywhere.
var pathname = codec[string]{read: func(n input) (string, bool) {
	name, ok := readWord(n, nil)
	if !ok || name == "" {
		return name, ok
	}
	if n.r.place(n.path).flag == "" && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(n.r.file), name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return name, true
}, print: quote}

// address is an http or https URL.
var address = codec[string]{read: func(n input) (string, bool) {
	s, ok := readWord(n, nil)
	if ok && strings.Contains(s, "@") { // not quoted: it may be a password
		n.refuse("holds a user or a password, want a URL without; api_key_env names the variable of a key")
		return "", false
	}
	u, err := url.Parse(s)
	if ok && s != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		n.wrong("an http or https URL, such as http://127.0.0.1:8000")
		return "", false
	}
	return s, ok
}, print: quote}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable is the name of an environment variable. What is refused is not quoted:
// it may be the key.
var variable = codec[string]{read: func(n input) (string, bool) {
	s, ok := n.typed()
	if !ok || s != "" && (!variableName.MatchString(s) || keyMark.MatchString(s)) {
		n.refuse("is not the name of an environment variable, want letters, digits and _, such as MY_API_KEY; the key itself belongs into that variable, not here")
		return "", false
	}
	return s, true
}, print: quote}

// arguments is a list of strings as it stands; it may be empty.
var arguments = codec[[]string]{read: func(n input) ([]string, bool) {
	_, isList := elements(n.value)
	if _, typed := n.r.texts[n.path]; !isList && !typed {
		n.wrong(`a list of strings, such as ["--port", "8000"]`)
		return nil, false
	}
	out := []string{}
	for _, item := range n.list() {
		if s, ok := readWord(item, nil); ok {
			out = append(out, s)
		}
	}
	return out, true
}, print: func(items []string) string { return brackets(items, quote) }, composite: true}

// namedWords is a table of strings, each of which a check may refuse.
func namedWords(check func(input) bool) codec[map[string]string] {
	read := func(n input) (map[string]string, bool) {
		if _, ok := n.value.(map[string]any); !ok {
			n.wrong(`a table of strings, such as { NAME = "value" }`)
			return nil, false
		}
		out := map[string]string{}
		for _, c := range n.children() {
			if s, ok := readWord(c, nil); ok && (check == nil || check(c)) {
				out[c.name] = s
			}
		}
		return out, true
	}
	return codec[map[string]string]{read, func(m map[string]string) string {
		return braces(slices.Sorted(maps.Keys(m)), func(name string) string { return quote(m[name]) })
	}, true}
}

// keyMark is how the keys of the usual providers begin.
var keyMark = regexp.MustCompile(`^(sk|pk|rk|hf|gsk|xai|nvapi|ghp|glpat)[-_]|^eyJ|^AKIA|^AIza|^Bearer `)

var secretHeader = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|x-.*token|.*api-?key.*|.*secret.*)$`)

// checkHeader keeps keys out of the file, from where they would be copied into the
// run folder.
func checkHeader(n input) bool {
	s, _ := n.typed()
	if secretHeader.MatchString(n.name) || keyMark.MatchString(s) {
		n.refuse("is a secret, want it in an environment variable that api_key_env names")
		return false
	}
	return true
}

var secretVariable = regexp.MustCompile(`(?i)(^|_)(token|secret|password|api_?key|access_?key)$`)

// checkVariable does the same for the environment.
func checkVariable(n input) bool {
	s, _ := n.typed()
	switch {
	case !variableName.MatchString(n.name):
		n.refuse("is no name of an environment variable, want letters, digits and _")
	case s != "" && (secretVariable.MatchString(n.name) || keyMark.MatchString(s)):
		n.refuse("is a secret, want it set in the environment of planner instead of in a file")
	default:
		return true
	}
	return false
}
