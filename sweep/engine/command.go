package engine

import (
	"fmt"
	"os/exec"
	"path/filepath"
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
	c := &commandLine{settings: s, knobs: k, port: port}
	switch {
	case a.known():
		c.own(a)
	case a.kind == command.kind:
		c.fill(s.Argv)
	default:
		return Command{}, fmt.Errorf("engine: kind %s is not started by planner", s.Kind)
	}
	if c.err != nil {
		return Command{}, fmt.Errorf("engine: command line of %s: %w", s.Kind, c.err)
	}
	c.Args = append(c.Args, s.ExtraArgs...)
	for name, value := range s.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	slices.Sort(c.Env)
	return c.Command, nil
}

// Program is the path of the program that the command runs.
func (c *Command) Program() (string, error) {
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return "", fmt.Errorf("find the program %s: %w", c.Args[0], err)
	}
	return path, nil
}

type commandLine struct {
	Command
	settings *Settings
	knobs    measure.Knobs
	port     int
	err      error
}

// own makes the command line of an engine that is known.
func (c *commandLine) own(a *adapter) {
	if a.content != nil {
		c.File = filepath.Join(c.settings.Dir, a.kind+".yaml")
	}
	values := c.values()
	for _, n := range measure.KnobTable {
		if n.Placement && values[n.Name] == "1" {
			values[n.Name] = "" // one GPU is every engine's default
		}
		if n.Name != "gpu" && isOn(values[n.Name]) && !a.mentions(n.Name) {
			c.Without = append(c.Without, n.Name)
		}
	}
	if a.derived != nil {
		for name, x := range a.derived(c.knobs) {
			values[name] = strconv.Itoa(x)
		}
	}
	program := a.program
	if len(c.settings.Program) > 0 {
		program = c.settings.Program
	}
	c.Args = slices.Concat(program, expand(a.options, values))
	for _, line := range a.content {
		if words := expand([]string{line}, values); words != nil {
			c.Content += strings.Join(words, " ") + "\n"
		}
	}
	c.Env = expand(a.env, values)
	c.formats(a, values)
}

// values are what the names in templates stand for; "" is what is left to the engine.
func (c *commandLine) values() map[string]string {
	s := c.settings
	values := map[string]string{
		"port": strconv.Itoa(c.port), "host": loopback, "model": s.Model, "served_name": s.ServedName, "file": c.File, "dtype": s.Format.dtype(),
	}
	if s.Format.quantised("fp8") {
		values["quantization"] = "fp8"
	}
	if s.Format.oneByteKV() {
		values["byte_kv"] = "true"
	}
	for _, n := range measure.KnobTable {
		values[n.Name] = n.Text(c.knobs)
	}
	return values
}

// condition is what a template begins with that holds only if something is on, or is not.
var condition = regexp.MustCompile(`^(!?)(\w+)\? `)

func isOn(value string) bool { return value != "" && value != "false" }

// expand fills in templates and returns their words: "--max-num-seqs {max_num_seqs}". One
// that names what has no value is left out, and so is one whose conditions, as in
// "prefix_caching? --enable" or "!prefix_caching? --disable", do not hold.
func expand(templates []string, values map[string]string) (words []string) {
	for _, t := range templates {
		holds := true
		for m := condition.FindStringSubmatch(t); m != nil; m = condition.FindStringSubmatch(t) {
			holds = holds && isOn(values[m[2]]) != (m[1] == "!")
			t = t[len(m[0]):]
		}
		var filled []string
		for word := range strings.SplitSeq(t, " ") {
			filled = append(filled, placeholder.ReplaceAllStringFunc(word, func(name string) string {
				value := values[strings.Trim(name, "{}")]
				holds = holds && value != ""
				return value
			}))
		}
		if holds {
			words = append(words, filled...)
		}
	}
	return words
}

// mentions reports whether a template of the engine names something.
func (a *adapter) mentions(name string) bool {
	return slices.ContainsFunc(slices.Concat(a.env, a.options, a.formats, a.content), func(t string) bool {
		return strings.Contains(t, "{"+name+"}") || strings.Contains(t, name+"? ")
	})
}

// loopback is where launched engines listen: nobody but planner is to load
// them.
const loopback = "127.0.0.1"

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote is a word as a POSIX shell reads it.
func Quote(s string) string {
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
		words = append(words, name+"="+Quote(value))
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
			arg = Quote(arg)
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
