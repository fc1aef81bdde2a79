package secret

import (
	"fmt"
	"regexp"
)

// reference matches {env:NAME}, which stands for the value of a variable.
var reference = regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// References names the variables that texts refer to as {env:NAME}.
func References(texts ...string) (names []string) {
	for _, text := range texts {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// Expand replaces {env:NAME} by the values of variables. Lookup is usually [os.LookupEnv].
func Expand(text string, lookup func(string) (string, bool)) (out string, err error) {
	out = reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := References(ref)[0]
		value, ok := lookup(name)
		if !ok || value == "" {
			err = fmt.Errorf("environment variable %s: nothing in it", name)
		}
		return value
	})
	return out, err
}

// Shell returns a word with references as a POSIX shell reads it; quote quotes the text between them.
func Shell(word string, quote func(string) string) string {
	out, from := "", 0
	for _, at := range reference.FindAllStringSubmatchIndex(word, -1) {
		if at[0] > from {
			out += quote(word[from:at[0]])
		}
		out += `"$` + word[at[2]:at[3]] + `"`
		from = at[1]
	}
	if from < len(word) || out == "" {
		out += quote(word[from:])
	}
	return out
}
