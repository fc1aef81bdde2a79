package sim

import "planner/model"

// Batch is what one step computes.
type Batch struct {
	items []item
	// Preempted lists the requests that lost their blocks when the batch was
	// made, Admitted those that left the waiting queue.
	Preempted []int
	Admitted  []Admission
	// Unsettled lists counted requests that got a token in every output until
	// now and may not go on to.
	Unsettled []int
	// Load is what decides how long the batch runs.
	Load model.Batch
}

// item is one sequence of a batch. The sample belongs to the batch and not to the
// sequence: a sequence that was preempted and resumed since may be in another
// state when the batch's output arrives.
type item struct {
	r       *Sequence
	tokens  int
	samples bool
}

// Admission is a request that was given blocks.
type Admission struct {
	ID int
	// Cached counts the prompt tokens that the prefix cache already held.
	Cached int
	// Tokens counts all tokens that were looked up: the prompt, and what was
	// generated before a preemption.
	Tokens int
	// Resumed reports whether the request had been preempted.
	Resumed bool
}

// Empty reports whether the batch computes nothing.
func (b *Batch) Empty() bool { return b.Load.Decodes == 0 && len(b.Load.Chunks) == 0 }

func (s *Scheduler) newBatch() *Batch {
	var b *Batch
	if n := len(s.spare.batches); n > 0 {
		b = s.spare.batches[n-1]
		s.spare.batches = s.spare.batches[:n-1]
	} else {
		b = new(Batch)
	}
	b.items, b.Preempted, b.Admitted = b.items[:0], b.Preempted[:0], b.Admitted[:0]
	b.Unsettled = b.Unsettled[:0]
	b.Load = model.Batch{Chunks: b.Load.Chunks[:0]}
	return b
}

// discard takes back a batch that computes nothing.
func (s *Scheduler) discard(b *Batch) { s.spare.batches = append(s.spare.batches, b) }

// schedule puts tokens of a sequence into the batch, which computes them before
// anything else looks at the sequence.
func (s *Scheduler) schedule(b *Batch, r *Sequence, tokens int) {
	if tokens == 1 {
		b.Load.Decodes++
		context := r.computed + 1
		b.Load.Context += context
		b.Load.Longest = max(b.Load.Longest, context)
		if w := s.limits.Window.Tokens; context < w {
			b.Load.Windowed += context
			b.Load.WindowedGrowing++
		} else {
			b.Load.Windowed += w
		}
	} else {
		b.Load.Chunks = append(b.Load.Chunks, model.Chunk{Tokens: tokens, Context: r.computed})
	}
	r.computed += tokens
	samples := r.computed == r.total()+r.pending
	if samples {
		b.Load.Sampled++
		r.sampled = s.step
		if s.rules.Async {
			r.pending++
		}
	}
	r.inFlight++
	b.items = append(b.items, item{r, tokens, samples})
}
