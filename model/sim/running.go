package sim

import "slices"

// Schedule makes the next batch: first every running request in the order of
// admission gets what it lacks, as far as the budget goes; then, unless somebody
// had to be preempted, waiting requests are admitted. The batch may be empty. It
// stays valid until it is handed to [Scheduler.Output].
func (s *Scheduler) Schedule() *Batch {
	b := s.newBatch()
	threshold := s.threshold()
	budget := s.scheduleSettled(b)
	budget = s.scheduleRunning(b, budget, threshold)
	if len(b.Preempted) == 0 {
		s.admit(b, budget, threshold)
	}
	s.step++
	return b
}

// threshold is the most tokens that one request gets in this step, 0 for no such
// limit.
func (s *Scheduler) threshold() int {
	t := s.limits.LongPrefill
	if t <= 0 {
		return 0
	}
	requests := len(s.running) + s.waiting.len()
	if s.rules.LoneUncapped && requests < 2 {
		return 0
	}
	if s.limits.AdaptiveLongPrefill && requests > 0 {
		t = max(t, s.limits.BatchTokens/requests)
	}
	return t
}

// scheduleRunning serves the running requests that are not settled and returns
// what is left of the budget. A request whose last token is already scheduled is
// passed over; it keeps its place and its blocks until the token is known.
func (s *Scheduler) scheduleRunning(b *Batch, budget, threshold int) int {
	for i := s.calm.members; i < len(s.running) && budget > 0; i++ {
		r := s.running[i]
		if r.pending > 0 && r.out+r.pending >= r.limit {
			continue
		}
		n := r.total() + r.pending - r.computed
		if 0 < threshold && threshold < n {
			n = threshold
		}
		n = min(n, budget, s.limits.ModelLen-1-r.computed)
		if n <= 0 {
			continue
		}
		if !s.makeRoom(b, r, n) {
			break
		}
		s.schedule(b, r, n)
		budget -= n
	}
	return budget
}

// makeRoom gives a running request the blocks for n more tokens, and preempts
// from the end of the running list until there are enough. It returns false if
// the request itself had to go.
func (s *Scheduler) makeRoom(b *Batch, r *Sequence, n int) bool {
	end := r.computed + n
	need := 0
	if end > r.kv.room {
		need = s.withWindow(blocksFor(end, s.limits.BlockTokens)) - len(r.kv.blocks) - len(r.kv.window)
	}
	for need > s.pool.free {
		last := len(s.running) - 1
		v := s.running[last]
		s.running[last] = nil
		s.running = s.running[:last]
		s.publish(v)
		s.freeBlocks(v)
		v.computed, v.state = 0, waiting
		s.waiting.pushFront(v)
		b.Preempted = append(b.Preempted, v.id)
		if v == r {
			return false
		}
	}
	s.grow(r, end)
	if known := min(end, r.total()); known >= r.kv.nextFull {
		s.register(r, known)
	}
	return true
}

// grow hands blocks to a sequence until they hold tokens up to end.
func (s *Scheduler) grow(r *Sequence, end int) {
	if end <= r.kv.room {
		return
	}
	r.kv.blocks = slices.Grow(r.kv.blocks, blocksFor(end, s.limits.BlockTokens)-len(r.kv.blocks))
	for ; r.kv.room < end; r.kv.room += s.limits.BlockTokens {
		r.kv.blocks = append(r.kv.blocks, s.pool.take())
	}
	if s.windowCap > 0 {
		for need := s.withWindow(len(r.kv.blocks)) - len(r.kv.blocks); len(r.kv.window) < need; {
			r.kv.window = append(r.kv.window, s.pool.take())
		}
	}
}
