package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
)

// Candidates returns the cross product of all lists: GPU, degrees of parallelism and knobs, in the order given,
// the last varying fastest. Combinations that can never run are rejected with the reason: a step that holds
// fewer tokens than requests, or a model that the GPUs cannot divide between them. Whether a model fits into
// memory is not checked here. Loading fails if nothing runnable is left.
func (c *Config) Candidates() (runnable []measure.Knobs, rejected []measure.Rejection) {
	for _, k := range c.crossed() {
		if _, why := c.impossible(k); why != nil {
			rejected = append(rejected, measure.Rejection{Knobs: k, Reason: note.ReasonOf(why)})
		} else {
			runnable = append(runnable, k)
		}
	}
	return runnable, rejected
}

// mostCombinations is far more than can be tried.
const mostCombinations = 10_000

func (c *Config) crossed() []measure.Knobs {
	sets := []measure.Knobs{{}}
	for _, n := range measure.KnobTable {
		values := c.Space[n.Name]
		if n.Name == "gpu" {
			values = append(values, list.Map(c.GPUs, func(g GPU) any { return g.Hardware.Name })...)
		}
		if len(values) == 0 {
			continue
		}
		var next []measure.Knobs
		for _, k := range sets {
			for _, v := range values {
				n.Set(&k, v)
				next = append(next, k)
			}
		}
		sets = next
	}
	return list.Map(sets, c.settle)
}

// EngineDefaults returns the knobs with the engine's own choices in place of searched numbers and options: the
// defaults on their GPU for a simulated engine, and 0 for any other or if the GPU is unknown.
func (c *Config) EngineDefaults(k measure.Knobs) measure.Knobs {
	for _, n := range measure.Searched() {
		if _, switched := n.Zero.(bool); !switched {
			n.Set(&k, nil)
		}
	}
	return c.settle(k)
}

// settle replaces zero knobs by a simulated engine's defaults on their GPU.
func (c *Config) settle(k measure.Knobs) measure.Knobs {
	g, ok := c.GPU(k.GPU)
	if !ok || !c.Simulated() {
		return k
	}
	l := model.DefaultArgs(g.Hardware, c.Engine.Version)
	if k.MaxNumSeqs == 0 {
		k.MaxNumSeqs = l.MaxNumSeqs
		if k.MaxNumBatchedTokens > 0 {
			k.MaxNumSeqs = min(k.MaxNumSeqs, k.MaxNumBatchedTokens) // as vLLM does
		}
	}
	k.MaxNumBatchedTokens = cmp.Or(k.MaxNumBatchedTokens, l.MaxNumBatchedTokens)
	k.GPUMemoryUtilization = cmp.Or(k.GPUMemoryUtilization, l.Utilization)
	return k
}

// impossible returns the key and the reason for which a configuration can never run; a nil error if it can.
func (c *Config) impossible(k measure.Knobs) (key string, why error) {
	if k.MaxNumBatchedTokens > 0 && k.MaxNumBatchedTokens < k.MaxNumSeqs {
		return "knobs.max_num_batched_tokens", note.New(note.StepBelowSeqs, k.MaxNumBatchedTokens, k.MaxNumSeqs)
	}
	if k.GPU == "" {
		return "", nil
	}
	if k.ExpertParallel && k.GPUs() == 1 && len(c.Space["expert_parallel"]) > 1 {
		return "engine.expert_parallel", note.New(note.ExpertsAlone)
	}
	if !c.Model.Known {
		return "", nil
	}
	return c.invalid(k)
}

func (c *Config) invalid(k measure.Knobs) (key string, why error) {
	d := c.Deployment(k)
	err := d.Validate()
	if err == nil && c.Simulated() {
		if what := d.Unserved(model.EngineArgs{EngineVersion: c.Engine.Version}); what != "" {
			return "hardware.gpu", note.New(note.NoKernels, d.Hardware.Name, what)
		}
		features, _ := c.Engine.Features().With(strings.Fields(k.ExtraArgs))
		if err = d.Supports(model.EngineArgs{EngineVersion: c.Engine.Version, EngineFeatures: features}); err != nil {
			if note.ReasonOf(err).Note.Kind == note.OverlapUnknown {
				return "engine.dbo", err
			}
			return "engine.all2all_backend", err
		}
	}
	switch {
	case err == nil, errors.Is(err, model.ErrNoFigure) && !c.Simulated():
		return "", nil // a real engine needs no data sheet
	case d.Hardware.Check() != nil:
		key = "hardware.gpu"
	case k.ExpertParallel:
		key = "engine.expert_parallel"
	case k.PipelineParallel > c.Model.Arch.Layers:
		key = "engine.pipeline_parallel"
	default:
		key = "engine.tensor_parallel"
	}
	return key, err
}

// rackNodeGPUs is the number of GPUs in a node of an NVL72 rack, whose link joins 72.
const rackNodeGPUs = 4

// GPUsPerNode is the number of GPUs in a node, by which a cluster's scheduler places an instance.
func (c *Config) GPUsPerNode(gpu string) int {
	if c.NodeGPUs > 0 {
		return c.NodeGPUs
	}
	g, _ := c.GPU(gpu)
	if n := g.Hardware.NodeGPUs(); n <= 8 {
		return n
	}
	return rackNodeGPUs
}

// Spread returns the nodes of an instance and its GPUs on each: one node, or several that it fills.
func (c *Config) Spread(gpu string, gpus int) (nodes, each int) {
	if each = c.GPUsPerNode(gpu); gpus > each && gpus%each == 0 {
		return gpus / each, each
	}
	return 1, gpus
}

// checkCandidates refuses options whose effect is not modelled, degrees of parallelism that the model rules out
// on every GPU, and a configuration of which nothing can run.
func (r *reader) checkCandidates(c *Config) {
	for _, v := range c.Space["extra_args"] {
		if _, rest := c.Engine.With(strings.Fields(v.(string))); c.Simulated() && len(rest) > 0 {
			r.at("knobs.extra_args").refuse("%s is not modelled by the simulated engine, or not with this value; engine.extra_args only passes it on", rest[0])
		}
	}
	heads := c.Model.Arch.Attention.Heads
	for _, v := range c.Space["tensor_parallel"] {
		tp := v.(int)
		r.element("engine.tensor_parallel", int64(tp)).refuseIf(c.Model.Known && heads%tp != 0, "has %d, want a divisor of the %d attention heads of %s", tp, heads, c.Model.Name)
	}
	combinations := float64(max(len(c.GPUs), 1))
	for _, values := range c.Space {
		combinations *= float64(max(len(values), 1))
	}
	r.at("knobs").refuseIf(combinations > mostCombinations, "lists cross to %.4g combinations, want at most %d: shorten the lists", combinations, mostCombinations)
	if !r.clean("engine.tensor_parallel", "knobs") {
		return
	}
	runnable, rejected := c.Candidates()
	if len(runnable) > 0 || len(rejected) == 0 {
		return
	}
	key, _ := c.impossible(rejected[0].Knobs)
	_, name, _ := strings.Cut(key, ".")
	text := strings.TrimPrefix(rejected[0].Reason.Text, name+": ")
	if slices.ContainsFunc(rejected, func(x measure.Rejection) bool { return x.Reason.Text != rejected[0].Reason.Text }) {
		text += fmt.Sprintf("; nor can any of the other %d combinations run", len(rejected)-1)
	}
	r.at(key).refuse("%s", text)
}
