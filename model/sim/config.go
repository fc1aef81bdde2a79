package sim

import (
	"errors"
	"fmt"
	"strings"

	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
)

// Timer is a model of durations, all in seconds. A [model.Roofline] is one.
type Timer interface {
	// Step returns the time of one step.
	Step(model.Batch) model.StepTime
	// Growth returns by how much each further step of a decode-only batch is longer, unless it is
	// bound by the host, as long as the batch stays the same and no context reaches the window.
	Growth(model.Batch) float64
	// Frontend returns the time that a request of promptTokens spends outside the engine's
	// loop.
	Frontend(promptTokens int) float64
}

// Config describes one simulated engine. [Configure] derives it from a model. All fields but
// Replicas and LockStep apply to each replica on its own.
type Config struct {
	Rules Rules
	// Seqs is max_num_seqs: the most requests that run at once.
	Seqs int
	// BatchTokens is the token budget of a step: max_num_batched_tokens times the number of
	// pipeline stages, since a step here is one micro-batch on every stage, see [model.Roofline].
	BatchTokens int
	// ModelLen is max_model_len: the longest prompt + output, in tokens.
	ModelLen int
	// LongPrefill is long_prefill_token_threshold: the most tokens that one
	// request gets in a step; 0 means no such limit.
	LongPrefill int
	// WholePrefill switches chunked prefill off: a prompt that exceeds what is
	// left of the budget waits.
	WholePrefill bool
	// PrefixCaching keeps full blocks for later requests that begin alike.
	PrefixCaching bool
	// AlignedStates says that the prefix cache of a model whose layers have states holds these only
	// where a chunk of a prompt ended, and for each block of an answer. A request can begin only at one
	// of them, and chunks of prompts end at the ends of blocks (mamba_cache_mode align).
	AlignedStates bool
	// InnerStates says that kernels also write out the state at the last end of a block within a chunk, so that the
	// last chunk of a prompt does not end there.
	InnerStates bool
	// Watermark is the share of Blocks that an admission must leave free while
	// other requests run.
	Watermark float64
	// Blocks is the size of the pool as vLLM counts it (num_gpu_blocks): one of
	// them is the null block, which is never handed out.
	Blocks int
	// Layout says how requests take blocks from the pool. Its Window is set even where window
	// layers keep their whole KV cache.
	//
	// Three things are simpler than in vLLM. The blocks of a sequence's window are reserved when it
	// first needs them and kept until it ends, instead of being replaced as the window moves; their
	// number is the same except near block edges. A prompt chunk longer than the window takes no
	// extra blocks while it is computed. And prefix lookup considers the full-attention groups
	// alone and assumes that the window's last tokens are cached too. A model of window layers
	// alone is treated as one of full attention, as vLLM does without its hybrid cache manager.
	Layout model.KVLayout
	// Chunked says that the window of window layers starts anew every Layout.Window tokens; its blocks
	// are kept as if it moved on.
	Chunked bool
	// Replicas counts the attention replicas (data parallelism); 0 means 1. Each
	// has its own scheduler and block pool.
	Replicas int
	// Speculation says how many tokens decoding requests propose and how many are accepted.
	Speculation model.Speculation
	// LoRA says how many adapters the requests draw from, with equal chances, and how many of them
	// can be in use at once.
	LoRA model.LoRA
	// MicroBatch, if above 0, gives each of the Seqs slots a stream of its own in the KV cache, so that a step is
	// computed in parts of at most so many tokens of neighbouring slots, as llama.cpp does. There are no proposed
	// tokens and no adapters then.
	MicroBatch int
	// SaveToken is the time in seconds in which the server saves a token of what a slot held before another request
	// gets it.
	SaveToken float64
	// LockStep makes all replicas wait for the slowest in every step, as they do when they share
	// the experts of an MoE model.
	LockStep bool
}

// Configure returns the configuration of the engine that a roofline and its memory plan describe.
// It fails if the engine version in the roofline's arguments cannot be parsed, or if the pool is
// empty.
func Configure(r *model.Roofline, m model.Memory, prefixCaching bool) (Config, error) {
	dep, args := r.Deployment(), r.Args()
	v, err := model.ParseVersion(args.EngineVersion)
	if err != nil {
		return Config{}, fmt.Errorf("simulate engine: %w", err)
	}
	if m.Blocks < 2 {
		return Config{}, note.New(note.EmptyPool, m.Blocks)
	}
	if args.WholePrefill && args.MaxNumBatchedTokens < args.MaxModelLen {
		return Config{}, fmt.Errorf("without chunked prefill max_num_batched_tokens (%d) must hold max_model_len (%d)", args.MaxNumBatchedTokens, args.MaxModelLen)
	}
	prefixCaching = prefixCaching && args.CachesPrefixes(dep.Arch)
	// Before, states of Mamba-2 were kept for every block.
	state := dep.Arch.State
	aligned := prefixCaching && state.Present() && (state.Delta || v.AtLeast(0, 28))
	shortest := args.MaxNumBatchedTokens
	if args.LongPrefill > 0 {
		shortest = min(shortest, args.LongPrefill)
	}
	if aligned && !v.AtLeast(0, 27) && shortest < m.Layout.BlockTokens {
		return Config{}, fmt.Errorf("with prefix caching vLLM before 0.27 does not start here, or never computes a prompt: max_num_batched_tokens and long_prefill_token_threshold must hold a block of %d tokens, one allows %d",
			m.Layout.BlockTokens, shortest)
	}
	if aligned && args.WholePrefill {
		return Config{}, errors.New("vLLM caches prefixes of a model with states only with chunked prefill: leave that on, or set prefix_caching = false")
	}
	// Mamba-2's since 0.32 (mamba_mixer2.py); since 0.33 those of FlashInfer for gated delta networks, the default
	// from Hopper on (qwen_gdn_linear_attn.py).
	inner := aligned && (v.AtLeast(0, 33) && dep.Hardware.Generation.FromHopper() || v.AtLeast(0, 32) && !state.Delta)
	layout := m.Layout
	layout.Window = r.Window()
	rules := RulesFor(v)
	rules.Async = args.Async(dep.Hardware.Generation, dep.PP)
	microBatch, save := 0, 0.0
	if args.Streams == model.On && !args.Speculation.On() && !args.LoRA.On() {
		microBatch = min(args.MaxNumBatchedTokens, mostPerPart)
		if link := saveShare * dep.Hardware.PCIe; link > 0 {
			save = dep.Arch.KVBytesPerToken(dep.Precision.KV) / link
		}
	}
	return Config{
		Rules: rules, Seqs: args.MaxNumSeqs, BatchTokens: args.MaxNumBatchedTokens * dep.PP, ModelLen: args.MaxModelLen,
		LongPrefill: args.LongPrefill, WholePrefill: args.WholePrefill,
		PrefixCaching: prefixCaching, AlignedStates: aligned, InnerStates: inner, Blocks: m.Blocks, Layout: layout, Chunked: dep.Arch.Attention.Chunked,
		Replicas: dep.DP, LockStep: dep.Arch.MoE.Present(),
		Speculation: args.Speculation, LoRA: args.LoRA, MicroBatch: microBatch, SaveToken: save,
	}, nil
}

// Args returns the engine arguments for a set of knobs, a release and its feature settings. What
// these leave open takes the engine's default.
func Args(k measure.Knobs, version string, settings model.EngineFeatures) model.EngineArgs {
	settings, _ = settings.With(strings.Fields(k.ExtraArgs))
	return model.EngineArgs{
		MaxNumSeqs: k.MaxNumSeqs, MaxNumBatchedTokens: k.MaxNumBatchedTokens, Utilization: k.GPUMemoryUtilization,
		MaxModelLen: k.MaxModelLen, KVBlocks: k.KVBlocks, EngineVersion: version, EngineFeatures: settings,
	}
}

// valid panics on settings that no scheduler can work with; callers have checked the user's values.
func (c *Config) valid() {
	if c.Seqs <= 0 || c.BatchTokens <= 0 || c.ModelLen <= 1 || c.Layout.BlockTokens <= 0 || c.Blocks <= 1 || len(c.Speculation.Accepted) < c.Speculation.Tokens {
		panic("sim: scheduler settings must be positive")
	}
}

// Rules are the scheduling behaviours of vLLM V1 that changed between releases. They were compared
// step by step with the scheduler classes of 0.15.1, 0.20.2, 0.26.0, 0.32.0 and 0.33.0; the release
// at which each changed is inferred from the date on which the change was merged.
type Rules struct {
	// Async schedules a step before the output of the previous one is known. Default since 0.14
	// (merged 2025-12-29); see [model.EngineArgs.Async].
	Async bool
	// FullSequenceGate admits a waiting request only if all of its known tokens fit into the pool
	// now, not only its first chunk. Since 0.19 (scheduler_reserve_full_isl, 2026-03-24).
	FullSequenceGate bool
	// UnkeyedFirst reuses freed blocks without cacheable content before all others, so that more of
	// the cache survives. Since 0.24 (June 2026).
	UnkeyedFirst bool
	// SharedStates ends a chunk also where a prefix ends of which other requests left keys and values but
	// no state, so that the next request finds one. Since 0.24.
	SharedStates bool
	// LoneUncapped lifts the long-prefill threshold in a step that begins with
	// fewer than two requests. Since 0.32.
	LoneUncapped bool
}

// RulesFor returns the rules of a release with every option at its default. The zero Version means
// the newest known release.
func RulesFor(v model.Version) Rules {
	return Rules{
		Async:            v.AtLeast(0, 14),
		FullSequenceGate: v.AtLeast(0, 19),
		UnkeyedFirst:     v.AtLeast(0, 24),
		SharedStates:     v.AtLeast(0, 24),
		LoneUncapped:     v.AtLeast(0, 32),
	}
}
