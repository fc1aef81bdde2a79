package engine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"planner/sweep/measure"
)

// command is any program that speaks the OpenAI dialect. Which engine's metrics
// it has is found out by looking.
var command = adapter{
	kind:      "command",
	arguments: fill,
	describe:  describeAny,
	reset:     resetAny,
}

// attach is a server that somebody else started. Its prefix cache is left alone:
// others may live on it.
var attach = adapter{
	kind:     "attach",
	describe: describeAny,
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// fill puts values in the place of placeholders. One that has no value is an
// error: what the engine would take "0" or nothing for is anybody's guess.
func fill(c *commandLine) {
	values := map[string]string{
		"{port}": strconv.Itoa(c.port), "{host}": loopback,
		"{model}": c.settings.Model, "{served_name}": c.settings.ServedName,
		"{weights}": c.settings.Format.Weights, "{kv_cache}": cmp.Or(c.settings.Format.KV, "auto"),
		"{expert_parallel}": "false", "{pipeline_parallel}": "1", "{data_parallel}": "1", "{tensor_parallel}": "1",
	}
	for _, n := range measure.KnobTable {
		name := "{" + n.Name + "}"
		values[name] = cmp.Or(n.Text(c.knobs), values[name])
	}
	c.Args = nil
	for _, word := range c.settings.Argv {
		c.add(placeholder.ReplaceAllStringFunc(word, func(name string) string {
			value, ok := values[name]
			switch {
			case !ok:
				c.err = fmt.Errorf("%s in %q is not known", name, word)
			case value == "":
				c.err = fmt.Errorf("%s in %q has no value: the configuration leaves it open", name, word)
			}
			return value
		}))
	}
	if len(c.Args) == 0 {
		c.err = errors.New("it is empty")
	}
}

// describeAny asks for all that any engine tells.
func describeAny(q *query) {
	q.models()
	q.version()
	describeVLLM(q)
	for _, a := range []*adapter{&sglang, &tgi, &llamaServer} {
		a.describe(q)
	}
}

// resetAny tries the ways of all engines.
func resetAny(q *query) error {
	err := vllm.reset(q)
	if err != nil && sglang.reset(q) == nil {
		return nil
	}
	return err
}
