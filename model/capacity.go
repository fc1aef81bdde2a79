package model

import (
	"math"
	"slices"

	"planner/internal/stat"
)

// Targets are the mean latencies that an estimate of capacity must meet, in seconds; 0 means no limit.
type Targets struct {
	TTFT float64
	TPOT float64
}

// Capacity is an analytic estimate of the largest rate that one instance sustains.
type Capacity struct {
	Rate  float64 // requests/s over all attention replicas
	Batch float64 // requests that decode at once, per replica
	Step  float64 // seconds of the mean step
	TTFT  float64 // seconds, mean, without queueing beyond the running step
}

// Capacity returns the largest sustainable rate by a mean-field fixed point: with B requests decoding, every
// step completes B/output of them (more with speculation) and admits as many prompts, so rate = B / (output x
// step(B)); B grows until a target, an engine limit or the KV pool binds. It ignores queueing and the spread of
// lengths, and so overestimates what holds at a p99: a prior for a search, never an answer. The rate is 0 if a
// single request misses a target.
func (r *Roofline) Capacity(q MeanRequest, mem Memory, targets Targets) Capacity {
	q.Output = max(q.Output, 1)
	top := r.largestBatch(q, mem)
	// At low load an engine still runs its requests one at a time, so B is at least 1. Only where outputs are
	// so short that the prompts for B = 1 exceed a step's tokens is it less on average.
	alone := 1.0
	if _, _, full := r.meanField(q, alone); full {
		alone = 0
	}
	if top <= 0 || r.misses(q, alone, targets) {
		return Capacity{}
	}
	if r.misses(q, top, targets) {
		top, _ = stat.Bisect(min(alone, top), top, 40, func(batch float64) bool { return r.misses(q, batch, targets) })
	}
	step, ttft, _ := r.meanField(q, top)
	return Capacity{Rate: float64(r.dep.DP) * top / (r.steps(q) * step), Batch: top, Step: step, TTFT: ttft}
}

// largestBatch returns how many requests may decode at once. A running request holds, on average, its prompt
// and half of its output.
func (r *Roofline) largestBatch(q MeanRequest, mem Memory) float64 {
	need := mem.Layout.Blocks(max(1, int(math.Ceil(q.Prompt+q.Output/2))), 1+r.args.Speculation.Tokens)
	return max(0, min(float64(r.args.MaxNumSeqs), float64(mem.Blocks-1)/float64(need)))
}

// misses reports whether a batch of this size misses a target or its prompts exceed the tokens of a
// step.
func (r *Roofline) misses(q MeanRequest, batch float64, targets Targets) bool {
	step, ttft, full := r.meanField(q, batch)
	return full || targets.TPOT > 0 && step*r.steps(q)/q.Output > targets.TPOT || targets.TTFT > 0 && ttft > targets.TTFT
}

// meanField returns the mean step and the mean time to first token with that many requests decoding, and whether
// their prompts exceed the tokens of a step.
func (r *Roofline) meanField(q MeanRequest, batch float64) (step, ttft float64, full bool) {
	fresh := max(q.Prompt-q.Cached, 1)
	budget := max(1, float64(r.args.MaxNumBatchedTokens*r.dep.PP)-batch)
	parts := math.Ceil(fresh / budget)
	chunk := Chunk{Tokens: int(math.Ceil(fresh / parts)), Context: int(q.Cached + (parts-1)/2*fresh/parts)}
	perStep := batch / r.steps(q) * parts // chunks of prompts in a mean step
	full = perStep*float64(chunk.Tokens) > budget

	below := int(min(perStep, 4096))
	a, b := r.mixed(q, batch, chunk, below), r.mixed(q, batch, chunk, below+1)
	step = a + (b-a)*(perStep-float64(below))
	// A request waits for half of the running step and, with scheduling one step ahead, for one more; then its
	// chunks run.
	ttft = r.Frontend(int(q.Prompt)) + 1.5*step + parts*r.mixed(q, batch, chunk, max(1, below))
	return step, ttft, full
}

// steps returns the number of steps for which a request decodes.
func (r *Roofline) steps(q MeanRequest) float64 { return q.Output / r.args.Speculation.PerStep() }

// mixed returns the time of a step with these decodes and chunks.
func (r *Roofline) mixed(q MeanRequest, batch float64, chunk Chunk, chunks int) float64 {
	n := max(1, int(math.Round(batch)))
	context := q.Prompt + q.Output/2
	b := Batch{Decodes: n, Context: int(float64(n) * context), Longest: int(context), Sampled: n + chunks}
	b.Adapters = int(math.Ceil(r.args.LoRA.Distinct(batch)))
	b.Drafted = n * r.args.Speculation.Tokens
	b.Sampled += b.Drafted
	b.Windowed = int(float64(n) * r.windowed(context))
	b.Chunks = slices.Repeat([]Chunk{chunk}, chunks)
	return r.Step(b).Total
}

// Drafting is the load up to which speculative decoding makes answers faster.
type Drafting struct {
	// Rate is in requests/s over all attention replicas, Batch the number of requests that then decode at once
	// on each; both are 0 if it never pays. Always says that it pays up to the largest batch that the engine
	// runs.
	Rate, Batch float64
	Always      bool
}

// Drafting compares the mean times per token with and without the roofline's speculation, by the mean field of
// [Roofline.Capacity].
func (r *Roofline) Drafting(q MeanRequest, mem Memory) (Drafting, error) {
	args := r.args
	args.Speculation = Speculation{}
	plain, err := NewRoofline(r.dep, r.c, args)
	if err != nil {
		return Drafting{}, err
	}
	q.Output = max(q.Output, 1)
	var d Drafting
	top := r.largestBatch(q, mem)
	for n := 1.0; n <= top; n = math.Ceil(n * 1.05) {
		step, _, full := r.meanField(q, n)
		if without, _, _ := plain.meanField(q, n); full || step*r.steps(q)/q.Output >= without {
			return d, nil
		}
		d.Rate, d.Batch = float64(r.dep.DP)*n/(r.steps(q)*step), n
	}
	d.Always = d.Batch > 0
	return d, nil
}
