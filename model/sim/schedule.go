package sim

import "planner/model"

// stepBatch is what one step computes.
type stepBatch struct {
	items []batchItem
	// preempted lists the requests that lost their blocks when the batch was made, admitted those
	// that left the waiting queue.
	preempted []int
	admitted  []*sequence
	// unsteady lists counted requests that got a token in every output so far and may miss the next
	// ones.
	unsteady []int
	// load is what the batch's time depends on.
	load model.Batch
}

// batchItem is one sequence of a batch. It keeps its own copies of samples and order because a
// sequence that was preempted and resumed since may be in another state when the batch's output
// arrives.
type batchItem struct {
	r       *sequence
	tokens  int
	samples bool
	drafted int // proposed ones among tokens
	order   int // of the admission that the item belongs to
}

// empty reports whether the batch computes nothing.
func (b *stepBatch) empty() bool { return b.load.Decodes == 0 && len(b.load.Chunks) == 0 }

// schedule makes the next batch: first every running request, in order of admission, gets the
// tokens it still has to compute, within the budget; then, unless a request was preempted, waiting
// ones are admitted. The batch may be empty. It stays valid until it is handed to
// [scheduler.output].
func (s *scheduler) schedule() *stepBatch {
	b := s.newBatch()
	s.step++
	threshold := s.threshold()
	if s.config.MicroBatch > 0 {
		s.scheduleSlots(b)
	} else {
		budget := s.scheduleSteady(b)
		budget = s.scheduleRunning(b, budget, threshold)
		if len(b.preempted) == 0 {
			s.admit(b, budget, threshold)
		}
	}
	b.load.Adapters = len(s.slots.running)
	return b
}

func (s *scheduler) newBatch() *stepBatch {
	var b *stepBatch
	if n := len(s.spare.batches); n > 0 {
		b = s.spare.batches[n-1]
		s.spare.batches = s.spare.batches[:n-1]
	} else {
		b = new(stepBatch)
	}
	b.items, b.preempted, b.admitted = b.items[:0], b.preempted[:0], b.admitted[:0]
	b.unsteady = b.unsteady[:0]
	b.load = model.Batch{Chunks: b.load.Chunks[:0]}
	return b
}

// put adds tokens of a sequence, drafted of them proposed, to the batch. From then on the sequence
// counts them as computed.
func (s *scheduler) put(b *stepBatch, r *sequence, tokens, drafted int) {
	if tokens == 1+drafted {
		b.load.Drafted += drafted
		s.addDecode(&b.load, r.computed+tokens)
	} else {
		b.load.Chunks = append(b.load.Chunks, model.Chunk{Tokens: tokens, Context: r.computed})
	}
	r.computed += tokens
	samples := r.computed == r.total()+r.pending+drafted
	if samples {
		b.load.Sampled += 1 + drafted
		r.sampled = s.step
		if s.config.Rules.Async {
			r.pending += 1 + drafted
			r.drafted += drafted
		}
	}
	r.inFlight++
	b.items = append(b.items, batchItem{r, tokens, samples, drafted, r.order})
}

// addDecode adds a decoding request with its context to a step.
func (s *scheduler) addDecode(l *model.Batch, context int) {
	l.Decodes++
	l.Context += context
	l.Longest = max(l.Longest, context)
	w := s.config.Layout.Window
	l.Windowed += model.Windowed(context, w, s.config.Chunked)
	if context < w || s.config.Chunked {
		l.WindowedGrowing++
	}
}

// threshold is the most tokens that one request gets in this step, 0 for no such
// limit.
func (s *scheduler) threshold() int {
	if s.config.Rules.LoneUncapped && len(s.running)+s.waiting.len() < 2 {
		return 0
	}
	return s.config.LongPrefill
}

// scheduleRunning serves the running requests that are not steady and returns
// what is left of the budget. A request whose last token is already scheduled is
// passed over; it keeps its place and its blocks until the token is known. With proposed
// tokens that is known of one token of each step.
func (s *scheduler) scheduleRunning(b *stepBatch, budget, threshold int) int {
	for i := s.steady.members; i < len(s.running) && budget > 0; i++ {
		r := s.running[i]
		if r.pending > 0 && r.out+r.pending-r.drafted >= r.limit {
			continue
		}
		n := r.total() + r.pending - r.computed
		drafted := 0
		if n == 1 && r.out+r.pending > 0 { // not the rest of a prompt
			drafted = s.config.Speculation.Tokens
		}
		n += drafted
		if 0 < threshold && threshold < n {
			n = threshold
		}
		n = s.aligned(r, r.computed, min(n, budget, s.config.ModelLen-1-r.computed))
		if n <= 0 {
			continue
		}
		if !s.makeRoom(b, r, n) {
			break
		}
		s.put(b, r, n, min(drafted, n-1))
		budget -= n
	}
	return budget
}

// aligned cuts a sequence's next tokens, n from start, so that they end where a state is to be kept, as
// vLLM's _mamba_block_aligned_split does (0.33): at the end of a block, of the last whole one before the
// prompt's last token unless kernels write that out, and of a prefix that others have. It returns 0 where they
// reach no such end.
func (s *scheduler) aligned(r *sequence, start, n int) int {
	size, end, prefill := s.blockTokens, start+n, max(r.prompt, r.total()-1)
	if !s.config.AlignedStates || start >= prefill {
		return n
	}
	longest := s.config.BatchTokens
	if t := s.config.LongPrefill; t > 0 {
		longest = min(longest, t)
	}
	next, last := start, (r.total()-1)/size*size
	if start%size != 0 {
		next = (start/size + 1) * size
	}
	if written := (prefill - 1) / size * size; s.config.InnerStates && end >= prefill && start%size == 0 && start+size <= written {
		last = 0
	}
	if whole := end / size * size; end < prefill && (whole > start || size <= longest) {
		end = whole
	}
	for _, stop := range [...]int{next, last, r.junction} {
		if start < stop {
			end = min(end, stop)
		}
	}
	return max(end-start, 0)
}

// makeRoom gives a running request the blocks for n more tokens and preempts from the end of the
// running list until there are enough. It returns false if the request itself was preempted.
func (s *scheduler) makeRoom(b *stepBatch, r *sequence, n int) bool {
	end := s.ahead(r.computed + n)
	need := 0
	if end > r.kv.room {
		need = s.withWindow(blocksFor(end, s.blockTokens)) - s.withWindow(s.blocks(r))
	}
	for need > s.pool.free {
		if s.preempt(b); r.state != running {
			return false
		}
	}
	if end > r.kv.room {
		s.extend(r, end)
	}
	s.fill(r, r.computed+n)
	return true
}

// preempt takes the blocks of the sequence that was admitted last.
func (s *scheduler) preempt(b *stepBatch) {
	s.tellApart()
	last := len(s.running) - 1
	if s.steady.members > last {
		s.expel(b)
	}
	v := s.running[last]
	s.running[last] = nil
	s.running = s.running[:last]
	s.freeBlocks(v)
	v.computed, v.state = 0, waiting
	s.waiting.pushFront(v)
	b.preempted = append(b.preempted, v.id)
}

// fill registers the blocks that the known tokens up to end will fill.
func (s *scheduler) fill(r *sequence, end int) {
	if known := min(end, r.total()); known >= r.kv.nextFull {
		s.register(r, known)
	}
}

// ahead returns the token up to which a running request that computes up to end gets blocks: the
// draft model needs some for the tokens that it proposes.
func (s *scheduler) ahead(end int) int {
	if s.lookahead > 0 {
		return max(end, min(end+s.lookahead, s.config.ModelLen))
	}
	return end
}

// extend gives a sequence blocks until they hold the tokens up to end.
func (s *scheduler) extend(r *sequence, end int) {
	n := blocksFor(end, s.blockTokens)
	s.pool.take(s.withWindow(n) - s.withWindow(s.blocks(r)))
	r.kv.room = n * s.blockTokens
}

// admit moves requests from the waiting queue into the batch, strictly in order:
// the first one that does not fit ends the admission. Those whose adapter has no slot are
// passed over.
func (s *scheduler) admit(b *stepBatch, budget, threshold int) {
	var passed []*sequence // whose adapters have no slot now
	for s.waiting.len() > 0 && budget > 0 && len(s.running) < s.config.Seqs {
		r := s.waiting.front()
		if !s.slots.takes(r.adapter) {
			s.waiting.popFront()
			passed = append(passed, r)
			continue
		}
		if !s.lookup(r) {
			break
		}
		cached := int(s.pool.count(s.hits)) * s.blockTokens
		n := r.total() - cached
		if 0 < threshold && threshold < n {
			n = threshold
		}
		if s.config.WholePrefill && n > budget {
			break
		}
		if n = s.aligned(r, cached, min(n, budget)); n == 0 {
			break
		}
		if !s.allocate(r, cached, cached+n) {
			// Losing cached blocks makes the whole sequence no easier to fit, but it may make the
			// first chunk cheaper.
			s.stuck = s.config.Rules.FullSequenceGate || cached == 0
			break
		}
		s.waiting.popFront()
		s.running = append(s.running, r)
		b.admitted = append(b.admitted, r)
		s.begin(r, cached)
		if s.slots.enter(r.adapter) {
			b.load.Loads++
		}
		s.put(b, r, n, 0)
		budget -= n
	}
	s.stuck = s.stuck || len(passed) > 0 && s.waiting.len() == 0
	for i := len(passed) - 1; i >= 0; i-- {
		s.waiting.pushFront(passed[i])
	}
}

// begin notes that a sequence runs from now on, from its first cached tokens.
func (s *scheduler) begin(r *sequence, cached int) {
	s.orders++
	r.cached, r.resumed = cached, r.order > 0
	r.order, r.state, r.computed = s.orders, running, cached
}

// allocate gives a waiting sequence the blocks in s.hits, which hold its first cached tokens, and
// new ones up to token end. It returns false, and changes nothing, if the pool cannot spare them.
// Cached blocks without a user count as free until they are adopted.
func (s *scheduler) allocate(r *sequence, cached, end int) bool {
	size := s.blockTokens
	hits, unused := cached/size, 0
	for _, id := range s.hits {
		if x := &s.pool.extents[id]; x.refs == 0 {
			unused += x.blocks()
		}
	}
	reserve := 0
	if len(s.running) > 0 {
		reserve = s.reserve
	}
	if s.config.Rules.FullSequenceGate && s.withWindow(blocksFor(r.total(), size))-hits+unused+reserve > s.pool.free {
		return false
	}
	need := s.withWindow(blocksFor(end, size)) - hits
	if need+unused+reserve > s.pool.free {
		return false
	}
	for _, id := range s.hits {
		s.pool.adopt(id)
	}
	if s.config.AlignedStates && cached > 0 {
		s.pool.useState(s.lastState(r, hits))
	}
	r.kv.extents = append(r.kv.extents, s.hits...)
	s.pool.take(need)
	r.kv.room = blocksFor(end, size) * size
	if s.config.PrefixCaching {
		r.kv.nextFull = cached + size
	}
	s.fill(r, end)
	return true
}

// queue holds the waiting sequences, first come, first served; preempted ones return to the front.
type queue struct {
	items []*sequence
	head  int // items[:head] have been taken
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) front() *sequence { return q.items[q.head] }

func (q *queue) pushBack(r *sequence) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

func (q *queue) pushFront(r *sequence) {
	if q.head == 0 {
		// Make room for more than one: a step may preempt several.
		n := len(q.items)
		gap := n/8 + 8
		q.items = append(q.items, make([]*sequence, gap)...)
		copy(q.items[gap:], q.items[:n])
		q.head = gap
	}
	q.head--
	q.items[q.head] = r
}

func (q *queue) popFront() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// remove takes a sequence out of the middle. Clients that give up have usually waited longest, so
// the search starts at the front and shifts the sequences that it has passed.
func (q *queue) remove(r *sequence) {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i] == r {
			copy(q.items[q.head+1:i+1], q.items[q.head:i])
			q.popFront()
			return
		}
	}
}
