package engine

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"planner/sweep/measure"
)

// command is any program that speaks the OpenAI dialect. Which engine's metrics
// it has is found out by looking.
var command = adapter{
	kind:      "command",
	arguments: func(d *draft) { d.args, d.err = fill(d) },
	scrape:    scrape{path: "/metrics", any: true},
	describe:  describeAny,
	reset:     resetAny,
}

// attach is a server that somebody else started. Its prefix cache is left alone:
// others may live on it.
var attach = adapter{
	kind:     "attach",
	scrape:   scrape{path: "/metrics", any: true},
	describe: describeAny,
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// fill puts values in the place of placeholders. One that has no value is an
// error: what the engine would take "0" or nothing for is anybody's guess.
func fill(d *draft) ([]string, error) {
	values := map[string]string{
		"{port}": strconv.Itoa(d.port), "{host}": loopback,
		"{model}": d.settings.Model, "{served_name}": d.settings.ServedName,
		"{weights}": d.settings.Format.Weights, "{kv_cache}": cmp.Or(d.settings.Format.KV, "auto"),
		"{expert_parallel}": "false", "{pipeline_parallel}": "1", "{data_parallel}": "1", "{tensor_parallel}": "1",
	}
	for _, f := range flags(d.knobs) {
		values["{"+f.Name+"}"] = f.Value
	}
	known := map[string]bool{}
	for _, n := range measure.KnobTable {
		known["{"+n.Name+"}"] = true
	}
	var args []string
	var failed error
	for _, word := range d.settings.Argv {
		args = append(args, placeholder.ReplaceAllStringFunc(word, func(name string) string {
			value, ok := values[name]
			switch {
			case ok && value != "":
			case ok || known[name]:
				failed = fmt.Errorf("%s in %q has no value: the configuration leaves it open", name, word)
			default:
				failed = fmt.Errorf("%s in %q is not known", name, word)
			}
			return value
		}))
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	return args, failed
}

// describeAny asks for all that any engine tells.
func describeAny(q *question) {
	q.models()
	q.version("/version", "version")
	describeVLLM(q)
	for _, a := range []*adapter{&sglang, &tgi, &llamaServer} {
		a.describe(q)
	}
}

// resetAny tries the ways of all engines.
func resetAny(q *question) error {
	err := vllm.reset(q)
	if err != nil && sglang.reset(q) == nil {
		return nil
	}
	return err
}
