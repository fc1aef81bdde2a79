package engine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// command is any program that speaks the OpenAI dialect. Which engine's metrics
// it has is found out by looking.
var command = adapter{
	kind:     "command",
	releases: "any program that speaks the OpenAI dialect",
	describe: describeAny,
	reset:    resetAny,
}

// attach is a server that somebody else started. Its prefix cache is left alone:
// others may live on it.
var attach = adapter{
	kind:     "attach",
	releases: "any server that speaks the OpenAI dialect",
	describe: describeAny,
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// fill puts values in the place of placeholders. One that has no value is an
// error: what the engine would take "0" or nothing for is anybody's guess.
func (c *commandLine) fill(argv []string) {
	values := c.values()
	values["weights"], values["kv_cache"] = c.settings.Format.Weights, cmp.Or(c.settings.Format.KV, "auto")
	for name, usual := range map[string]string{"expert_parallel": "false", "pipeline_parallel": "1", "data_parallel": "1", "tensor_parallel": "1"} {
		values[name] = cmp.Or(values[name], usual)
	}
	for _, word := range argv {
		c.Args = append(c.Args, placeholder.ReplaceAllStringFunc(word, func(name string) string {
			value, ok := values[strings.Trim(name, "{}")]
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
	for _, a := range []*adapter{&vllm, &sglang, &tgi, &llamaServer} {
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
