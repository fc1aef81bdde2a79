package config

import (
	"errors"
	"fmt"
	"strings"

	"planner/model"
	"planner/sweep/measure"
)

// Candidates crosses all that is a list: GPU, tensor parallelism and knobs, in the
// order in which they were given, the last varying fastest. What can never run is
// rejected with its reason: a step that holds fewer tokens than requests, a model
// that the GPUs cannot divide between them. Whether a model fits into memory is
// not asked here. Loading fails when nothing runnable is left.
func (c *Config) Candidates() (runnable []measure.Knobs, rejected []measure.Rejection) {
	for _, gpu := range c.gpuNames() {
		for _, tp := range c.Engine.Parallel.Tensor {
			for _, k := range c.knobsOn(gpu, tp) {
				if reason := c.impossible(k); reason != "" {
					rejected = append(rejected, measure.Rejection{Knobs: k, Reason: reason})
				} else {
					runnable = append(runnable, k)
				}
			}
		}
	}
	return runnable, rejected
}

// gpuNames lists the GPUs, or one without a name when none is known.
func (c *Config) gpuNames() []string {
	if len(c.GPUs) == 0 {
		return []string{""}
	}
	names := make([]string, len(c.GPUs))
	for i, g := range c.GPUs {
		names[i] = g.Hardware.Name
	}
	return names
}

// knobsOn crosses the knobs for one GPU and one degree of tensor parallelism.
func (c *Config) knobsOn(gpu string, tp int) []measure.Knobs {
	s := c.Space
	p := c.Engine.Parallel
	var all []measure.Knobs
	for _, seqs := range orElse(s.MaxNumSeqs, []int{0}) {
		for _, tokens := range orElse(s.MaxNumBatchedTokens, []int{0}) {
			for _, share := range orElse(s.GPUMemoryUtilization, []float64{0}) {
				for _, prefix := range orElse(s.PrefixCaching, []bool{true}) {
					all = append(all, c.settle(measure.Knobs{
						MaxNumSeqs: seqs, MaxNumBatchedTokens: tokens, GPUMemoryUtilization: share, PrefixCaching: prefix,
						MaxModelLen: s.MaxModelLen, KVBlocks: s.KVBlocks,
						GPU: gpu, TensorParallel: tp, PipelineParallel: p.Pipeline, DataParallel: p.Data, ExpertParallel: p.Expert,
					}))
				}
			}
		}
	}
	return all
}

// impossible says why a configuration can never run, "" if it can.
func (c *Config) impossible(k measure.Knobs) string {
	if k.MaxNumBatchedTokens > 0 && k.MaxNumBatchedTokens < k.MaxNumSeqs {
		return fmt.Sprintf("max_num_batched_tokens %d is below max_num_seqs %d", k.MaxNumBatchedTokens, k.MaxNumSeqs)
	}
	if !c.Model.Known || k.GPU == "" {
		return ""
	}
	err := c.Deployment(k).Validate()
	if err == nil || errors.Is(err, model.ErrNoFigure) && !c.Simulated() {
		return "" // a real engine needs no data sheet
	}
	return err.Error()
}

// checkCandidates refuses degrees of parallelism that the model rules out on every
// GPU, and a configuration of which nothing can run.
func (r *reader) checkCandidates(c *Config) {
	heads := c.Model.Arch.Attention.Heads
	for _, tp := range c.Engine.Parallel.Tensor {
		if c.Model.Known && heads%tp != 0 {
			r.element("engine.tensor_parallel", int64(tp)).refuse("has %d, want a divisor of the %d attention heads of %s", tp, heads, c.Model.Name)
		}
	}
	if !r.clean("engine.tensor_parallel") {
		return
	}
	runnable, rejected := c.Candidates()
	if len(runnable) > 0 || len(rejected) == 0 {
		return
	}
	key := blamed(rejected[0], c)
	_, name := splitKey(key)
	text := strings.TrimPrefix(rejected[0].Reason, name+": ")
	for _, other := range rejected[1:] {
		if other.Reason != rejected[0].Reason {
			text += fmt.Sprintf("; nor can any of the other %d combinations run", len(rejected)-1)
			break
		}
	}
	r.at(key).refuse("%s; want at least one combination that can run", text)
}

// blamed is the key that a rejection is about.
func blamed(rejected measure.Rejection, c *Config) string {
	k := rejected.Knobs
	hw := c.Deployment(k).Hardware
	switch {
	case k.MaxNumBatchedTokens > 0 && k.MaxNumBatchedTokens < k.MaxNumSeqs:
		return "knobs.max_num_batched_tokens"
	case hw.Check() != nil:
		return "hardware.gpu"
	case k.ExpertParallel:
		return "engine.expert_parallel"
	case k.PipelineParallel > c.Model.Arch.Layers:
		return "engine.pipeline_parallel"
	}
	return "engine.tensor_parallel"
}
