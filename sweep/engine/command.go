package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
	"planner/internal/secret"
	"planner/sweep/measure"
)

// Command is what is run for one set of knobs.
type Command struct {
	// Args is the argument list, the program first.
	Args []string
	// Env is added to planner's own environment, as KEY=VALUE; EnvKnobs are those of it that knobs decide.
	Env, EnvKnobs []string
	// File is the path of a configuration file that is written first, with Content as its text; ""
	// if there is none.
	File, Content string
	// Without names the settings that this engine has no option for and that are therefore not
	// applied; brackets hold what applies instead, or what to do about it.
	Without []string
}

// AnyPort stands in command lines for the free port that an engine is given when it starts.
const AnyPort = 8000

// Command returns the command line for a set of knobs, with the engine listening on port. It is an
// error for kind attach.
func (s *Settings) Command(k measure.Knobs, port int) (c Command, err error) {
	a, err := adapterOf(s.Kind)
	if err != nil {
		return Command{}, err
	}
	if a.content != nil {
		c.File = filepath.Join(s.Dir, a.kind+".yaml")
	}
	s = s.of(k)
	values := s.values(k, c.File, port)
	switch {
	case a.known():
		c.own(s, a, k, values)
	case a.kind == command.kind:
		if err := c.fill(s, values); err != nil {
			return Command{}, fmt.Errorf("engine: command line of %s: %w", s.Kind, err)
		}
	default:
		return Command{}, fmt.Errorf("engine: kind %s is not started by planner", s.Kind)
	}
	further := slices.Concat(s.ExtraArgs, strings.Fields(k.ExtraArgs))
	if a.kind == command.kind && len(further) > 0 && dropsArguments(c.Args) {
		return Command{}, fmt.Errorf(`engine: extra_args do not reach what %s -c runs: let its text end with "$@", and a word such as engine follow it`, c.Args[0])
	}
	c.Args = append(c.Args, further...)
	for name, value := range s.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	slices.Sort(c.Env)
	return c, nil
}

// dropsArguments reports whether a command is a shell script text that ignores its arguments.
func dropsArguments(args []string) bool {
	return len(args) > 2 && strings.HasSuffix(args[0], "sh") && args[1] == "-c" && !strings.Contains(args[2], "$@")
}

// of returns the settings with the number formats that knobs name.
func (s *Settings) of(k measure.Knobs) *Settings {
	own := *s
	own.Format.Weights = cmp.Or(k.Weights, s.Format.Weights)
	own.Format.KV = cmp.Or(k.KVCache, s.Format.KV)
	return &own
}

// Program returns the path of the program that the command runs.
func (c *Command) Program() (string, error) {
	if _, _, err := c.expand(); err != nil {
		return "", err
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return "", fmt.Errorf("find the program %s: %w", c.Args[0], err)
	}
	return path, nil
}

func (c *Command) own(s *Settings, a *adapter, k measure.Knobs, values map[string]string) {
	for _, n := range measure.KnobTable {
		if n.Placement && values[n.Name] == "1" {
			values[n.Name] = "" // one GPU is every engine's default
		}
		if !n.Worded() && isOn(values[n.Name]) && !a.mentions(n.Name) {
			c.Without = append(c.Without, n.Name)
		}
	}
	c.Without = append(c.Without, list.Filter(slices.Sorted(maps.Keys(s.Options)), func(name string) bool { return !a.mentions(name) })...)
	if a.derived != nil {
		for name, x := range a.derived(k) {
			values[name] = strconv.Itoa(x)
		}
	}
	program := a.program
	if len(s.Program) > 0 {
		program = s.Program
	}
	c.Args = slices.Concat(program, expand(a.options, values))
	for _, line := range a.content {
		if words := expand([]string{line}, values); words != nil {
			c.Content += strings.Join(words, " ") + "\n"
		}
	}
	c.Env, c.EnvKnobs = expand(a.env, values), expand(list.Filter(a.env, condition.MatchString), values)
	c.formats(s, a, values)
}

func (s *Settings) values(k measure.Knobs, file string, port int) map[string]string {
	values := map[string]string{
		"port": strconv.Itoa(port), "host": loopback, "model": s.Model, "served_name": s.ServedName, "file": file, "dtype": s.Format.dtype(),
	}
	if s.Format.quantised() {
		values["quantization"] = "fp8"
	}
	if s.Format.oneByteKV() {
		values["byte_kv"] = "true"
	}
	for _, n := range measure.KnobTable {
		values[n.Name] = n.Text(k)
	}
	maps.Copy(values, s.Options)
	maps.Copy(values, sglangExchange[s.Options["all2all_backend"]])
	return values
}

// condition matches the start of a template that applies only if a value is on, or is not.
var condition = regexp.MustCompile(`^(!?)(\w+)\? `)

func isOn(value string) bool { return value != "" && value != "false" }

// expand fills in templates, such as "--max-num-seqs {max_num_seqs}", and returns their words. A
// template is left out if a name in it has no value, or if a condition at its start, as in
// "prefix_caching? --enable" or "!prefix_caching? --disable", does not hold.
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

func (a *adapter) mentions(name string) bool {
	return slices.ContainsFunc(slices.Concat(a.env, a.options, a.formats, a.content), func(t string) bool {
		return strings.Contains(t, "{"+name+"}") || strings.Contains(t, name+"? ")
	})
}

// loopback is where launched engines listen: nobody but planner should send them load.
const loopback = "127.0.0.1"

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote returns a word as a POSIX shell reads it.
func Quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// String returns the command line for a POSIX shell, with the additions to the environment first.
// Secrets written into arguments or environment are left out; references to secrets in planner's
// environment remain references to variables.
func (c Command) String() string {
	var words []string
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		if secret.Variable(name, value) {
			words = append(words, name+"="+secret.Hidden)
			continue
		}
		words = append(words, name+"="+secret.Shell(value, Quote))
	}
	for i, hide := range secret.Arguments(c.Args) {
		name, _, joined := strings.Cut(c.Args[i], "=")
		switch {
		case !hide:
			words = append(words, secret.Shell(c.Args[i], Quote))
		case joined && plainWord.MatchString(name):
			words = append(words, name+"="+secret.Hidden)
		default:
			words = append(words, secret.Hidden)
		}
	}
	return strings.Join(words, " ")
}

// expand replaces references to variables by their values, which only the engine's process and,
// through a pipe, its guard get to see.
func (c Command) expand() (args, env []string, err error) {
	fill := func(texts []string) (out []string) {
		for _, text := range texts {
			filled, problem := secret.Expand(text, os.LookupEnv)
			out, err = append(out, filled), cmp.Or(err, problem)
		}
		return out
	}
	return fill(c.Args), append(os.Environ(), fill(c.Env)...), err
}

// secrets returns the secrets in planner's own environment, as far as they are known.
func (s *Settings) secrets() secret.Set {
	return secret.In(os.Environ(), s.secretNames()...)
}

// secretNames returns the variables whose values are secret whatever they are called.
func (s *Settings) secretNames() []string {
	texts := slices.Concat(s.Argv, s.ExtraArgs, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	return append(secret.References(texts...), s.APIKeyEnv)
}

// spread returns c, or, for an instance on several nodes, a command that runs c on each of them as
// one step of the Slurm job that this process runs in; the server is on this node, the job's first.
// The step ends when one of its processes fails. Each finds its number in SLURM_NODEID and the
// address of the first node in MASTER_ADDR.
func (s *Settings) spread(c Command, k measure.Knobs) (Command, error) {
	if s.Spread == nil {
		return c, nil
	}
	nodes, _ := s.Spread(k.GPU, k.GPUs())
	if nodes == 1 {
		return c, nil
	}
	if err := Spreads(s.Kind, k); err != nil {
		return c, err
	}
	a, _ := adapterOf(s.Kind) // Spreads has checked the kind
	// Without --export, srun applies the job's own export list, which leaves most variables out.
	step := []string{"srun", "--export=ALL", "--kill-on-bad-exit=1", "--nodes=" + strconv.Itoa(nodes), "--ntasks-per-node=1",
		"bash", "-c", `export MASTER_ADDR=${MASTER_ADDR:-$SLURM_LAUNCH_NODE_IPADDR}; exec "$@" ` + a.node, "engine"}
	c.Args = slices.Concat(step, c.Args)
	return c, nil
}

// Replicates reports whether a kind of engine has an option for data_parallel.
func Replicates(kind string) bool {
	a, err := adapterOf(kind)
	return err == nil && a.mentions("data_parallel")
}

// Spreads returns an error if an engine of a kind cannot be started on several nodes.
func Spreads(kind string, k measure.Knobs) error {
	switch a, err := adapterOf(kind); {
	case err != nil:
		return err
	case a.known() && a.node == "":
		return fmt.Errorf("engine.kind: %s is not known to run on several nodes, want vllm, sglang or command", kind)
	case kind == sglang.kind && k.DataParallel > 1:
		return fmt.Errorf("engine.data_parallel: SGLang refuses replicas on several nodes, want 1")
	}
	return nil
}

// command is any program that speaks the OpenAI dialect. Which engine's metrics it has is found by
// looking at them.
var command = adapter{
	kind:     "command",
	releases: "any program that speaks the OpenAI dialect",
	describe: describeAny,
	reset:    resetAny,
}

// attach is a server that somebody else started. Its prefix cache is left alone: others may rely on
// it.
var attach = adapter{
	kind:     "attach",
	releases: "any server that speaks the OpenAI dialect",
	describe: describeAny,
}

var placeholder = regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`)

// fill fills in the placeholders of Argv. One without a value is an error: there is no telling what
// the engine would take "0" or an empty word for.
func (c *Command) fill(s *Settings, values map[string]string) (err error) {
	values["weights"], values["kv_cache"] = s.Format.Weights, cmp.Or(s.Format.KV, "auto")
	for name, usual := range map[string]string{"expert_parallel": "false", "pipeline_parallel": "1", "data_parallel": "1", "tensor_parallel": "1"} {
		values[name] = cmp.Or(values[name], usual)
	}
	for _, word := range s.Argv {
		c.Args = append(c.Args, placeholder.ReplaceAllStringFunc(word, func(name string) string {
			value, ok := values[strings.Trim(name, "{}")]
			switch {
			case !ok:
				err = fmt.Errorf("%s in %q is not known", name, word)
			case value == "":
				err = fmt.Errorf("%s in %q has no value: the configuration leaves it open", name, word)
			}
			return value
		}))
	}
	if len(c.Args) == 0 {
		return errors.New("it is empty")
	}
	return err
}

func describeAny(q *query) {
	kinds := []*adapter{&vllm, &sglang, &tgi, &llamaServer}
	q.ask(slices.Concat(list.Map(kinds, func(a *adapter) []factPlace { return a.told })...))
	for _, a := range kinds {
		q.describe(a)
	}
}

func resetAny(q *query) error {
	err := vllm.reset(q)
	if err != nil && sglang.reset(q) == nil {
		return nil
	}
	return err
}
