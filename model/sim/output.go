package sim

import "slices"

// stepOutput is the effect of one batch's output. Its slices are reused by the next call of
// [scheduler.output].
type stepOutput struct {
	// first lists the requests whose first token arrived, finished those whose last one did, each
	// in the batch's order.
	first, finished []int
	// tokens lists the counted requests once per token after their first one. steady is the number
	// of further counted requests that got one in this output and in the one before.
	tokens []int
	steady int
}

// output hands in the sampled tokens of the oldest outstanding batch. Requests that have all their
// tokens end and free their blocks, one after another in the batch's order. The batch must not be
// used afterwards.
func (s *scheduler) output(b *stepBatch) *stepOutput {
	e := &s.out
	e.first, e.finished, e.tokens, e.steady = e.first[:0], e.finished[:0], e.tokens[:0], 0
	s.outputSteady(e)
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
			e.first = append(e.first, r.id)
		}
		if r.steady.member {
			// It became steady after this batch was made: e.steady counts its token, which may be
			// its first.
			if r.counted {
				e.steady--
				if r.out > 0 {
					e.tokens = append(e.tokens, r.id)
				}
			}
			continue
		}
		tokens := 1
		if it.drafted > 0 {
			tokens = s.verify(r, it)
		}
		for range tokens {
			if r.out++; r.counted && r.out > 1 {
				e.tokens = append(e.tokens, r.id)
			}
		}
		if s.config.Rules.Async {
			r.pending -= 1 + it.drafted
			r.drafted -= it.drafted
			if known := r.computed - r.pending; r.state == running && known >= r.kv.nextFull {
				s.register(r, known)
			}
		}
		if r.out >= r.limit {
			e.finished = append(e.finished, r.id)
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

// verify draws how many of an item's proposed tokens are accepted and returns how many tokens the
// sequence gains. Rejected tokens no longer count as computed.
func (s *scheduler) verify(r *sequence, it *batchItem) int {
	r.verified++
	draw := float64(mixed(r.luck+r.verified)>>11) / (1 << 53)
	accepted := 0
	for accepted < it.drafted && draw < s.config.Speculation.Accepted[accepted] {
		accepted++
	}
	if r.state == running && r.order == it.order {
		r.computed -= it.drafted - accepted
	}
	return min(1+accepted, r.limit-r.out)
}

// mixed scatters the bits of a number (finaliser of SplitMix64, Steele et al. 2014).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// finish ends a sequence and reports whether the running list must be compacted.
func (s *scheduler) finish(r *sequence) bool {
	if r.state == waiting {
		s.waiting.remove(r)
		s.release(r)
		return false
	}
	s.release(r)
	return true
}

// compact removes ended sequences from the running list.
func (s *scheduler) compact() {
	kept := s.running[:s.steady.members]
	for _, r := range s.running[s.steady.members:] {
		if r.state != ended {
			kept = append(kept, r)
		}
	}
	clear(s.running[len(kept):])
	s.running = kept
}

// abort ends a request that its client gave up on and frees its blocks at once. Its tokens in
// flight are discarded.
func (s *scheduler) abort(r *sequence) {
	switch r.state {
	case waiting:
		s.finish(r)
	case running:
		if r.steady.member {
			s.refresh(r)
			s.leave(r)
		}
		c := &s.steady
		head := c.members > 0 && r.order <= s.running[c.members-1].order
		s.release(r)
		if !head {
			s.compact()
			return
		}
		s.removeSteady(r)
		c.ending = slices.DeleteFunc(c.ending, func(l *sequence) bool { return l == r })
	}
}
