package sim

import (
	"fmt"

	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
)

// Timer says how long things take, in seconds. A [model.Roofline] is one.
type Timer interface {
	// Step is the time of one step.
	Step(model.Batch) model.StepTime
	// Decode gives the times first, first + growth, first + 2 growth, ..., where the
	// GPUs do not wait for the host, of successive steps of a batch of nothing but decodes, which must hold as long
	// as the batch stays the same and no context reaches the window.
	Decode(model.Batch) (first, growth float64)
	// Frontend is what a request of so many prompt tokens spends outside the
	// engine's loop.
	Frontend(promptTokens int) float64
}

// Config describes one simulated engine. [Configure] derives it from a model. All but
// Replicas and LockStep hold for each replica.
type Config struct {
	Rules Rules
	// Seqs is max_num_seqs: how many requests may run at once.
	Seqs int
	// BatchTokens is max_num_batched_tokens: the token budget of a step. With pipeline
	// stages a step here is one batch for each of them, see [model.Roofline].
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
	// Watermark is the share of Blocks that an admission must leave free while
	// other requests run.
	Watermark float64
	// Blocks is the size of the pool as vLLM counts it (num_gpu_blocks): one of
	// them is the null block, which is never handed out.
	Blocks int
	// Layout is how requests take blocks from the pool. Its Window is how far a
	// window layer looks back even where all layers keep everything.
	//
	// Three things are simpler than in vLLM. A sequence's window blocks are reserved
	// when it first needs them and kept to its end instead of being exchanged as the
	// window moves, which comes to the same number but for an edge. A prompt chunk
	// longer than the window takes no extra blocks while it is computed. And a cached
	// prefix is found by the full groups alone, with the window's last tokens taken to
	// be there too. A model of nothing but window layers is treated as if they were
	// full, as vLLM does without its hybrid cache manager.
	Layout model.KVLayout
	// Replicas counts the attention replicas (data parallelism); 0 means 1. Each
	// has its own scheduler and block pool.
	Replicas int
	// Speculation is how requests that decode bring along proposed tokens.
	Speculation model.Speculation
	// LoRA is how many adapters requests choose among, each as likely as the others, and how
	// many of them run at once.
	LoRA model.LoRA
	// LockStep makes the replicas wait for each other in every step, as they do
	// when they share a mixture of experts.
	LockStep bool
}

// Configure returns the configuration of the engine that a roofline and its
// memory describe. It fails if the release in the roofline's arguments cannot be
// read, or if the pool is empty.
func Configure(r *model.Roofline, m model.Memory, prefixCaching bool) (Config, error) {
	dep, args := r.Deployment(), r.Args()
	v, err := model.ParseVersion(args.EngineVersion)
	if err != nil {
		return Config{}, fmt.Errorf("simulate engine: %w", err)
	}
	if m.Blocks < 2 {
		return Config{}, note.New(note.EmptyPool, m.Blocks)
	}
	layout := m.Layout
	layout.Window = r.Window()
	rules := RulesFor(v)
	rules.Async = args.Async()
	return Config{
		Rules: rules, Seqs: args.MaxNumSeqs, BatchTokens: args.MaxNumBatchedTokens * dep.PP, ModelLen: args.MaxModelLen,
		PrefixCaching: prefixCaching, Blocks: m.Blocks, Layout: layout,
		Replicas: dep.DP, LockStep: dep.Arch.MoE.Present(),
		Speculation: args.Speculation, LoRA: args.LoRA,
	}, nil
}

// Args are the settings that knobs give an engine of a release with settings of its own; what they leave open
// is up to its defaults.
func Args(k measure.Knobs, version string, settings model.EngineFeatures) model.EngineArgs {
	return model.EngineArgs{
		MaxNumSeqs: k.MaxNumSeqs, MaxNumBatchedTokens: k.MaxNumBatchedTokens, Utilization: k.GPUMemoryUtilization,
		MaxModelLen: k.MaxModelLen, KVBlocks: k.KVBlocks, EngineVersion: version, EngineFeatures: settings,
	}
}

// valid panics on settings under which no scheduler can work: they come from code
// that has checked the user's values.
func (c *Config) valid() {
	if c.Seqs <= 0 || c.BatchTokens <= 0 || c.ModelLen <= 1 || c.Layout.BlockTokens <= 0 || c.Blocks <= 1 || len(c.Speculation.Accepted) < c.Speculation.Tokens {
		panic("sim: scheduler settings must be positive")
	}
}

// Rules are the scheduling behaviours of vLLM V1 that changed between releases.
// They were compared step by step with the scheduler classes of 0.15.1, 0.20.2,
// 0.26.0, 0.32.0 and 0.33.0; the switching points between these are taken from the dates
// on which the changes were merged.
type Rules struct {
	// Async schedules a step before the output of the one before it is known.
	// Default since 0.14 (merged 2025-12-29).
	Async bool
	// FullSequenceGate admits a waiting request only if all of its present
	// tokens would fit now, not only its first chunk. Since 0.19
	// (scheduler_reserve_full_isl, 2026-03-24).
	FullSequenceGate bool
	// UnkeyedFirst reuses freed blocks that hold nothing cacheable before all
	// others, so that more of the cache survives. Since 0.24 (June 2026).
	UnkeyedFirst bool
	// LoneUncapped lifts the long-prefill threshold in a step that begins with
	// fewer than two requests. Since 0.32.
	LoneUncapped bool
}

// RulesFor returns the rules of a release with every option at its default. The
// zero Version means the newest known release; one before 0.10 follows 0.10, one
// between two known ones the earlier.
func RulesFor(v model.Version) Rules {
	return Rules{
		Async:            v.AtLeast(0, 14),
		FullSequenceGate: v.AtLeast(0, 19),
		UnkeyedFirst:     v.AtLeast(0, 24),
		LoneUncapped:     v.AtLeast(0, 32),
	}
}
