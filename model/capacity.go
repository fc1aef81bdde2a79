package model

import (
	"math"
)

// Targets are the mean latencies that an estimate of capacity must keep, in seconds; 0
// means no limit.
type Targets struct {
	TTFT float64
	TPOT float64
}

// Capacity is an analytic guess at the largest rate that one instance sustains.
type Capacity struct {
	Rate  float64 // requests/s over all attention replicas
	Batch float64 // requests that decode at once, per replica
	Step  float64 // seconds of the mean step
	TTFT  float64 // seconds, mean, without queueing beyond the running step
}

// Capacity returns the largest sustainable rate by a mean-field fixed point: with B
// requests decoding, every step completes B/output of them and takes in as many
// prompts, so rate = B / (output x step(B)); B grows until a target, a limit of the
// engine or the KV pool binds. It knows no queueing and no spread of lengths, and so
// overestimates what holds at a p99: a prior for a search, never an answer. The rate is
// 0 if one request alone misses a target.
func (r *Roofline) Capacity(q MeanRequest, mem Memory, targets Targets) Capacity {
	q.Output = max(q.Output, 1)
	top := r.largestBatch(q, mem)
	// An engine with almost no load still runs its requests one at a time: below one request
	// the step of one counts.
	if top <= 0 || r.misses(q, 1, targets) {
		return Capacity{}
	}
	if r.misses(q, top, targets) {
		lo, hi := min(1, top), top
		for range 40 {
			if mid := (lo + hi) / 2; r.misses(q, mid, targets) {
				hi = mid
			} else {
				lo = mid
			}
		}
		top = lo
	}
	step, ttft, _ := r.meanField(q, top)
	return Capacity{Rate: float64(r.dep.DP) * top / (q.Output * step), Batch: top, Step: step, TTFT: ttft}
}

// largestBatch returns how many requests may decode at once. A running request holds,
// on average, its prompt and half of its output.
func (r *Roofline) largestBatch(q MeanRequest, mem Memory) float64 {
	need := mem.Layout.Blocks(max(1, int(math.Ceil(q.Prompt+q.Output/2))), r.args.MaxNumBatchedTokens)
	return max(0, min(float64(r.args.MaxNumSeqs), float64(mem.Blocks-1)/float64(need)))
}

// misses reports whether a batch of so many requests misses a target, or its prompts
// exceed the tokens of a step.
func (r *Roofline) misses(q MeanRequest, batch float64, targets Targets) bool {
	step, ttft, full := r.meanField(q, batch)
	return full || targets.TPOT > 0 && step > targets.TPOT || targets.TTFT > 0 && ttft > targets.TTFT
}

// meanField returns the mean step and the mean time to first token with so many
// requests decoding, and whether their prompts exceed the tokens of a step.
func (r *Roofline) meanField(q MeanRequest, batch float64) (step, ttft float64, full bool) {
	fresh := max(q.Prompt-q.Cached, 1)
	budget := max(1, float64(r.args.MaxNumBatchedTokens)-batch)
	parts := math.Ceil(fresh / budget)
	chunk := Chunk{Tokens: int(math.Ceil(fresh / parts)), Context: int(q.Cached + (parts-1)/2*fresh/parts)}
	perStep := batch / q.Output * parts // chunks of prompts in a mean step
	full = perStep*float64(chunk.Tokens) > budget

	below := int(min(perStep, 4096))
	a, b := r.mixed(q, batch, chunk, below), r.mixed(q, batch, chunk, below+1)
	step = a + (b-a)*(perStep-float64(below))
	// A request waits for half of the running step and, scheduled ahead, one more; then its
	// chunks run.
	ttft = r.Frontend(int(q.Prompt)) + 1.5*step + parts*r.mixed(q, batch, chunk, max(1, below))
	return step, ttft, full
}

// mixed returns the time of a step with so many decodes and chunks.
func (r *Roofline) mixed(q MeanRequest, batch float64, chunk Chunk, chunks int) float64 {
	n := max(1, int(math.Round(batch)))
	context := q.Prompt + q.Output/2
	b := Batch{Decodes: n, Context: int(float64(n) * context), Longest: int(context), Sampled: n + chunks}
	if w := r.Window(); w > 0 {
		b.Windowed = int(float64(n) * min(context, float64(w)))
	}
	for range chunks {
		b.Chunks = append(b.Chunks, chunk)
	}
	return r.Step(b).Total
}
