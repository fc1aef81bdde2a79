package engine

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"planner/sweep/measure"
)

// Facts are what an engine says of itself once it is ready. What it does not
// say is 0 or "".
type Facts struct {
	Version string `json:"version"`
	// Model is the name to send in requests.
	Model string `json:"model"`
	// Dialect is the kind of engine whose requests it understands, found out for
	// commands and attached servers; "" when nobody knows.
	Dialect string `json:"dialect"`
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks    int `json:"kv_blocks"`
	BlockTokens int `json:"block_tokens"`
	MaxModelLen int `json:"max_model_len"`
	// Flags are the settings in effect that correspond to knobs, Said whatever
	// else it told, both by name.
	Flags []Flag `json:"flags"`
	Said  []Flag `json:"said"`
	// Changed says in words which knobs the engine runs with other values than
	// it was given.
	Changed []string `json:"changed"`
	// Formats says in words where weights or KV cache are in other formats than
	// they are to be.
	Formats []string `json:"formats,omitempty"`
}

// Flag is a setting and its value.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// note is a log line that holds a fact in its first group.
type note struct {
	fact    string
	pattern *regexp.Regexp
}

func noteOf(fact, pattern string) note { return note{fact, regexp.MustCompile(pattern)} }

// mark is a log line that ends a stage of the start.
type mark struct{ text, ends string }

// factsOf sorts what was said. The log's facts are the ones of before, what the
// running engine answers counts more.
func factsOf(kind string, answered, logged map[string]string, asked measure.Knobs, format Format) Facts {
	all := map[string]string{}
	for _, from := range []map[string]string{logged, answered} {
		for name, value := range from {
			all[name] = value
		}
	}
	number := func(name string) int {
		x, err := strconv.ParseFloat(strings.ReplaceAll(all[name], ",", ""), 64)
		if err != nil || x < 0 || x > math.MaxInt32 {
			return 0
		}
		return int(x)
	}
	f := Facts{Version: all["version"], Model: all["model"], Dialect: dialect(kind, all["owner"]), KVBlocks: number("kv_blocks"),
		BlockTokens: number("block_tokens"), MaxModelLen: number("max_model_len")}
	if tokens := number("kv_tokens"); f.KVBlocks == 0 && tokens > 0 {
		f.BlockTokens = max(f.BlockTokens, 1)
		f.KVBlocks = tokens / f.BlockTokens
	}
	for name, value := range all {
		if slices.ContainsFunc(measure.KnobTable, func(n measure.Knob) bool { return n.Name == name }) {
			f.Flags = append(f.Flags, Flag{name, value})
		} else if name != "models" {
			f.Said = append(f.Said, Flag{name, value})
		}
	}
	for _, list := range [][]Flag{f.Flags, f.Said} {
		slices.SortFunc(list, func(a, b Flag) int { return cmp.Compare(a.Name, b.Name) })
	}
	f.Changed = changed(flags(asked), f.Flags)
	f.Formats = format.otherFormats(all)
	return f
}

// owners are the kinds of engines by what they give as the owner of a model.
var owners = map[string]string{
	"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-server", "lmdeploy": "lmdeploy", "tensorrt_llm": "trtllm",
}

// dialect is the kind of engine whose requests one of this kind understands.
func dialect(kind, owner string) string {
	if kind == "command" || kind == "attach" {
		return owners[strings.ToLower(owner)]
	}
	return kind
}

// changed compares what was asked for with what is in effect, of settings that
// are known of both.
func changed(asked, effective []Flag) []string {
	var out []string
	for _, a := range asked {
		i := slices.IndexFunc(effective, func(e Flag) bool { return e.Name == a.Name })
		if i >= 0 && !sameValue(a.Value, effective[i].Value) && !longer(a, effective[i]) {
			out = append(out, fmt.Sprintf("%s is %s, asked for %s", a.Name, effective[i].Value, a.Value))
		}
	}
	return out
}

// longer reports whether the engine takes longer requests than it was asked to:
// some round the length up.
func longer(asked, effective Flag) bool {
	x, err1 := strconv.Atoi(asked.Value)
	y, err2 := strconv.Atoi(effective.Value)
	return asked.Name == "max_model_len" && err1 == nil && err2 == nil && y > x
}

// sameValue compares numbers as such, to a thousandth, and words without regard
// to case.
func sameValue(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 == nil && err2 == nil {
		return math.Abs(x-y) <= 1e-3*max(math.Abs(x), math.Abs(y))
	}
	return strings.EqualFold(a, b)
}
