package sim

// Batch is what one step computes.
type Batch struct {
	items []item
	// Preempted lists the requests that lost their blocks when the batch was
	// made, Admitted those that left the waiting queue.
	Preempted []int
	Admitted  []Admission
	Load      Load
}

// item is one sequence of a batch. The sample belongs to the batch and not to the
// sequence: a sequence that was preempted and resumed since may be in another
// state when the batch's output arrives.
type item struct {
	r       *sequence
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

// Load is what decides how long a batch runs.
type Load struct {
	// Decodes counts sequences with a single token to compute, Context the
	// tokens that they attend to in sum, themselves included, and Longest the
	// largest of these contexts.
	Decodes, Context, Longest int
	// Chunks are the pieces of prompt.
	Chunks []Chunk
	// Samples counts the sequences that produce a token.
	Samples int
}

// Chunk is a piece of a prompt: Tokens behind Context tokens whose KV is there.
type Chunk struct{ Tokens, Context int }

// Empty reports whether the batch computes nothing.
func (b *Batch) Empty() bool { return b.Load.Decodes == 0 && len(b.Load.Chunks) == 0 }

func (s *Scheduler) newBatch() *Batch {
	var b *Batch
	if n := len(s.batches); n > 0 {
		b = s.batches[n-1]
		s.batches = s.batches[:n-1]
	} else {
		b = new(Batch)
	}
	b.items, b.Preempted, b.Admitted = b.items[:0], b.Preempted[:0], b.Admitted[:0]
	b.Load = Load{Chunks: b.Load.Chunks[:0]}
	return b
}

// schedule puts tokens of a sequence into the batch, which computes them before
// anything else looks at the sequence.
func (s *Scheduler) schedule(b *Batch, r *sequence, tokens int) {
	if tokens == 1 {
		b.Load.Decodes++
		b.Load.Context += r.computed + 1
		b.Load.Longest = max(b.Load.Longest, r.computed+1)
	} else {
		b.Load.Chunks = append(b.Load.Chunks, Chunk{tokens, r.computed})
	}
	r.computed += tokens
	samples := r.computed == r.total()+r.pending
	if samples {
		b.Load.Samples++
		if s.rules.Async {
			r.pending++
		}
	}
	r.inFlight++
	b.items = append(b.items, item{r, tokens, samples})
}
