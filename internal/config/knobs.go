package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/sweep/measure"
)

// knobIn binds a key to the values of a knob: a list if it is searched or part of the placement, otherwise a
// single value. 0 leaves it to the engine.
func knobIn(space map[string][]any, name string) binding {
	n, _ := measure.KnobNamed(name)
	listed := n.Precedence > 0 || n.Placement
	least := 0.0
	if listed {
		least = 1
	}
	var k codec[any]
	switch n.Zero.(type) {
	case int:
		k = anyOf(wholeIn(atLeast(least)))
	case float64:
		k = anyOf(numberIn(above(0).atMost(1)))
	case string:
		k = anyOf(options())
	default:
		k = anyOf(truth())
	}
	list := choice(k)
	take := func(given input) {
		var values []any
		if listed {
			values = list.read(given)
		} else {
			values = []any{k.read(given.only())}
		}
		if values = slices.DeleteFunc(values, func(v any) bool { return v == 0 }); len(values) > 0 {
			space[name] = values
		} else {
			delete(space, name)
		}
	}
	return binding{take, func() string {
		if len(space[name]) == 0 && !listed {
			return "0"
		}
		return list.print(space[name])
	}, list.choices}
}

// anyOf wraps a codec so that its values are of type any.
func anyOf[T any](k codec[T]) codec[any] {
	return codec[any]{
		read:  func(n input) any { return k.read(n) },
		print: func(v any) string { return k.print(v.(T)) }, choices: k.choices,
	}
}

// keyOf returns the full key of a knob.
func keyOf(n measure.Knob) string {
	switch {
	case n.Name == "gpu":
		return "hardware.gpu"
	case n.Format:
		return "model." + n.Name
	case n.Placement:
		return "engine." + n.Name
	}
	return "knobs." + n.Name
}

// Open reports whether a searched knob has no values given: then its usual list is tried, and the search may go
// beyond.
func (c *Config) Open(n measure.Knob) bool {
	return c.draft.need.Search && !c.attached() && n.Precedence > 0 && len(c.draft.space[n.Name]) == 0
}

// Given reports whether the configuration gives values of a knob.
func (c *Config) Given(knob string) bool { return len(c.draft.space[knob]) > 0 }

// fillSpace sets knobs that are not given: to their lists if they are searched, or to the engine's defaults if
// there is one simulated GPU. An attached engine keeps what it has.
func (c *Config) fillSpace() {
	given := c.draft.space
	c.Space = given
	switch {
	case c.attached():
		for _, n := range measure.Searched() {
			if len(given[n.Name]) > 1 {
				delete(given, n.Name)
			}
		}
	case c.draft.need.Search:
		c.Space = maps.Clone(given)
		for _, n := range measure.Searched() {
			if c.Open(n) {
				c.Space[n.Name] = n.Usual
			}
		}
	case c.Simulated() && len(c.GPUs) == 1 && len(given["max_num_batched_tokens"]) <= 1:
		k := measure.Knobs{GPU: c.GPUs[0].Hardware.Name}
		if tokens := given["max_num_batched_tokens"]; len(tokens) == 1 {
			k.MaxNumBatchedTokens = tokens[0].(int)
		}
		k = c.settle(k)
		for _, n := range measure.Searched() {
			if len(given[n.Name]) == 0 && n.Number(k) > 0 {
				given[n.Name] = []any{n.Get(k)}
			}
		}
	}
	if len(c.Space["prefix_caching"]) == 0 { // off by default only in LMDeploy
		c.Space["prefix_caching"] = []any{c.Engine.Kind != "lmdeploy" || c.Simulated()}
	}
}

// attached reports whether the engine is already running, with fixed knobs.
func (c *Config) attached() bool { return c.Engine.Kind == "attach" && !c.Simulated() }

// checkSingle refuses lists if the command runs only one configuration.
func (r *reader) checkSingle(c *Config) {
	if c.draft.need.Lists || !c.draft.need.Engine {
		return
	}
	for _, n := range measure.KnobTable {
		count := len(c.draft.space[n.Name])
		if n.Name == "gpu" {
			count = len(c.draft.gpus)
		}
		r.at(keyOf(n)).refuseIf(count > 1, "is a list of %d, want one value: this command runs one configuration (plan and estimate search lists)", count)
	}
}

// checkLength determines max_model_len, at which requests are cut, from the workload's longest request and the
// model's own limit. Later turns of a conversation, which contain all earlier ones, may be cut there; a first
// one may not.
func (r *reader) checkLength(c *Config) {
	n := r.at("knobs.max_model_len")
	once := c.Workload
	once.Turns = 1
	longest, prompt, own, asked := once.Longest(), longestPrompt(c), 0, 0
	if c.draft.need.OwnLengths {
		longest, prompt = 0, 0
	}
	if given := c.Space["max_model_len"]; len(given) > 0 {
		asked = given[0].(int)
	}
	if c.Model.Known {
		own = c.Model.Arch.MaxPosition
	}
	switch {
	case own > 0 && asked > own:
		n.refuse("is %d, want at most %d, the own limit of %s", asked, own, c.Model.Name)
	case asked > 0 && longest > asked && c.Workload.Turns > 1:
		n.refuse("is %d, want %d, to which conversations of %d turns grow, or at least %d, their longest first request", asked, c.Workload.Longest(), c.Workload.Turns, longest)
	case asked > 0 && longest > asked:
		n.refuse("is %d, want at least %d, the workload's longest request (prefix + prompt + output)", asked, longest)
	case asked > 0 && prompt >= asked:
		n.refuse("is %d, want above %d, the workload's longest prompt with its prefix", asked, prompt)
	case own > 0 && max(longest, prompt+1) > own:
		remedy := "give workload.prompt and workload.output a max"
		if c.Workload.Replayed() {
			remedy = fmt.Sprintf("leave longer requests out: planner trace FILE --longest %d -o SHORTER.csv", own)
		}
		r.missing("knobs.max_model_len", "workload").refuse(
			"would have to be %d for the workload's longest request (prefix + prompt + output), want at most %d, the own limit of %s; %s",
			max(longest, prompt+1), own, c.Model.Name, remedy)
	}
	whole := c.Workload.Longest()
	limit := asked
	switch {
	case asked > 0:
	case own > 0 && whole > 0:
		limit = min(whole, own)
	default:
		limit = max(whole, own)
	}
	r.warnIf(asked == 0 && whole == 0 && limit > 0,
		"workload: its lengths have no end, so that max_model_len is %d, the own limit of %s; give prompt and output a max, or knobs.max_model_len", limit, c.Model.Name)
	r.warnIf(limit > 0 && limit < whole, "workload: conversations can grow to %d tokens and are cut at max_model_len %d", whole, limit)
	c.Workload.MaxLen = limit
	if limit > 0 && asked == 0 {
		c.Space = maps.Clone(c.Space) // which is not printed
		c.Space["max_model_len"] = []any{limit}
	}
}

// longestPrompt returns the longest prompt with its prefix, over the classes whose prompts have a maximum.
func longestPrompt(c *Config) int {
	n := 0
	for _, s := range c.Workload.Shapes {
		if p := s.Prompt.Longest(); p > 0 {
			n = max(n, p+s.Prefix.Tokens)
		}
	}
	return n
}

// DropUnreached reduces lists that do not change the server, as told by its identity for a set of knobs, to one
// value: the first of a list that was given; a knob that was not given is left to the engine. It returns a line
// for each reduced list, with the reason.
func (c *Config) DropUnreached(server func(measure.Knobs) string) (told []string) {
	runnable, _ := c.Candidates()
	for _, n := range measure.KnobTable {
		values := c.Space[n.Name]
		if n.Name == "gpu" || len(values) < 2 || reaches(n, runnable, server) {
			continue
		}
		c.Space = maps.Clone(c.Space) // the given values are still printed
		why := fmt.Sprintf("%s: its values %s do not reach the server, whose command line is the same for all of them: ", keyOf(n), strings.Join(list.Map(values, func(v any) string { return fmt.Sprint(v) }), ", "))
		if c.Open(n) {
			delete(c.Space, n.Name)
			told = append(told, why+"it is left to the engine")
		} else {
			c.Space[n.Name] = values[:1]
			told = append(told, why+fmt.Sprintf("only the first, %v, is tried", values[0]))
		}
		runnable, _ = c.Candidates()
	}
	return told
}

// reaches reports whether two sets of knobs that differ only in this one have different servers.
func reaches(n measure.Knob, sets []measure.Knobs, server func(measure.Knobs) string) bool {
	seen := map[measure.Knobs]string{}
	for _, k := range sets {
		rest := k
		n.Set(&rest, nil)
		line := server(k)
		if other, ok := seen[rest]; ok && other != line {
			return true
		}
		seen[rest] = line
	}
	return false
}
