package engine

import (
	"fmt"
	"maps"
	"math"
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
	// AnswersAs is the model that its first answer is of, where that has another name.
	AnswersAs string `json:"answers_as,omitempty"`
	// Dialect is the kind of engine whose requests it understands, found out for
	// commands and attached servers; "" when nobody knows.
	Dialect string `json:"dialect"`
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks    int `json:"kv_blocks"`
	BlockTokens int `json:"block_tokens"`
	MaxModelLen int `json:"max_model_len"`
	// Flags are the settings in effect that correspond to knobs, Other whatever
	// else it told, both by name.
	Flags []Flag `json:"flags"`
	Other []Flag `json:"said"`
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

// factsOf sorts what was said. The log's facts are the ones of before, what the
// running engine answers counts more.
func factsOf(a *adapter, answered, logged map[string]string, asked measure.Knobs, format Format) Facts {
	all := map[string]string{}
	maps.Copy(all, logged)
	maps.Copy(all, answered)
	number := func(name string) int {
		x, err := strconv.ParseFloat(strings.ReplaceAll(all[name], ",", ""), 64)
		if err != nil || x < 0 || x > math.MaxInt32 {
			return 0
		}
		return int(x)
	}
	f := Facts{Version: all["version"], Model: all["model"], Dialect: a.kind, KVBlocks: number("kv_blocks"),
		BlockTokens: number("block_tokens"), MaxModelLen: number("max_model_len"), Formats: format.otherFormats(all)}
	if !a.known() {
		f.Dialect = owners[strings.ToLower(all["owner"])]
	}
	if tokens := number("kv_tokens"); f.KVBlocks == 0 && tokens > 0 {
		f.BlockTokens = max(f.BlockTokens, 1)
		f.KVBlocks = tokens / f.BlockTokens
	}
	for _, n := range measure.KnobTable {
		if is, want := all[n.Name], n.Text(asked); is != "" && want != "" && changed(n.Name, is, want) {
			f.Changed = append(f.Changed, fmt.Sprintf("%s is %s, asked for %s", n.Name, is, want))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(measure.KnobTable, func(n measure.Knob) bool { return n.Name == name }) {
			f.Flags = append(f.Flags, Flag{name, all[name]})
		} else if name != "models" {
			f.Other = append(f.Other, Flag{name, all[name]})
		}
	}
	return f
}

// owners are the kinds of engines by what they give as the owner of a model.
var owners = map[string]string{
	"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-server", "lmdeploy": "lmdeploy", "tensorrt_llm": "trtllm",
}

// changed compares the value of a knob that is in effect with what was asked for:
// numbers as such, to a thousandth, and words without regard to case. Longer
// requests than asked for are no change: some engines round the length up.
func changed(name, is, want string) bool {
	x, err1 := strconv.ParseFloat(is, 64)
	y, err2 := strconv.ParseFloat(want, 64)
	if err1 != nil || err2 != nil {
		return !strings.EqualFold(is, want)
	}
	return math.Abs(x-y) > 1e-3*max(math.Abs(x), math.Abs(y)) && !(name == "max_model_len" && x > y)
}
