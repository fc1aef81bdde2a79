package sim

import (
	"fmt"

	"planner/model"
)

// Timer says how long things take, in seconds. A [model.Roofline] is one.
type Timer interface {
	// Step is the time of one step.
	Step(model.Batch) model.StepTime
	// Decode gives the times first, first + growth, first + 2 growth, ... of
	// successive steps of a batch of nothing but decodes, which must hold as long
	// as the batch stays the same and no context reaches the window.
	Decode(model.Batch) (first, growth float64)
	// Frontend is what a request of so many prompt tokens spends outside the
	// engine's loop.
	Frontend(promptTokens int) float64
}

// Config describes one simulated engine. [Configure] derives it from a model.
type Config struct {
	Rules Rules
	// Limits hold for each replica.
	Limits Limits
	// Replicas counts the attention replicas (data parallelism); 0 means 1. Each
	// has its own scheduler and block pool.
	Replicas int
	// LockStep makes the replicas wait for each other in every step, as they do
	// when they share a mixture of experts.
	LockStep bool
	// StepByStep takes every step on its own instead of many at once. The
	// records are the same; it exists to show that.
	StepByStep bool
}

// Configure returns the configuration of the engine that a roofline and its
// memory describe. It fails if the release in the roofline's limits cannot be
// read, or if the pool is empty.
func Configure(r *model.Roofline, m model.Memory, prefixCaching bool) (Config, error) {
	dep, l := r.Deployment(), r.Args()
	v, err := model.ParseVersion(l.EngineVersion)
	if err != nil {
		return Config{}, fmt.Errorf("simulate engine: %w", err)
	}
	if m.Blocks < 2 {
		return Config{}, fmt.Errorf("simulate engine: a pool of %d KV blocks holds no request", m.Blocks)
	}
	return Config{
		Rules: RulesFor(v),
		Limits: Limits{
			Seqs: l.MaxNumSeqs, BatchTokens: l.MaxNumBatchedTokens, ModelLen: l.MaxModelLen,
			PrefixCaching: prefixCaching, Blocks: m.Blocks, BlockTokens: m.BlockTokens,
			Window: Window{Tokens: r.Window(), Groups: m.Layout.WindowGroups, FullGroups: m.Layout.FullGroups},
		},
		Replicas: dep.DP,
		LockStep: dep.Arch.MoE.Present(),
	}, nil
}
