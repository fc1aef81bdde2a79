package sim

// admit moves requests from the waiting queue into the batch, strictly in order:
// the first one that does not fit ends the admission.
func (s *Scheduler) admit(b *Batch, budget, threshold int) {
	for s.waiting.len() > 0 && budget > 0 && len(s.running) < s.limits.ActiveSeqs {
		r := s.waiting.front()
		s.lookup(r)
		cached := len(s.hits) * s.limits.BlockTokens
		n := r.total() - cached
		if 0 < threshold && threshold < n {
			n = threshold
		}
		if s.limits.WholePrefill && n > budget {
			return
		}
		n = min(n, budget)
		if !s.allocate(r, cached+n) {
			// Losing cached blocks makes it no easier to take the whole sequence,
			// but it may make a first chunk cheaper.
			s.stuck = s.rules.FullSequenceGate || cached == 0
			return
		}
		s.waiting.popFront()
		s.running = append(s.running, r)
		b.Admitted = append(b.Admitted, Admission{ID: r.id, Cached: cached, Tokens: r.total(), Resumed: r.state == waiting && r.order > 0})
		s.orders++
		r.order, r.state, r.computed = s.orders, running, cached
		s.schedule(b, r, n)
		budget -= n
	}
}

// allocate gives a waiting sequence the cached blocks in s.hits and new ones up to
// token end. It returns false, and changes nothing, if the pool cannot spare
// them. Cached blocks that nobody uses count as free until they are adopted.
func (s *Scheduler) allocate(r *Sequence, end int) bool {
	size := s.limits.BlockTokens
	unused := 0
	for _, id := range s.hits {
		if s.pool.blocks[id].refs == 0 {
			unused++
		}
	}
	reserve := 0
	if len(s.running) > 0 {
		reserve = s.reserve
	}
	if s.rules.FullSequenceGate && s.withWindow(blocksFor(r.total(), size))-len(s.hits)+unused+reserve > s.pool.free {
		return false
	}
	need := max(0, s.withWindow(max(blocksFor(end, size), len(s.hits)))-len(s.hits))
	if need+unused+reserve > s.pool.free {
		return false
	}
	r.kv.blocks = s.spare.list()
	if s.windowCap > 0 {
		r.kv.window = s.spare.list()
	}
	for _, id := range s.hits {
		s.pool.adopt(id)
		r.kv.blocks = append(r.kv.blocks, id)
	}
	r.kv.room = len(s.hits) * size
	if s.limits.PrefixCaching {
		r.kv.registered, r.kv.nextFull = len(s.hits), r.kv.room+size
	}
	s.grow(r, end)
	if known := min(end, r.total()); known >= r.kv.nextFull {
		s.register(r, known)
	}
	return true
}
