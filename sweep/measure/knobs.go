package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
	"planner/internal/wire"
)

// Knobs are the settings of one server instance that a sweep varies or pins. Two trials belong to
// the same configuration if and only if their Knobs are equal, so Knobs is comparable and serves as
// a map key. Zero means that the engine's own default holds, except for PrefixCaching. [KnobTable]
// describes each knob.
type Knobs struct {
	MaxNumSeqs           int     `json:"max_num_seqs"`           // requests that run at once
	MaxNumBatchedTokens  int     `json:"max_num_batched_tokens"` // tokens of one step
	GPUMemoryUtilization float64 `json:"gpu_memory_utilization"` // the share of memory that the engine takes
	PrefixCaching        bool    `json:"prefix_caching"`         // whether the KV cache of shared prefixes is kept
	// PrefixUnknown says that it is not known whether prefixes were cached, as in results of other
	// tools; PrefixCaching is then false, and null in JSON.
	PrefixUnknown bool `json:"-"`
	// MaxModelLen is the longest prompt + output of a request, in tokens.
	MaxModelLen int `json:"max_model_len,omitempty"`
	// KVBlocks pins the number of KV cache blocks; 0 means computed.
	KVBlocks int `json:"kv_blocks,omitempty"`
	// GPU names the hardware of the instance, where the search compares several.
	GPU              string `json:"gpu,omitempty"`
	TensorParallel   int    `json:"tensor_parallel"`             // GPUs that share each layer
	PipelineParallel int    `json:"pipeline_parallel,omitempty"` // stages of layers
	DataParallel     int    `json:"data_parallel,omitempty"`     // replicas of attention
	ExpertParallel   bool   `json:"expert_parallel,omitempty"`   // whether experts are whole on a GPU
	// Weights and KVCache are the number formats of the instance, where the search compares
	// several; "" is what is configured.
	Weights string `json:"weights,omitempty"`
	KVCache string `json:"kv_cache,omitempty"`
	// ExtraArgs are further options of the engine's command line, separated by blanks.
	ExtraArgs string `json:"extra_args,omitempty"`
}

// Kind returns the kind of instance that the knobs describe: only those that place the model on
// GPUs.
func (k Knobs) Kind() Knobs {
	kind := Knobs{PrefixUnknown: true} // the same for all kinds
	for _, n := range KnobTable {
		if n.Placement {
			n.Copy(&kind, k)
		}
	}
	return kind
}

// Knob describes one of the [Knobs]. Its values are an int, a float64, a bool or a string; nil is a
// value that is left to the engine, or not known.
type Knob struct {
	// Name is the knob's name in configurations, files and placeholders of commands, Short the one
	// in tables.
	Name, Short string
	// Option is the knob's option of vLLM 0.20, in whose terms servers are described; "" for none.
	Option string
	// Help says in a configuration what the knob does.
	Help string
	// Precedence orders the knobs that are searched, from 1: what usually matters most is varied
	// first; 0 is not searched. Usual are the values tried if none are given.
	Usual      []any
	Precedence int
	// Least and Most bound the values that are worth trying beyond those listed; both are 0 for a
	// knob whose list is never extended.
	Least, Most float64
	// Placement says that the knob sets the GPUs of an instance or, with Format, its number
	// formats, which each engine is told in its own way.
	Placement, Format bool
	// Zero is the zero value of the knob's type.
	Zero any
	// Get returns the value of the knob, nil if it is left to the engine or not known.
	Get func(Knobs) any
	// Set sets the knob to a value of its type; nil leaves it to the engine.
	Set func(*Knobs, any)
}

// KnobTable lists the knobs in the order in which they are crossed and shown. A new one needs a row
// here, a field in [Knobs] and a line in the adapter of each engine that has an option for it.
// Steps of fewer than 256 tokens waste the GPU on any model; the last 5 % of a GPU's memory is
// needed by its driver and others.
var KnobTable = []Knob{
	knob(Knob{Name: "gpu", Short: "GPU", Placement: true}, func(k *Knobs) *string { return &k.GPU }),
	knob(Knob{Name: "tensor_parallel", Short: "TP", Option: "--tensor-parallel-size", Placement: true},
		func(k *Knobs) *int { return &k.TensorParallel }),
	knob(Knob{Name: "pipeline_parallel", Short: "PP", Option: "--pipeline-parallel-size", Placement: true},
		func(k *Knobs) *int { return &k.PipelineParallel }),
	knob(Knob{Name: "data_parallel", Short: "DP", Option: "--data-parallel-size", Placement: true},
		func(k *Knobs) *int { return &k.DataParallel }),
	knob(Knob{Name: "expert_parallel", Short: "EP", Option: "--enable-expert-parallel", Placement: true},
		func(k *Knobs) *bool { return &k.ExpertParallel }),
	knob(Knob{Name: "weights", Short: "weights", Placement: true, Format: true}, func(k *Knobs) *string { return &k.Weights }),
	knob(Knob{Name: "kv_cache", Short: "KV", Placement: true, Format: true}, func(k *Knobs) *string { return &k.KVCache }),
	knob(Knob{Name: "max_num_seqs", Short: "seqs", Option: "--max-num-seqs",
		Help:  "requests that run at once; a value pins a knob, a list is searched",
		Usual: []any{64, 128, 256, 512}, Precedence: 2, Least: 1, Most: 4096},
		func(k *Knobs) *int { return &k.MaxNumSeqs }),
	knob(Knob{Name: "max_num_batched_tokens", Short: "tokens", Option: "--max-num-batched-tokens",
		Help:  "tokens of one step",
		Usual: []any{2048, 4096, 8192, 16384}, Precedence: 1, Least: 256, Most: 65536},
		func(k *Knobs) *int { return &k.MaxNumBatchedTokens }),
	knob(Knob{Name: "gpu_memory_utilization", Short: "memory", Option: "--gpu-memory-utilization",
		Help:  "share of a GPU's memory that the engine may take",
		Usual: []any{0.85, 0.90, 0.95}, Precedence: 3, Least: 0.5, Most: 0.95},
		func(k *Knobs) *float64 { return &k.GPUMemoryUtilization }),
	prefixCaching,
	knob(Knob{Name: "max_model_len", Short: "length", Option: "--max-model-len",
		Help: "0 = the smallest that holds the workload's longest request"},
		func(k *Knobs) *int { return &k.MaxModelLen }),
	knob(Knob{Name: "kv_blocks", Short: "blocks", Option: "--num-gpu-blocks-override",
		Help: "0 = computed; pin it to the number the engine printed (vLLM: num_gpu_blocks)"},
		func(k *Knobs) *int { return &k.KVBlocks }),
	knob(Knob{Name: "extra_args", Short: "options", Usual: []any{""}, Precedence: 5,
		Help: `further options of the engine: ["", "--enforce-eager", "--long-prefill-token-threshold 512"]; one that is measured takes any`},
		func(k *Knobs) *string { return &k.ExtraArgs }),
}

// prefixCaching is the one knob whose zero value means off, not left to the engine.
var prefixCaching = Knob{
	Name: "prefix_caching", Short: "prefix cache", Option: "--enable-prefix-caching",
	Help:  "keep the KV cache of shared prefixes",
	Usual: []any{true}, Precedence: 4, Zero: false,
	Get: func(k Knobs) any {
		if k.PrefixUnknown {
			return nil
		}
		return k.PrefixCaching
	},
	Set: func(k *Knobs, v any) {
		on, known := v.(bool)
		k.PrefixCaching, k.PrefixUnknown = on, !known
	},
}

// knob completes a row of the table with the field that holds the knob.
func knob[T comparable](n Knob, field func(*Knobs) *T) Knob {
	var zero T
	n.Zero = zero
	n.Get = func(k Knobs) any {
		if v := *field(&k); v != zero {
			return v
		}
		return nil
	}
	n.Set = func(k *Knobs, v any) { *field(k), _ = v.(T) }
	return n
}

// KnobNamed returns the knob of a name; false if there is none.
func KnobNamed(name string) (Knob, bool) {
	return list.Find(KnobTable, func(n Knob) bool { return n.Name == name })
}

// KnobOf returns the knob that an option of the engine's command line sets; false if there is none.
func KnobOf(option string) (Knob, bool) {
	return list.Find(KnobTable, func(n Knob) bool { return n.Option != "" && n.Option == option })
}

// Searched lists the knobs that are searched, those that usually matter most first.
func Searched() []Knob {
	searched := list.Filter(KnobTable, func(n Knob) bool { return n.Precedence > 0 })
	slices.SortFunc(searched, func(a, b Knob) int { return cmp.Compare(a.Precedence, b.Precedence) })
	return searched
}

// Worded reports whether the knob's values are strings, which each engine is told in its own way: a
// GPU is where it runs, and further options are passed on as they are.
func (n *Knob) Worded() bool { return n.Zero == "" }

// Copy sets the knob in one set to its value in another.
func (n *Knob) Copy(to *Knobs, from Knobs) { n.Set(to, n.Get(from)) }

// Number returns the value of a numeric knob, 0 for any other and if it is left to the engine.
func (n *Knob) Number(k Knobs) float64 {
	switch v := n.Get(k).(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// SetNumber sets a numeric knob.
func (n *Knob) SetNumber(k *Knobs, x float64) {
	if _, whole := n.Zero.(int); whole {
		n.Set(k, int(x))
		return
	}
	n.Set(k, x)
}

// Text returns the value as configurations write it, "" if it is left to the engine.
func (n *Knob) Text(k Knobs) string {
	switch v := n.Get(k).(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// Describe names the knobs that are not left to the engine: "GPU H100 SXM, TP 4, seqs 64".
func (k Knobs) Describe() string {
	return strings.Join(list.FilterMap(KnobTable, func(n Knob) (string, bool) {
		text := n.Text(k)
		return n.Short + " " + text, text != ""
	}), ", ")
}

// Differences counts the knobs whose values differ between two sets.
func (k Knobs) Differences(o Knobs) int {
	return list.Count(KnobTable, func(n Knob) bool { return n.Get(k) != n.Get(o) })
}

// Or fills knobs that are left to the engine with the values of another set.
func (k Knobs) Or(o Knobs) Knobs {
	for _, n := range KnobTable {
		if n.Get(k) == nil {
			n.Copy(&k, o)
		}
	}
	return k
}

// GPUs returns the number of GPUs of one instance.
func (k Knobs) GPUs() int {
	return max(k.TensorParallel, 1) * max(k.PipelineParallel, 1) * max(k.DataParallel, 1)
}

// Written returns the knobs as a file holds them, unknown prefix caching as null.
func (k Knobs) Written() any { return knobsFile{plainKnobs(k), prefixCaching.Get(k)} }

// knobsFile is what a file holds of knobs.
type knobsFile struct {
	plainKnobs
	PrefixCaching any `json:"prefix_caching"`
}

type plainKnobs Knobs

// UnmarshalJSON reads what Written gives. Missing keys are zero.
func (k *Knobs) UnmarshalJSON(data []byte) error {
	w := knobsFile{PrefixCaching: false}
	if err := wire.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read knobs: %w", err)
	}
	*k = Knobs(w.plainKnobs)
	prefixCaching.Set(k, w.PrefixCaching)
	return nil
}
