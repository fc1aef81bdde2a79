// Package secret keeps keys, tokens and passwords out of stored and displayed text: it recognises them by name
// where they are given, and by value where servers and engines repeat them.
package secret

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Names of secret variables, options and headers, and patterns of values.
var (
	variable = regexp.MustCompile(`(?i)(^|_)(token|secret|password|passwd|pass|pwd|auth|api_?key|(access|secret|private|signing|license|account)_?key|credentials?|dsn)$`)
	option   = regexp.MustCompile(`(?i)^--?([a-z0-9_-]*[-_])?(api[-_]?key|(access|secret|private)[-_]key|(hf|hub|auth|access|bearer|api|refresh|secret)[-_]?token|password|passwd|secret|credentials?)$|^--?token$`)
	header   = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|.*[-_]?auth([-_].*)?|.*token.*|.*api[-_]?key.*|.*secret.*|.*password.*|.*credential.*)$`)
	// mark is how the keys of common providers begin, or what precedes a key.
	mark = regexp.MustCompile(`^((sk|pk|rk|hf|gsk|xai|nvapi|ghp|glpat)[-_][A-Za-z0-9]|eyJ[A-Za-z0-9]|AKIA[A-Z0-9]|AIza|Bearer |Basic )`)
	// key is an entire key of a common provider, not just a name that begins like one.
	key = regexp.MustCompile(`^(((sk|pk|rk|gsk|xai|nvapi|ghp|glpat)[-_]|hf_)[A-Za-z0-9_-]{6,}|eyJ[A-Za-z0-9_.-]{16,}|AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{16,})$`)
	// userInfo is a password in a URL.
	userInfo = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)
	// harmless are values that no secret has: empty, options, numbers, times, and references to variables.
	harmless = regexp.MustCompile(`(?i)^(|true|false|yes|no|on|off|none|null|auto|empty|[+-]?[0-9]{0,8}(\.[0-9]*)?([a-z%]{0,2})?|\$.*|.*\{env:[A-Za-z_][A-Za-z0-9_]*\}.*)$`)
)

// Variable reports whether a variable of that name and value holds a secret. PWD is a shell's current folder.
func Variable(name, value string) bool {
	if name == "PWD" && strings.HasPrefix(value, "/") {
		return false
	}
	return Value(value) || variable.MatchString(name) && !harmless.MatchString(value)
}

// Header reports whether a header of that name and value holds a secret.
func Header(name, value string) bool {
	return Value(value) || header.MatchString(name) && !harmless.MatchString(value)
}

// Value reports whether a text looks like a secret.
func Value(text string) bool { return mark.MatchString(text) || userInfo.MatchString(text) }

// Arguments marks the words of an argument list that hold a secret: on their own, after the name of an option,
// or within a command for a shell.
func Arguments(args []string) []bool {
	found := make([]bool, len(args))
	behind := false // after the name of an option
	for i, arg := range args {
		words := strings.Fields(arg)
		if len(words) == 0 {
			behind = false
		}
		for _, word := range words {
			word = strings.Trim(word, `"';`)
			name, value, joined := strings.Cut(word, "=")
			switch {
			case behind && !harmless.MatchString(word) && !strings.HasPrefix(word, "--"), key.MatchString(word), userInfo.MatchString(word):
				found[i] = true
			case joined && !harmless.MatchString(strings.Trim(value, `"'`)):
				found[i] = found[i] || key.MatchString(value) || option.MatchString(name) || !strings.HasPrefix(name, "-") && variable.MatchString(name)
			}
			behind = !joined && option.MatchString(word)
		}
	}
	return found
}

// Hidden replaces a secret.
const Hidden = "***"

// shortest is the least length of a value that is taken for a secret, and of a recognised beginning of one:
// anything shorter occurs by chance.
const shortest = 6

// Set is a set of secret values. The zero value is empty.
type Set struct{ values []string }

// In returns the secrets in an environment, a list of KEY=VALUE: the values of the named variables, and of all
// that are secret by name or value.
func In(environ []string, named ...string) Set {
	var s Set
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		value = strings.TrimSpace(value)
		if len(value) >= shortest && (slices.Contains(named, name) || Variable(name, value)) {
			s.values = append(s.values, ways(value)...)
		}
	}
	// The longest first, lest only a part of one be hidden as another.
	slices.SortFunc(s.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.values = slices.Compact(s.values)
	return s
}

// ways returns the forms in which texts quote a value.
func ways(value string) []string {
	quoted, _ := json.Marshal(value) // a string always has a JSON text
	inJSON := strings.Trim(string(quoted), `"`)
	goQuoted := fmt.Sprintf("%q", value)
	return []string{value, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), goQuoted[1 : len(goQuoted)-1],
		url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value)}
}

// Holds reports whether a text has a secret in it.
func (s Set) Holds(text string) bool { return s.Hide(text) != text }

// Hide replaces the secrets in a text, including one that is cut off at the end, or before trailing dots that
// mark a cut.
func (s Set) Hide(text string) string {
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, Hidden)
	}
	words, cut := strings.CutSuffix(text, "...")
	if n := s.begun(words); n >= shortest {
		words = words[:len(words)-n] + Hidden
	}
	if cut {
		words += "..."
	}
	return words
}

// begun returns how many bytes at the end of a text may be the beginning of a secret.
func (s Set) begun(text string) int {
	most := 0
	for _, v := range s.values {
		for n := min(len(v)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, v[:n]) {
				most = n
			}
		}
	}
	return most
}

// Error returns an error with the secrets hidden in its text; nil for nil.
func (s Set) Error(err error) error {
	if err == nil || s.Hide(err.Error()) == err.Error() {
		return err
	}
	return &hiddenError{s.Hide(err.Error()), err}
}

type hiddenError struct {
	text string
	err  error
}

// Error returns the text without secrets.
func (e *hiddenError) Error() string { return e.text }

// Unwrap returns the original error, for tests of its type and not for display.
func (e *hiddenError) Unwrap() error { return e.err }
