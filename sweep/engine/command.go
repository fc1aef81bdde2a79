package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"planner/sweep/measure"
)

// Command is what is run for one set of knobs.
type Command struct {
	// Args is the argument list, the program first.
	Args []string
	// Env is what is added to planner's own environment, as KEY=VALUE.
	Env []string
	// File is the path of a configuration file that is written first with Content;
	// "" when there is none.
	File, Content string
	// Without names the settings that this engine has no option for and that are
	// therefore not applied; in brackets what holds, or is to be done, instead.
	Without []string
}

// Command is the command line for a set of knobs, with the engine listening on
// port. Kind attach has none.
func (s *Settings) Command(k measure.Knobs, port int) (Command, error) {
	a, err := adapterOf(s.Kind)
	if err != nil {
		return Command{}, err
	}
	if a.arguments == nil {
		return Command{}, fmt.Errorf("engine: kind %s is not started by planner", s.Kind)
	}
	c := &commandLine{settings: s, knobs: k, port: port}
	c.Args, c.Env = slices.Clone(a.program), slices.Clone(a.env)
	if len(s.Program) > 0 {
		c.Args = slices.Clone(s.Program)
	}
	a.arguments(c)
	if a.stored != nil {
		a.stored(c)
	}
	if c.err != nil {
		return Command{}, fmt.Errorf("engine: command line of %s: %w", s.Kind, c.err)
	}
	c.add(s.ExtraArgs...)
	for name, value := range s.Env {
		c.setenv(name, value)
	}
	slices.Sort(c.Env)
	return c.Command, nil
}

// commandLine is a command in the making.
type commandLine struct {
	Command
	settings *Settings
	knobs    measure.Knobs
	port     int
	err      error
}

func (c *commandLine) add(args ...string) { c.Args = append(c.Args, args...) }

func (c *commandLine) setenv(name, value string) { c.Env = append(c.Env, name+"="+value) }

// option adds an option and its value, unless that is left to the engine: zero.
func (c *commandLine) option(name string, value any) {
	switch v := value.(type) {
	case int:
		c.when(v > 0, name, strconv.Itoa(v))
	case float64:
		c.when(v > 0, name, strconv.FormatFloat(v, 'f', -1, 64))
	case string:
		c.when(v != "", name, v)
	}
}

// degree adds a degree of parallelism; one GPU is every engine's default.
func (c *commandLine) degree(name string, n int) { c.when(n > 1, name, strconv.Itoa(n)) }

// when adds arguments under a condition.
func (c *commandLine) when(condition bool, args ...string) {
	if condition {
		c.add(args...)
	}
}

// lacks notes a knob that the engine has no option for.
func (c *commandLine) lacks(knob string, given bool) {
	if given {
		c.Without = append(c.Without, knob)
	}
}

// instead notes a setting that the engine has no option for, and what holds or is
// to be done instead.
func (c *commandLine) instead(setting, what string) { c.lacks(setting+" ("+what+")", true) }

// loopback is where launched engines listen: nobody but planner is to load
// them.
const loopback = "127.0.0.1"

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
