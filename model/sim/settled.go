package sim

import (
	"slices"

	"planner/model"
)

// calm keeps the running requests that do nothing but decode: they stand at the
// head of the running list, and each gets one token in every step until its last.
// As long as the pool has a block for each of them that crosses a block edge, all
// that a step changes about them follows from the number of steps, so a step
// costs the same whatever their number, and a sequence's own fields are brought up
// to date only when somebody looks (see [Scheduler.refresh]).
//
// This is exact. The blocks that such sequences take are blank ones from the head
// of the queue, so it does not matter which of them gets which; nobody can be
// preempted before them, since victims come from the other end of the list; and
// the cache entries that they are about to make are made before anybody could
// find them.
type calm struct {
	off bool
	// members counts the sequences at the head of the running list that are
	// settled, or leaving.
	members int
	// ticks counts the steps in which settled sequences were scheduled, heard
	// those of which the output has arrived.
	ticks, heard int
	// stops orders the settled sequences by the tick of their last token.
	stops stopHeap
	// leaving holds those whose last token is under way.
	leaving []*Sequence
	// crossing counts the blocks that settled sequences need by the tick, modulo
	// the block size, at which they need them.
	crossing []int32
	// blank holds blocks that were taken for settled sequences and are not yet
	// in their lists.
	blank []int32
	// offsets is the sum over the settled sequences of computed tokens less
	// ticks, which stays the same while they decode; longest is the largest.
	offsets int
	longest int
	stale   bool // longest may have left
	// below counts settled sequences that stay below the window to their end,
	// belowOffsets is their part of offsets.
	below, belowOffsets int
	// counted is how many settled sequences are counted.
	counted int
	// latest is the newest batch; its output is still to come when the next
	// one is scheduled asynchronously.
	latest *Batch
}

// settling is what a sequence needs to be brought up to date.
type settling struct {
	member bool
	// joined, since and heard are tick counts: when the sequence settled, and
	// up to when its fields are right.
	joined, since, heard int
	// stop is the tick that brings the last token.
	stop   int
	offset int
	// step is the number of blocks it takes at a block edge.
	step int
	// below says that all of its contexts are below the window.
	below bool
}

// scheduleSettled lets sequences settle, serves all of them and returns what is
// left of the step's budget.
func (s *Scheduler) scheduleSettled(b *Batch) int {
	c := &s.calm
	budget := s.limits.BatchTokens
	if !c.off {
		s.settle()
	}
	if c.members > 0 {
		if s.rules.Async {
			for len(c.stops) > 0 && c.stops[0].settled.stop == c.ticks+1 {
				r := c.stops[0]
				s.refresh(r)
				s.leave(r)
				c.leaving = append(c.leaving, r)
			}
		}
		if need := s.edges(); need <= s.pool.free {
			s.tick(need)
			s.loadSettled(&b.Load)
			budget -= len(c.stops)
		} else {
			s.unsettleAll(b)
		}
	}
	c.latest = b
	return budget
}

// settle lets the unsettled sequences at the head of the list join that will only
// decode from now on and have a token known or under way. With few free blocks
// it is not worth while: the first one missing would undo it.
func (s *Scheduler) settle() {
	c := &s.calm
	// All settled sequences must fit into the budget of a step.
	if len(s.running) > min(s.pool.free, s.limits.BatchTokens) {
		return
	}
	for c.members < len(s.running) {
		r := s.running[c.members]
		if s.rules.Async {
			if r.pending != 1 || r.computed != r.total() || r.out+1 >= r.limit {
				return
			}
		} else if r.out == 0 || r.computed != r.total()-1 || r.sampled != s.step-1 {
			return
		}
		step, below := s.steady(r)
		if step == 0 {
			return
		}
		if n := len(r.path); n > 0 {
			reply := &s.pool.cache.nodes[r.path[n-1].node]
			if reply.writer != nil {
				return
			}
			reply.writer = r
		}
		r.settled = settling{member: true, joined: c.ticks, since: c.ticks, heard: c.heard,
			stop: c.ticks + r.limit - r.out, offset: r.computed - c.ticks, step: step, below: below}
		s.join(r)
	}
}

// steady returns how many blocks a sequence will take at each block edge, 0 if
// that is going to change, and whether its context stays below the window. A
// sequence that will pass the window can settle once it has.
func (s *Scheduler) steady(r *Sequence) (step int, below bool) {
	w := &s.limits.Window
	if w.Tokens == 0 {
		return 1, false
	}
	if r.computed+1 >= w.Tokens && len(r.kv.blocks) >= s.windowCap {
		return 1, false
	}
	if r.prompt+r.limit >= w.Tokens {
		return 0, false
	}
	if s.windowCap == 0 {
		return 1, true
	}
	if w.FullGroups != 1 {
		return 0, false
	}
	return 1 + w.Groups, true
}

// join adds a sequence to the sums over the settled ones.
func (s *Scheduler) join(r *Sequence) {
	c, m := &s.calm, &r.settled
	c.stops.push(r)
	c.crossing[s.phase(r)] += int32(m.step)
	if len(c.stops) == 1 || m.offset > c.longest {
		c.longest, c.stale = m.offset, false
	}
	c.offsets += m.offset
	if m.below {
		c.below++
		c.belowOffsets += m.offset
	}
	if r.counted {
		c.counted++
	}
	c.members++
}

// phase is the tick, modulo the block size, at which a settled sequence needs
// another block: when what it has computed fills its blocks.
func (s *Scheduler) phase(r *Sequence) int {
	size := s.limits.BlockTokens
	return ((-r.settled.offset)%size + size) % size
}

// edges is the number of blocks that settled sequences need in the next tick.
func (s *Scheduler) edges() int {
	return int(s.calm.crossing[s.calm.ticks%s.limits.BlockTokens])
}

// tick gives every settled sequence one token.
func (s *Scheduler) tick(need int) {
	for range need {
		s.calm.blank = append(s.calm.blank, s.pool.take())
	}
	s.calm.ticks++
}

// loadSettled adds the settled sequences to a batch's load, after their tick.
func (s *Scheduler) loadSettled(l *model.Batch) {
	c := &s.calm
	n := len(c.stops)
	if n == 0 {
		return
	}
	if c.stale {
		c.longest, c.stale = c.stops[0].settled.offset, false
		for _, r := range c.stops[1:] {
			c.longest = max(c.longest, r.settled.offset)
		}
	}
	l.Decodes += n
	l.Sampled += n
	l.Context += c.offsets + n*c.ticks
	l.Longest = max(l.Longest, c.longest+c.ticks)
	if w := s.limits.Window.Tokens; w > 0 {
		l.Windowed += c.belowOffsets + c.below*c.ticks + (n-c.below)*w
		l.WindowedGrowing += c.below
	}
}

// refresh brings a settled sequence's fields up to date.
func (s *Scheduler) refresh(r *Sequence) {
	c, m := &s.calm, &r.settled
	r.computed += c.ticks - m.since
	r.out += c.heard - m.heard
	m.since, m.heard = c.ticks, c.heard
	if s.rules.Async {
		r.pending = 1 + c.ticks - c.heard
	}
	for r.kv.room < r.computed {
		rest := len(c.blank) - m.step
		r.kv.blocks = append(r.kv.blocks, c.blank[rest])
		r.kv.window = append(r.kv.window, c.blank[rest+1:]...)
		c.blank = c.blank[:rest]
		r.kv.room += s.limits.BlockTokens
	}
	if c.ticks > m.joined {
		// What was known when the last step was scheduled is registered.
		if known := r.total() + c.ticks - c.heard - 1; known >= r.kv.nextFull {
			s.register(r, known)
		}
	}
}

// leave takes a sequence, which is up to date, off the settled ones. It keeps its
// place in the running list.
func (s *Scheduler) leave(r *Sequence) {
	c := &s.calm
	m := &r.settled
	c.stops.remove(r)
	c.crossing[s.phase(r)] -= int32(m.step)
	c.offsets -= m.offset
	c.stale = c.stale || m.offset == c.longest
	if m.below {
		c.below--
		c.belowOffsets -= m.offset
	}
	if r.counted {
		c.counted--
	}
	if n := len(r.path); n > 0 {
		s.pool.cache.nodes[r.path[n-1].node].writer = nil
	}
	r.settled.member = false
}

// unsettleAll makes ordinary sequences of the settled ones. With asynchronous
// scheduling their last samples are under way in the latest batch, which has not
// listed them until now unless they settled after it.
func (s *Scheduler) unsettleAll(b *Batch) {
	c := &s.calm
	unlisted := s.spare.items[:0]
	for _, r := range s.running[:c.members] {
		listed := false
		if r.settled.member {
			s.refresh(r)
			listed = r.settled.joined == c.ticks
			s.leave(r)
		}
		if r.counted && !listed {
			b.Unsettled = append(b.Unsettled, r.id)
		}
		if s.rules.Async && !listed {
			r.inFlight++
			unlisted = append(unlisted, item{r, 1, true})
		}
	}
	if len(unlisted) > 0 {
		c.latest.items = slices.Insert(c.latest.items, 0, unlisted...)
		clear(unlisted)
		s.spare.items = unlisted
	}
	c.members, c.leaving = 0, c.leaving[:0]
}

// outputSettled applies the oldest output to the settled sequences and ends those
// that have all their tokens.
func (s *Scheduler) outputSettled(e *Events) {
	c := &s.calm
	c.heard = c.ticks
	e.Steady = c.counted
	if !s.rules.Async {
		for len(c.stops) > 0 && c.stops[0].settled.stop == c.ticks {
			r := c.stops[0]
			s.refresh(r)
			s.leave(r)
			s.endSettled(e, r)
		}
		return
	}
	for _, r := range c.leaving {
		if r.counted {
			e.Steady++
		}
		r.out++
		r.pending--
		if r.computed >= r.kv.nextFull {
			s.register(r, r.computed)
		}
		s.endSettled(e, r)
	}
	c.leaving = c.leaving[:0]
}

// endSettled ends a sequence within the head of the running list.
func (s *Scheduler) endSettled(e *Events, r *Sequence) {
	e.Finished = append(e.Finished, r.id)
	s.release(r)
	s.removeSettled(r)
}

// removeSettled takes a sequence out of the head of the running list.
func (s *Scheduler) removeSettled(r *Sequence) {
	low, high := 0, s.calm.members
	for low < high {
		if mid := (low + high) / 2; s.running[mid].order < r.order {
			low = mid + 1
		} else {
			high = mid
		}
	}
	last := len(s.running) - 1
	copy(s.running[low:], s.running[low+1:])
	s.running[last] = nil
	s.running = s.running[:last]
	s.calm.members--
}
