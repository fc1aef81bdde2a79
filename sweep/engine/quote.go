package engine

import (
	"regexp"
	"strings"
)

// plainWord needs no quotes in a POSIX shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote writes a word for a POSIX shell.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// String is the command line for a POSIX shell, what it adds to the environment
// first. Secrets that were put into arguments or environment are left out.
func (c Command) String() string {
	var words []string
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		if secretName.MatchString(name) || secretValue.MatchString(value) {
			words = append(words, name+"=***")
			continue
		}
		words = append(words, name+"="+quote(value))
	}
	hide := false
	for _, arg := range c.Args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case hide || secretValue.MatchString(arg):
			arg = "***"
		case joined && (secretOption.MatchString(name) || secretValue.MatchString(value)):
			arg = name + "=***"
		default:
			arg = quote(arg)
		}
		hide = !joined && !hide && secretOption.MatchString(name)
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// Names and values that are secrets: of environment variables, of options, and
// keys of the usual providers.
var (
	secretName   = regexp.MustCompile(`(?i)(^|_)(token|secret|password|passwd|api_?key|access_?key|credentials?)$`)
	secretOption = regexp.MustCompile(`(?i)^--?([a-z-_]*[-_])?(api[-_]?key|hf[-_]token|auth[-_]?token|password|secret)$`)
	secretValue  = regexp.MustCompile(`^((sk|pk|rk|hf|gsk|xai|nvapi|ghp|glpat)[-_][A-Za-z0-9]|eyJ[A-Za-z0-9]|AKIA[A-Z0-9]|AIza|Bearer )`)
)
