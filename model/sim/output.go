package sim

import "slices"

// Events are what the output of a batch brought about. The slices are reused by
// the next call of [Scheduler.Output].
type Events struct {
	// First lists the requests whose first token arrived, Finished those whose
	// last one did, each in the batch's order.
	First, Finished []int
	// Tokens lists the counted requests that got a token behind their first
	// one, Steady is the number of further ones that also got one at the output
	// before.
	Tokens []int
	Steady int
}

// Output hands in the sampled tokens of the oldest batch that has not been handed
// in yet. Requests that have all their tokens end and free their blocks, one
// after another in the batch's order. The batch must not be used afterwards.
func (s *Scheduler) Output(b *Batch) *Events {
	e := &s.events
	e.First, e.Finished, e.Tokens, e.Steady = e.First[:0], e.Finished[:0], e.Tokens[:0], 0
	s.outputSettled(e)
	gone := false
	for i := range b.items {
		it := &b.items[i]
		r := it.r
		r.inFlight--
		if r.state == ended {
			if r.inFlight == 0 {
				s.spare.sequences = append(s.spare.sequences, r)
			}
			continue
		}
		if !it.samples {
			continue
		}
		if r.out == 0 {
			e.First = append(e.First, r.id)
		}
		if r.settled.member {
			// It settled after this batch was made, so its token is among the
			// steady ones, but may not be.
			if r.counted {
				e.Steady--
				if r.out > 0 {
					e.Tokens = append(e.Tokens, r.id)
				}
			}
			continue
		}
		r.out++
		if r.counted && r.out > 1 {
			e.Tokens = append(e.Tokens, r.id)
		}
		if s.rules.Async {
			r.pending--
			if known := r.computed - r.pending; r.state == running && known >= r.kv.nextFull {
				s.register(r, known)
			}
		}
		if r.out >= r.limit {
			e.Finished = append(e.Finished, r.id)
			gone = s.finish(r) || gone
		}
		it.r = nil
	}
	if gone {
		s.compact()
	}
	s.spare.batches = append(s.spare.batches, b)
	return e
}

// finish ends a sequence and reports whether the running list must be compacted.
func (s *Scheduler) finish(r *Sequence) bool {
	if r.state == waiting {
		s.waiting.remove(r)
		s.release(r)
		return false
	}
	s.release(r)
	return true
}

// compact removes ended sequences from the running list.
func (s *Scheduler) compact() {
	kept := s.running[:s.calm.members]
	for _, r := range s.running[s.calm.members:] {
		if r.state != ended {
			kept = append(kept, r)
		}
	}
	clear(s.running[len(kept):])
	s.running = kept
}

// Abort ends a request that its client gave up on; its blocks are free at once.
// Tokens of it that are under way are thrown away.
func (s *Scheduler) Abort(r *Sequence) {
	switch r.state {
	case waiting:
		s.waiting.remove(r)
		s.release(r)
	case running:
		if r.settled.member {
			s.refresh(r)
			s.leave(r)
		}
		c := &s.calm
		head := c.members > 0 && r.order <= s.running[c.members-1].order
		s.release(r)
		if !head {
			s.compact()
			return
		}
		s.removeSettled(r)
		c.leaving = slices.DeleteFunc(c.leaving, func(l *Sequence) bool { return l == r })
	}
}
