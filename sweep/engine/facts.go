package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"planner/sweep/measure"
)

// ServerFacts are what an engine reports about itself once it is ready. What it does not report is
// 0 or "".
type ServerFacts struct {
	Version string `json:"version"`
	// Model is the name to send in requests.
	Model string `json:"model"`
	// AnswersAs is the model that its first answer names, if that differs from Model.
	AnswersAs string `json:"answers_as,omitempty"`
	// Listed is how many models it lists, if Model is the first of several.
	Listed int `json:"listed,omitempty"`
	// Dialect is the kind of engine whose requests it understands, inferred for commands and
	// attached servers; "" if unknown.
	Dialect string `json:"dialect"`
	// KVBlocks is the size of the KV cache in blocks of BlockTokens tokens.
	KVBlocks    int `json:"kv_blocks"`
	BlockTokens int `json:"block_tokens"`
	MaxModelLen int `json:"max_model_len"`
	// Flags are the settings in effect that correspond to knobs, Other whatever else it reported,
	// both sorted by name.
	Flags []Flag `json:"flags"`
	Other []Flag `json:"said"`
	// Changed says in words which knobs have other values in the engine than it was given.
	Changed []string `json:"changed"`
	// Formats says in words where weights or KV cache have another format than was asked for.
	Formats []string `json:"formats,omitempty"`
}

// Name returns the name of the engine, with its release if known; kind is what it was configured as.
func (f *ServerFacts) Name(kind string) string {
	name := cmp.Or(f.Dialect, kind)
	if name == "attach" {
		name = "a server of unknown kind"
	}
	return strings.TrimSpace(name + " " + f.Version)
}

// Flag is a setting and its value.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// factsOf assembles the facts of an engine. What it answered while running takes precedence over
// what it logged.
func factsOf(a *adapter, answered, logged map[string]string, asked measure.Knobs, format Format) ServerFacts {
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
	f := ServerFacts{Version: all["version"], Model: all["model"], Dialect: a.kind, KVBlocks: number("kv_blocks"),
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
		if _, ok := measure.KnobNamed(name); ok {
			f.Flags = append(f.Flags, Flag{name, all[name]})
		} else if name != "models" {
			f.Other = append(f.Other, Flag{name, all[name]})
		}
	}
	return f
}

// owners maps what engines give as the owner of a model to their kinds.
var owners = map[string]string{
	"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-server", "lmdeploy": "lmdeploy", "tensorrt_llm": "trtllm",
}

// changed compares the value of a knob in effect with what was asked for: numbers to a relative
// tolerance of a thousandth, words regardless of case. A larger maximum length than asked for is no
// change: some engines round it up.
func changed(name, is, want string) bool {
	x, err1 := strconv.ParseFloat(is, 64)
	y, err2 := strconv.ParseFloat(want, 64)
	if err1 != nil || err2 != nil {
		return !strings.EqualFold(is, want)
	}
	return math.Abs(x-y) > 1e-3*max(math.Abs(x), math.Abs(y)) && !(name == "max_model_len" && x > y)
}

// Format says in which number formats a model is to be served. Formats have the names that
// configurations use: bf16, fp16, fp8, int8, int4, nvfp4, mxfp4. The zero value leaves everything
// to checkpoint and engine.
type Format struct {
	// Weights is the format wanted for the weights, Stored the one in the checkpoint; either is ""
	// if not known.
	Weights, Stored string
	// KV is "fp8" for a KV cache of one byte per value. Anything else leaves it to the engine,
	// which then takes two bytes, or what the checkpoint was calibrated for: "fp8" in StoredKV.
	KV, StoredKV string
}

func (f Format) oneByteKV() bool { return f.KV == "fp8" }

// twoBytes reports whether a format has two bytes per value; engines convert these to each other as
// they load. An unknown format counts: checkpoints are published in bf16 unless their name or
// config.json says otherwise.
func twoBytes(format string) bool { return format == "bf16" || format == "fp16" || format == "" }

// dtype returns the data type that must be asked for by name, because the checkpoint holds the
// other two-byte format; "" for none.
func (f Format) dtype() string {
	switch {
	case f.Weights == "fp16" && f.Stored != "fp16" && twoBytes(f.Stored):
		return "float16"
	case f.Weights == "bf16" && f.Stored == "fp16":
		return "bfloat16"
	}
	return ""
}

// quantised reports whether the engine itself must quantise the weights to fp8.
func (f Format) quantised() bool { return f.Weights == "fp8" && twoBytes(f.Stored) }

// formats adds the arguments about number formats, and notes what they cannot express. The weights
// stay as the checkpoint holds them if the engine cannot be told to quantise them as it loads or,
// among two-byte formats, to convert them.
func (c *Command) formats(s *Settings, a *adapter, values map[string]string) {
	f := s.Format
	c.Args = append(c.Args, expand(a.formats, values)...)
	instead := func(setting, what string) { c.Without = append(c.Without, setting+" ("+what+")") }
	if f.oneByteKV() && a.kvCache != "" {
		instead("kv_cache fp8", a.kvCache)
	}
	switch {
	case f.Weights == "" || f.Weights == f.Stored:
		return
	case twoBytes(f.Weights) && twoBytes(f.Stored) && (f.dtype() == "" || a.mentions("dtype")):
		return
	case f.quantised() && a.mentions("quantization"):
		return
	}
	is := "is " + f.Stored
	if f.Stored == "" {
		is = "is not known to be"
	}
	instead("weights "+f.Weights, fmt.Sprintf("serve a checkpoint in %s: %s %s", f.Weights, s.Model, is))
}

// methods maps the names that engines have for methods of quantising weights to the formats that
// each may stand for. A method that is not listed may stand for any.
var methods = map[string][]string{
	"fp8": {"fp8"}, "fbgemm_fp8": {"fp8"}, "ptpc_fp8": {"fp8"}, "modelopt_fp8": {"fp8"}, "w8a8_fp8": {"fp8"},
	"awq": {"int4", "int8"}, "awq_marlin": {"int4", "int8"}, "gptq": {"int4", "int8"}, "gptq_marlin": {"int4", "int8"},
	"w8a8_int8": {"int8"}, "modelopt_fp4": {"nvfp4"}, "mxfp4": {"mxfp4"},
}

// otherFormats says in words where an engine reports another format of weights or KV cache than was
// asked for, as far as both are known.
func (f Format) otherFormats(said map[string]string) []string {
	if f.Weights == "" && !f.oneByteKV() {
		return nil
	}
	var out []string
	differs := func(what, is, want string) {
		out = append(out, fmt.Sprintf("%s is %s, asked for %s", what, is, want))
	}
	if method := strings.ToLower(said["quantization"]); method != "" && f.Weights != "" {
		formats, known := methods[method]
		plain := method == noQuantisation
		if plain != twoBytes(f.Weights) || known && !slices.Contains(formats, f.Weights) {
			differs("quantization", method, "weights in "+f.Weights)
		}
	}
	dtype := strings.TrimPrefix(strings.ToLower(said["dtype"]), "torch.")
	if want := f.dtype(); want != "" && dtype != "" && dtype != "auto" && dtype != want && !(want == "float16" && dtype == "half") {
		differs("dtype", dtype, want)
	}
	kv := strings.ToLower(said["kv_cache_dtype"])
	oneByte := strings.HasPrefix(kv, "fp8")
	if kv != "" && oneByte != f.oneByteKV() && !(oneByte && f.StoredKV == "fp8") {
		differs("kv_cache_dtype", kv, cmp.Or(f.KV, "auto"))
	}
	return out
}

// noQuantisation is the method reported for weights that are not quantised.
const noQuantisation = "none"
