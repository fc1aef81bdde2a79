package sim

import "planner/model"

// Rules are the scheduling behaviours of vLLM V1 that changed between releases.
// They were compared step by step with the scheduler classes of 0.15.1, 0.20.2,
// 0.26.0 and 0.32.0; the switching points between these are taken from the dates
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

// Limits are the settings of the scheduler and the size of its block pool.
type Limits struct {
	// Seqs is max_num_seqs: how many requests may run at once.
	Seqs int
	// ActiveSeqs is max_num_active_seqs: how many requests are admitted at
	// most; 0 means Seqs.
	ActiveSeqs int
	// BatchTokens is max_num_batched_tokens: the token budget of a step.
	BatchTokens int
	// ModelLen is max_model_len: the longest prompt + output, in tokens.
	ModelLen int
	// LongPrefill is long_prefill_token_threshold: the most tokens that one
	// request gets in a step; 0 means no such limit.
	LongPrefill int
	// AdaptiveLongPrefill raises LongPrefill to an equal share of the budget
	// (long_prefill_token_threshold_adaptive); without LongPrefill it does
	// nothing.
	AdaptiveLongPrefill bool
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
	// BlockTokens is the number of tokens of one block (block_size).
	BlockTokens int
	// Window says how much of the pool layers with a sliding window take.
	Window Window
}

// Window is the part of a hybrid model's KV cache that belongs to layers with a
// sliding window. The layers are divided into groups of equal size that share one
// pool; a block holds the tokens of one group. The zero value is a model without
// windows.
//
// Three things are simpler than in vLLM. A sequence's window blocks are reserved
// when it first needs them and kept to its end instead of being exchanged as the
// window moves, which comes to the same number but for an edge. A prompt chunk
// longer than the window takes no extra blocks while it is computed. And a cached
// prefix is found by the full groups alone, with the window's last tokens taken to
// be there too. A model of nothing but window layers is treated as if they were
// full, as vLLM does without its hybrid cache manager.
type Window struct {
	// Tokens is how far a window layer looks back; 0 means there is none.
	Tokens int
	// Groups and FullGroups count the groups of layers with and without window.
	Groups, FullGroups int
}

// blocks is the most window blocks of one group that a sequence holds.
func (w Window) blocks(blockTokens int) int {
	return blocksFor(w.Tokens-1, blockTokens) + 1
}

// valid panics on limits under which no scheduler can work: they come from code
// that has checked the user's values.
func (l *Limits) valid() {
	if l.Seqs <= 0 || l.BatchTokens <= 0 || l.ModelLen <= 1 || l.BlockTokens <= 0 || l.Blocks <= 1 {
		panic("sim: scheduler limits must be positive")
	}
}
