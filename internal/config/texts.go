package config

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"planner/internal/list"
	"planner/internal/printable"
	"planner/internal/secret"
	"planner/internal/spelling"
	"planner/sweep/measure"
)

// text is a string that a check accepts, changes, or refuses.
func text[T ~string](check func(n input, s T) T) codec[T] {
	read := func(n input) T {
		s, ok := n.typed()
		if !ok {
			n.wrong("a string in quotes")
			return ""
		}
		return check(n, T(s))
	}
	return codec[T]{read: read, print: func(s T) string { return quote(string(s)) }}
}

// words is a string, one of a set unless the set is empty.
func words[T ~string](allowed ...T) codec[T] {
	choice := list.FilterMap(allowed, func(word T) (string, bool) { return string(word), word != "" })
	k := text(func(n input, s T) T {
		if len(allowed) == 0 || slices.Contains(allowed, s) {
			return s
		}
		want := "one of " + strings.Join(choice, ", ")
		if near := spelling.Nearest(string(s), choice); s != "" && spelling.Slip(string(s), near) {
			want += " (nearest: " + near + ")"
		}
		n.wrong(want)
		return ""
	})
	k.choices = choice
	return k
}

func anyWord() codec[string] { return words[string]() }

func filled() codec[string] {
	return text(func(n input, s string) string {
		if s == "" {
			n.wrong("a name")
		}
		return s
	})
}

// named is a value with a name, one of a set; the empty name, if allowed, means the zero value.
func named[T any](parse func(string) (T, error), name func(T) string, allowed ...string) codec[T] {
	word := words(allowed...)
	read := func(n input) (x T) {
		if s := word.read(n); s != "" {
			x, _ = parse(s) // which knows all that is allowed
		}
		return x
	}
	return codec[T]{read: read, print: func(x T) string { return quote(name(x)) }, choices: word.choices}
}

// quote prints a TOML string; TOML accepts the escapes of JSON.
func quote(s string) string {
	quoted, _ := jsontext.AppendQuote(nil, s)
	return string(printable.JSON(quoted))
}

// pathname is the name of a file: in a configuration file relative to that file, on the command line to the
// current folder. In a Config it is absolute, so that a printed configuration can be read from anywhere.
func pathname() codec[string] {
	return text(func(n input, name string) string {
		if name == "" {
			return ""
		}
		return n.absolute(name)
	})
}

func (n input) absolute(name string) string {
	if n.r.place(n.path).flag == "" && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(n.r.file), name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return name
}

func address() codec[string] {
	return text(func(n input, s string) string {
		u, err := url.Parse(s)
		switch {
		case strings.Contains(s, "@"): // not quoted, as it may contain a password
			n.refuse("holds a user or a password, want a URL without; api_key_env names the variable of a key")
		case s != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"):
			n.wrong("an http or https URL, such as http://127.0.0.1:8000")
		case strings.ContainsAny(s, "?#") || strings.HasSuffix(strings.TrimRight(s, "/"), "/completions"):
			n.refuse("holds a query, a fragment or the path of one kind of request, want what all requests begin with, such as http://127.0.0.1:8000")
		}
		return s
	})
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable is the name of an environment variable. A refused value is not quoted, as it may be the key.
func variable() codec[string] {
	return text(func(n input, s string) string {
		n.refuseIf(s != "" && (!variableName.MatchString(s) || secret.Value(s)),
			"is not the name of an environment variable, want letters, digits and _, such as MY_API_KEY; the key itself belongs into that variable, not here")
		return s
	})
}

// arguments is a list of strings, taken as is; it may be empty.
func arguments() codec[[]string] {
	read := func(n input) (out []string) {
		_, isList := elements(n.value)
		if !isList && !n.r.places[n.path].typed {
			n.wrong(`a list of strings, such as ["--port", "8000"]`)
			return nil
		}
		for _, item := range n.list() {
			out = append(out, anyWord().read(item))
		}
		return out
	}
	return codec[[]string]{read, func(items []string) string { return brackets(items, quote) }, true, nil}
}

// inVariable says where a secret of a command line belongs.
const inVariable = "an environment variable, for whose value {env:NAME} stands"

// openly is a list of arguments or shell lines without secrets, since it is copied into the run folder and job
// scripts.
func openly(elsewhere string) codec[[]string] {
	k := arguments()
	read := k.read
	k.read = func(n input) []string {
		args := read(n)
		n.refuseIf(slices.Contains(secret.Arguments(args), true), "holds a secret, want it in %s", elsewhere)
		return args
	}
	return k
}

// options are additional engine options in one string, except those set by a knob, and without secrets.
func options() codec[string] {
	return text(func(n input, s string) string {
		words := strings.Fields(s)
		if slices.Contains(secret.Arguments(words), true) || len(secret.References(words...)) > 0 {
			n.refuse("holds a secret, want it in engine.extra_args, where {env:NAME} stands for the value of an environment variable")
			return ""
		}
		for _, word := range words {
			name, _, _ := strings.Cut(strings.ReplaceAll(word, "_", "-"), "=")
			name = strings.Replace(name, "--no-", "--", 1)
			if k, ok := measure.KnobOf(name); ok {
				n.refuse("holds %s, which %s sets", word, keyOf(k))
				return ""
			}
		}
		return strings.Join(words, " ")
	})
}

// header is the value of a header, without secrets.
func header() codec[string] {
	return text(func(n input, s string) string {
		n.refuseIf(secret.Header(n.name, s), "is a secret, want it in an environment variable that api_key_env names, or for whose value {env:NAME} stands")
		return s
	})
}

// environment is the value of an environment variable, without secrets.
func environment() codec[string] {
	return text(func(n input, s string) string {
		switch {
		case !variableName.MatchString(n.name):
			n.refuse("is no name of an environment variable, want letters, digits and _")
		case secret.Variable(n.name, s):
			n.refuse("is a secret, want it set in the environment of planner instead of in a file")
		}
		return s
	})
}
