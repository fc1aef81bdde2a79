package sim

import (
	"slices"

	"planner/model"
)

// mostPerPart is llama.cpp's default of n_ubatch, in tokens.
const mostPerPart = 512

// streams are the slots of an engine whose KV cache has a stream for each ([Config.MicroBatch]), as llama.cpp's has
// unless it is unified. It computes a step in parts, one after the other, each of which reads the weights: of slots
// with consecutive numbers, and of equally many tokens of each (llama_batch_allocr::split_equal, sequential, in
// src/llama-batch.cpp, build 11434, 2026). A decode shares a part with one token of the prompts beside it.
type streams struct {
	// free lists the slots without a request, the least recently used first; those never used come highest first
	// (get_available_slot in tools/server/server-context.cpp).
	free []int
	rest []slotTokens // of the step that is being cut
	part model.Batch
}

// slotTokens is what a step computes of one slot.
type slotTokens struct {
	slot, tokens, context int
	decodes, samples      bool
}

func newStreams(c Config) streams {
	var s streams
	if c.MicroBatch > 0 {
		for slot := c.Seqs - 1; slot >= 0; slot-- {
			s.free = append(s.free, slot)
		}
	}
	return s
}

// scheduleSlots makes a step as update_slots does (server-context.cpp): whatever waits takes a free slot, every slot
// that generates gets a token, and the prompts share what is left of the budget in the order of their slots, not in that
// in which they came.
func (s *scheduler) scheduleSlots(b *stepBatch) {
	for s.waiting.len() > 0 && len(s.streams.free) > 0 {
		r := s.waiting.front()
		if !s.lookup(r) {
			break
		}
		cached := int(s.pool.count(s.hits)) * s.blockTokens
		if !s.allocate(r, cached, r.total()) {
			break
		}
		s.waiting.popFront()
		r.slot = s.streams.free[0]
		s.streams.free = slices.Delete(s.streams.free, 0, 1)
		at, _ := slices.BinarySearchFunc(s.running, r.slot, func(other *sequence, slot int) int { return other.slot - slot })
		s.running = slices.Insert(s.running, at, r)
		s.begin(b, r, cached)
	}
	budget := s.config.BatchTokens
	for _, decodes := range []bool{true, false} {
		for _, r := range slices.Clone(s.running) {
			n := min(r.total()-r.computed, budget)
			if n == 0 || (r.out > 0) != decodes || r.state != running || !s.makeRoom(b, r, n) {
				continue
			}
			s.put(b, r, n, 0)
			budget -= n
		}
	}
}

// split calls do for each part of a step.
func (s *scheduler) split(b *stepBatch, do func(model.Batch)) {
	k := &s.streams
	k.rest = k.rest[:0]
	for i := range b.items {
		it := &b.items[i]
		k.rest = append(k.rest, slotTokens{it.r.slot, it.tokens, it.r.computed - it.tokens, it.tokens == 1 && it.r.out > 0, it.samples})
	}
	for len(k.rest) > 0 {
		last, n, each := k.rest[0].slot-1, 0, s.config.MicroBatch
		for _, t := range k.rest {
			if t.slot == last+1 && n < s.config.MicroBatch {
				last, n, each = t.slot, n+1, min(each, t.tokens)
			}
		}
		each = min(each, max(s.config.MicroBatch/n, 1))
		k.part = model.Batch{Chunks: k.part.Chunks[:0]}
		last = k.rest[0].slot - 1
		for i := range k.rest {
			t := &k.rest[i]
			if t.slot != last+1 || n == 0 {
				continue
			}
			last, n = t.slot, n-1
			if t.decodes {
				s.addDecode(&k.part, t.context+1)
			} else {
				k.part.Chunks = append(k.part.Chunks, model.Chunk{Tokens: each, Context: t.context})
			}
			t.context += each
			if t.tokens -= each; t.tokens == 0 && t.samples {
				k.part.Sampled++
			}
		}
		k.rest = slices.DeleteFunc(k.rest, func(t slotTokens) bool { return t.tokens == 0 })
		do(k.part)
	}
}
