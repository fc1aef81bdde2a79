package config

import (
	"slices"

	"planner/model"
	"planner/sweep/measure"
)

// Space holds the values of the knobs that may be tried. An empty list leaves a
// knob to the engine's own default.
type Space struct {
	MaxNumSeqs           []int
	MaxNumBatchedTokens  []int
	GPUMemoryUtilization []float64
	PrefixCaching        []bool
	// MaxModelLen is the longest request in tokens, and KVBlocks the pinned size
	// of the KV cache; 0 means that neither is set.
	MaxModelLen, KVBlocks int
}

// knobKeys are the keys of [knobs].
func knobKeys() []key {
	return []key{
		{"knobs.max_num_seqs", "requests that run at once; a value pins a knob, a list is searched", func(d *draft) value {
			return wholes(&d.space.MaxNumSeqs)
		}},
		{"knobs.max_num_batched_tokens", "tokens of one step", func(d *draft) value { return wholes(&d.space.MaxNumBatchedTokens) }},
		{"knobs.gpu_memory_utilization", "share of a GPU's memory that the engine may take", func(d *draft) value {
			return floats(&d.space.GPUMemoryUtilization, shareOrOne)
		}},
		{"knobs.prefix_caching", "keep the KV cache of shared prefixes", func(d *draft) value { return truths(&d.space.PrefixCaching) }},
		{"knobs.max_model_len", "0 = the smallest that holds the workload's longest request", func(d *draft) value {
			return whole{&d.space.MaxModelLen, 0}
		}},
		{"knobs.kv_blocks", "0 = computed; pin it to the number the engine printed (vLLM: num_gpu_blocks)", func(d *draft) value {
			return whole{&d.space.KVBlocks, 0}
		}},
	}
}

// searchedSpace is what plan and estimate search where nothing is given.
func searchedSpace() Space {
	return Space{
		MaxNumSeqs:           []int{64, 128, 256, 512},
		MaxNumBatchedTokens:  []int{2048, 4096, 8192, 16384},
		GPUMemoryUtilization: []float64{0.85, 0.90, 0.95},
		PrefixCaching:        []bool{true},
	}
}

// UsualTokens reports whether the values of max_num_batched_tokens are those that
// are searched where none are given, and UsualSeqs the same of max_num_seqs. A run
// folder's configuration spells them out, so the values decide, not who gave them.
func (c *Config) UsualTokens() bool {
	return slices.Equal(c.Space.MaxNumBatchedTokens, searchedSpace().MaxNumBatchedTokens)
}

// UsualSeqs is to max_num_seqs what [Config.UsualTokens] is to
// max_num_batched_tokens.
func (c *Config) UsualSeqs() bool {
	return slices.Equal(c.Space.MaxNumSeqs, searchedSpace().MaxNumSeqs)
}

// UsualUtilization is to gpu_memory_utilization what [Config.UsualTokens] is to
// max_num_batched_tokens.
func (c *Config) UsualUtilization() bool {
	return slices.Equal(c.Space.GPUMemoryUtilization, searchedSpace().GPUMemoryUtilization)
}

// fillSpace gives the knobs that were not given their values: the lists where they
// are searched, the engine's own defaults where one simulated GPU settles them. An
// engine that runs already keeps what it has.
func (c *Config) fillSpace(d *draft) {
	s := &d.space
	fill := Space{}
	switch {
	case c.attached():
		*s = Space{MaxNumSeqs: single(s.MaxNumSeqs), MaxNumBatchedTokens: single(s.MaxNumBatchedTokens),
			GPUMemoryUtilization: single(s.GPUMemoryUtilization), PrefixCaching: single(s.PrefixCaching),
			MaxModelLen: s.MaxModelLen, KVBlocks: s.KVBlocks}
	case c.need.Search:
		fill = searchedSpace()
	case c.Simulated() && len(c.GPUs) == 1 && len(s.MaxNumBatchedTokens) <= 1:
		k := measure.Knobs{GPU: c.GPUs[0].Hardware.Name}
		if len(s.MaxNumBatchedTokens) == 1 {
			k.MaxNumBatchedTokens = s.MaxNumBatchedTokens[0]
		}
		k = c.settle(k)
		fill.MaxNumSeqs, fill.MaxNumBatchedTokens = []int{k.MaxNumSeqs}, []int{k.MaxNumBatchedTokens}
		fill.GPUMemoryUtilization = []float64{k.GPUMemoryUtilization}
	}
	if len(fill.PrefixCaching) == 0 { // off by default in LMDeploy alone
		fill.PrefixCaching = []bool{d.engine.Kind != "lmdeploy" || c.Simulated()}
	}
	s.MaxNumSeqs = orElse(s.MaxNumSeqs, fill.MaxNumSeqs)
	s.MaxNumBatchedTokens = orElse(s.MaxNumBatchedTokens, fill.MaxNumBatchedTokens)
	s.GPUMemoryUtilization = orElse(s.GPUMemoryUtilization, fill.GPUMemoryUtilization)
	s.PrefixCaching = orElse(s.PrefixCaching, fill.PrefixCaching)
	c.Space = *s
}

// attached reports whether the engine runs already, with knobs that nobody changes.
func (c *Config) attached() bool { return c.draft.engine.Kind == "attach" && !c.Simulated() }

// single drops a list of several values.
func single[T any](list []T) []T {
	if len(list) > 1 {
		return nil
	}
	return list
}

func orElse[T any](given, fill []T) []T {
	if len(given) > 0 {
		return given
	}
	return fill
}

// checkSingle refuses lists where a command wants one configuration.
func (r *reader) checkSingle(d *draft, need Need) {
	if need.Lists || need.Engine == NoEngine {
		return
	}
	lists := []struct {
		key string
		n   int
	}{
		{"hardware.gpu", len(d.hardware.gpus)},
		{"engine.tensor_parallel", len(d.engine.Parallel.Tensor)},
		{"knobs.max_num_seqs", len(d.space.MaxNumSeqs)},
		{"knobs.max_num_batched_tokens", len(d.space.MaxNumBatchedTokens)},
		{"knobs.gpu_memory_utilization", len(d.space.GPUMemoryUtilization)},
		{"knobs.prefix_caching", len(d.space.PrefixCaching)},
	}
	for _, l := range lists {
		if l.n > 1 {
			r.at(l.key).refuse("is a list of %d, want one value: this command runs one configuration (plan and estimate search lists)", l.n)
		}
	}
}

// checkLength settles max_model_len, the length at which requests end, from the
// workload's longest request and the model's own limit. Later turns of a
// conversation, which carry all before them, may be cut there; a first one may not.
func (r *reader) checkLength(c *Config) {
	n := r.at("knobs.max_model_len")
	once := c.Workload
	once.Turns = 1
	longest, own, asked := once.Longest(), 0, c.Space.MaxModelLen
	if c.Model.Known {
		own = c.Model.Arch.MaxPosition
	}
	switch {
	case own > 0 && asked > own:
		n.refuse("is %d, want at most %d, the own limit of %s", asked, own, c.Model.Name)
	case asked > 0 && longest > asked:
		n.refuse("is %d, want at least %d, the workload's longest request (prefix + prompt + output)", asked, longest)
	case asked > 0 && longestPrompt(c) >= asked:
		n.refuse("is %d, want above %d, the workload's longest prompt with its prefix", asked, longestPrompt(c))
	case own > 0 && max(longest, longestPrompt(c)+1) > own:
		r.missing("knobs.max_model_len", "workload",
			"would have to be %d for the workload's longest request (prefix + prompt + output), want at most %d, the own limit of %s",
			max(longest, longestPrompt(c)+1), own, c.Model.Name)
	}
	whole := c.Workload.Longest()
	switch {
	case asked > 0:
	case own > 0 && whole > 0:
		c.Space.MaxModelLen = min(whole, own)
	default:
		c.Space.MaxModelLen = max(whole, own)
	}
	if c.Space.MaxModelLen > 0 && c.Space.MaxModelLen < whole {
		r.warn("workload: conversations can grow to %d tokens and are cut at max_model_len %d", whole, c.Space.MaxModelLen)
	}
	c.Workload.MaxLen = c.Space.MaxModelLen
}

// longestPrompt is the longest prompt with its prefix, of the classes whose
// prompts have an end.
func longestPrompt(c *Config) int {
	n := 0
	for _, s := range c.Workload.Shapes {
		if p := s.Prompt.Longest(); p > 0 {
			n = max(n, p+s.Prefix.Tokens)
		}
	}
	return n
}

// EngineDefaults returns the knobs with what the engine itself would choose on
// their GPU in place of the numbers of a search; where neither engine nor GPU is
// known, 0 stands for the engine's choice.
func (c *Config) EngineDefaults(k measure.Knobs) measure.Knobs {
	k.MaxNumSeqs, k.MaxNumBatchedTokens, k.GPUMemoryUtilization = 0, 0, 0
	return c.settle(k)
}

// settle replaces zero knobs by the simulated engine's defaults on their GPU.
func (c *Config) settle(k measure.Knobs) measure.Knobs {
	if !c.Simulated() {
		return k
	}
	for _, g := range c.GPUs {
		if g.Hardware.Name != k.GPU {
			continue
		}
		l := model.DefaultArgs(g.Hardware, c.Engine.Version)
		if k.MaxNumSeqs == 0 {
			k.MaxNumSeqs = l.MaxNumSeqs
			if k.MaxNumBatchedTokens > 0 {
				k.MaxNumSeqs = min(k.MaxNumSeqs, k.MaxNumBatchedTokens) // as vLLM does
			}
		}
		if k.MaxNumBatchedTokens == 0 {
			k.MaxNumBatchedTokens = l.MaxNumBatchedTokens
		}
		if k.GPUMemoryUtilization == 0 {
			k.GPUMemoryUtilization = l.Utilization
		}
	}
	return k
}
