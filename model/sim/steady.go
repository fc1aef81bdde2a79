package sim

import (
	"math"
	"slices"

	"planner/internal/heap"
	"planner/model"
)

// steadyGroup holds the running requests that only decode. They stand at the head of the running
// list, and each gets one token per step until its last. How a step changes them follows from the
// number of steps, so a step costs the same whatever their number, unless the pool lacks a block
// for one that crosses a block edge; a sequence's own fields are updated only when they are needed
// (see [scheduler.refresh]).
//
// This is exact. Unregistered blocks are only counted, so it does not matter which sequence takes
// which; none can be preempted before the requests behind it, since victims come from the end of
// the list; and the cache entries that they owe are made before a lookup could find them. Only states that
// they keep ([Config.AlignedStates]) are forgotten a little later than they would be.
type steadyGroup struct {
	off bool
	// members counts the sequences at the head of the running list that are steady or whose last
	// token is in flight; the latter are in ending.
	members int
	ending  []*sequence
	// steps counts the steps in which steady sequences were scheduled, outputs those whose output
	// has arrived.
	steps, outputs int
	// ends has the step of each steady sequence's last token, ties in order of admission.
	ends heap.Heap[futureEvent]
	// due[i] is the number of blocks that steady sequences need in every step that is i modulo the
	// block size.
	due []int32
	// offsets is the sum over the steady sequences of computed tokens minus steps, which is
	// constant while they decode; longest is the largest term.
	offsets int
	longest int
	stale   bool // the sequence that set longest may have left
	// below counts the steady sequences whose context is below the window, belowOffsets is their
	// part of offsets. passes has the steps in which they reach the window and then those after
	// which they take no more blocks for it; if it is chunked those in which they begin a chunk.
	below, belowOffsets int
	passes              heap.Heap[futureEvent]
	// counted is the number of steady sequences that are counted.
	counted int
	// latest is the newest batch; with asynchronous scheduling its output is still outstanding when
	// the next one is scheduled.
	latest *stepBatch
}

// membership is what refreshing a steady sequence needs.
type membership struct {
	member bool
	// joined is the step after which the sequence became steady; its fields are current as of steps
	// and outputs.
	joined, steps, outputs int
	offset                 int
	// blocks is the number of blocks that it takes at each block edge.
	blocks int
	// below says that its context is below the window, or the window is chunked; behind counts the
	// tokens of past chunks.
	below  bool
	behind int
}

// scheduleSteady lets sequences become steady, serves all that are and returns the rest of the
// step's token budget.
func (s *scheduler) scheduleSteady(b *stepBatch) int {
	c := &s.steady
	budget := s.config.BatchTokens
	if !c.off {
		s.joinSteady()
	}
	if c.members > 0 {
		if s.config.Rules.Async {
			for c.endsIn(c.steps + 1) {
				c.ending = append(c.ending, s.takeEnding())
			}
		}
		if need := s.steadyDue(); need <= s.pool.free {
			s.stepSteady(1, need)
		} else {
			s.stepShort(b)
		}
		s.addSteadyLoad(&b.load)
		budget -= len(c.ends)
	}
	c.latest = b
	return budget
}

// endsIn reports whether a steady sequence gets its last token in a step.
func (c *steadyGroup) endsIn(step int) bool {
	return len(c.ends) > 0 && c.ends[0].at == float64(step)
}

// takeEnding refreshes the steady sequence that ends next and removes it from the steady ones.
func (s *scheduler) takeEnding() *sequence {
	r := s.running[s.steadyIndex(s.steady.ends[0].id)]
	s.refresh(r)
	s.leave(r)
	return r
}

// joinSteady makes the next sequences of the running list steady, in order, as long as they will
// only decode from now on and have a token known or in flight.
func (s *scheduler) joinSteady() {
	c := &s.steady
	// All steady sequences must fit into a step's token budget.
	if len(s.running) > s.config.BatchTokens {
		return
	}
	for c.members < len(s.running) {
		r := s.running[c.members]
		if s.config.Rules.Async {
			if r.pending != 1 || r.computed != r.total() || r.out+1 >= r.limit {
				return
			}
		} else if r.out == 0 || r.computed != r.total()-1 || r.sampled != s.step-1 {
			return
		}
		blocks, below := s.steadyBlocks(r)
		if blocks == 0 {
			return
		}
		if n := len(r.path); n > 0 {
			if n > 1 && r.path[n-2].end >= r.computed {
				return // it still generates text that is known and that nodes without a writer stand for
			}
			reply := &s.pool.cache.nodes[r.path[n-1].node]
			if reply.writer != nil {
				return
			}
			reply.writer = r
		}
		r.steady = membership{member: true, joined: c.steps, steps: c.steps, outputs: c.outputs,
			offset: r.computed - c.steps, blocks: blocks, below: below}
		if s.config.Chunked {
			r.steady.behind = r.computed / s.config.Layout.Window * s.config.Layout.Window
		}
		c.ends.Push(futureEvent{float64(c.steps + r.limit - r.out), r.order})
		s.join(r)
	}
}

// steadyBlocks returns how many blocks a sequence takes at each block edge until it has all that
// its windows need, and whether its context is below the window. blocks is 0 where that number
// differs from edge to edge.
func (s *scheduler) steadyBlocks(r *sequence) (blocks int, below bool) {
	l := &s.config.Layout
	below = r.computed+1 < l.Window || s.config.Chunked
	switch {
	case s.blocks(r) >= s.windowCap:
		return 1, below
	case l.FullGroups != 1:
		return 0, below
	}
	return 1 + l.WindowGroups, below
}

// join adds a sequence to the sums over the steady ones.
func (s *scheduler) join(r *sequence) {
	c, m := &s.steady, &r.steady
	c.due[s.edge(r)] += int32(m.blocks)
	if len(c.ends) == 1 || m.offset > c.longest {
		c.longest, c.stale = m.offset, false
	}
	c.offsets += m.offset
	if m.below {
		c.below++
		c.belowOffsets += m.offset - m.behind
	}
	s.pushPass(r)
	if r.counted {
		c.counted++
	}
	c.members++
}

// pushPass schedules when a sequence next reaches the window or, after that, has the last block
// that it takes for it.
func (s *scheduler) pushPass(r *sequence) {
	switch m := &r.steady; {
	case m.below && s.config.Chunked && m.blocks == 1:
		s.steady.passes.Push(futureEvent{float64(s.config.Layout.Window + m.behind + 1 - m.offset), r.order})
	case m.below && !s.config.Chunked:
		s.steady.passes.Push(futureEvent{float64(s.config.Layout.Window - m.offset), r.order})
	case m.blocks > 1:
		s.steady.passes.Push(futureEvent{float64((s.windowCap-1)*s.blockTokens + 2 - m.offset), r.order})
	}
}

// edge returns the step, modulo the block size, in which a steady sequence needs another block
// because its computed tokens fill those it has.
func (s *scheduler) edge(r *sequence) int {
	size := s.blockTokens
	return ((-r.steady.offset)%size + size) % size
}

// steadyDue returns how many blocks the steady sequences need in the next step.
func (s *scheduler) steadyDue() int {
	return int(s.steady.due[s.steady.steps%s.blockTokens])
}

// steadySteps returns how many of the next steps, at most so many, the pool has blocks for, and the
// blocks that they take. These are the same in every cycle of steps as long as a block.
func (s *scheduler) steadySteps(most int) (steps, blocks int) {
	cycle := 0
	for _, need := range s.steady.due {
		cycle += int(need)
	}
	cycles := min(most/s.blockTokens, s.pool.free/max(cycle, 1))
	for steps, blocks = cycles*s.blockTokens, cycles*cycle; steps < most; steps++ {
		need := int(s.steady.due[(s.steady.steps+steps)%s.blockTokens])
		if blocks+need > s.pool.free {
			break
		}
		blocks += need
	}
	return steps, blocks
}

// stepSteady gives every steady sequence a token in each of some steps, which take blocks in all.
func (s *scheduler) stepSteady(steps, blocks int) {
	s.pool.take(blocks)
	s.steady.steps += steps
}

// stepShort is [scheduler.stepSteady] for a pool that lacks blocks: sequences that need some get
// them in order, and others are preempted for them.
func (s *scheduler) stepShort(b *stepBatch) {
	c := &s.steady
	for i := 0; i < c.members; i++ {
		r := s.running[i]
		if !r.steady.member || (r.steady.offset+c.steps)%s.blockTokens != 0 {
			continue
		}
		for r.state == running && r.steady.blocks > s.pool.free {
			s.preempt(b)
		}
		if r.state == running {
			s.pool.take(r.steady.blocks)
		}
	}
	c.steps++
}

// passWindow notes which steady sequences have, by a step, reached the window or got all blocks for
// it.
func (s *scheduler) passWindow(step int) {
	c := &s.steady
	for len(c.passes) > 0 && c.passes[0].at <= float64(step) {
		r := s.running[s.steadyIndex(c.passes[0].id)]
		m := &r.steady
		c.passes.Remove(0)
		switch {
		case m.below && s.config.Chunked && m.blocks == 1:
			c.belowOffsets -= s.config.Layout.Window
			m.behind += s.config.Layout.Window
			s.pushPass(r)
			continue
		case m.below && !s.config.Chunked:
			c.below--
			c.belowOffsets -= m.offset
			m.below = false
			s.pushPass(r)
			continue
		}
		s.refresh(r)
		c.due[s.edge(r)] -= int32(m.blocks - 1)
		m.blocks = 1
		if s.config.Chunked {
			s.pushPass(r)
		}
	}
}

// addSteadyLoad adds the steady sequences to a batch's load, after their step.
func (s *scheduler) addSteadyLoad(l *model.Batch) {
	c := &s.steady
	n := len(c.ends)
	if n == 0 {
		return
	}
	if c.stale {
		c.longest, c.stale = math.MinInt, false
		for _, r := range s.running[:c.members] {
			if r.steady.member {
				c.longest = max(c.longest, r.steady.offset)
			}
		}
	}
	s.passWindow(c.steps)
	l.Decodes += n
	l.Sampled += n
	l.Context += c.offsets + n*c.steps
	l.Longest = max(l.Longest, c.longest+c.steps)
	if w := s.config.Layout.Window; w > 0 {
		l.Windowed += c.belowOffsets + c.below*c.steps + (n-c.below)*w
		l.WindowedGrowing += c.below
	}
}

// refresh updates the fields of a steady sequence.
func (s *scheduler) refresh(r *sequence) {
	c, m := &s.steady, &r.steady
	r.computed += c.steps - m.steps
	r.out += c.outputs - m.outputs
	m.steps, m.outputs = c.steps, c.outputs
	if s.config.Rules.Async {
		r.pending = 1 + c.steps - c.outputs
	}
	if r.kv.room < r.computed {
		r.kv.room = blocksFor(r.computed, s.blockTokens) * s.blockTokens
	}
	if c.steps > m.joined {
		// Register what was known when the last step was scheduled.
		if known := r.total() + c.steps - c.outputs - 1; known >= r.kv.nextFull {
			s.register(r, known)
		}
	}
}

// leave removes a refreshed sequence from the steady ones. It keeps its place in the running list.
func (s *scheduler) leave(r *sequence) {
	c := &s.steady
	m := &r.steady
	// Unless its client gave up it is the next to end, so the search is short.
	c.ends.Remove(slices.IndexFunc(c.ends, func(e futureEvent) bool { return e.id == r.order }))
	c.due[s.edge(r)] -= int32(m.blocks)
	c.offsets -= m.offset
	c.stale = c.stale || m.offset == c.longest
	if m.below {
		c.below--
		c.belowOffsets -= m.offset - m.behind
	}
	if m.below || m.blocks > 1 {
		c.passes.Remove(slices.IndexFunc(c.passes, func(e futureEvent) bool { return e.id == r.order }))
	}
	if r.counted {
		c.counted--
	}
	if n := len(r.path); n > 0 {
		s.pool.cache.nodes[r.path[n-1].node].writer = nil
	}
	r.steady.member = false
}

// expel makes the last member of the group, steady or ending, an ordinary sequence. With
// asynchronous scheduling its last sample is in flight in the latest batch, which does not list it
// yet unless it became steady after that batch.
func (s *scheduler) expel(b *stepBatch) {
	c := &s.steady
	c.members--
	r := s.running[c.members]
	listed := false
	if r.steady.member {
		s.refresh(r)
		listed = r.steady.joined == c.steps
		s.leave(r)
	} else {
		c.ending = slices.DeleteFunc(c.ending, func(l *sequence) bool { return l == r })
	}
	if listed {
		return
	}
	if r.counted {
		b.unsteady = append(b.unsteady, r.id)
	}
	if s.config.Rules.Async {
		r.inFlight++
		c.latest.items = slices.Insert(c.latest.items, 0, batchItem{r: r, tokens: 1, samples: true})
	}
}

// outputSteady applies the oldest output to the steady sequences and ends those that now have all
// their tokens.
func (s *scheduler) outputSteady(e *stepOutput) {
	c := &s.steady
	c.outputs = c.steps
	e.steady = c.counted
	if !s.config.Rules.Async {
		for c.endsIn(c.steps) {
			s.endSteady(e, s.takeEnding())
		}
		return
	}
	for _, r := range c.ending {
		if r.counted {
			e.steady++
		}
		r.out++
		r.pending--
		if r.computed >= r.kv.nextFull {
			s.register(r, r.computed)
		}
		s.endSteady(e, r)
	}
	c.ending = c.ending[:0]
}

// endSteady ends a sequence of the group.
func (s *scheduler) endSteady(e *stepOutput, r *sequence) {
	e.finished = append(e.finished, r.id)
	s.release(r)
	s.removeSteady(r)
}

// removeSteady takes a sequence of the group out of the running list.
func (s *scheduler) removeSteady(r *sequence) {
	i := s.steadyIndex(r.order)
	last := len(s.running) - 1
	copy(s.running[i:], s.running[i+1:])
	s.running[last] = nil
	s.running = s.running[:last]
	s.steady.members--
}

// steadyIndex finds a sequence of the group by its order of admission.
func (s *scheduler) steadyIndex(order int) int {
	i, _ := slices.BinarySearchFunc(s.running[:s.steady.members], order, func(r *sequence, order int) int { return r.order - order })
	return i
}
