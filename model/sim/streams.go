package sim

import (
	"slices"

	"planner/model"
)

// mostPerPart is llama.cpp's default of n_ubatch, in tokens.
const mostPerPart = 512

// saveShare is the share of the host's link with which llama-server saves a slot's KV cache (prompt_save in
// tools/server/server-context.cpp, build 11434): 7.6 MB took 17 ms on a processor, for which 8 GB/s were given, in
// November 2026. GPUs were not measured.
const saveShare = 0.06

// streams are the slots of an engine whose KV cache has a stream for each ([Config.MicroBatch]), as llama.cpp's has
// unless it is unified. It computes a step in parts, one after the other, each of which reads the weights: of slots
// with consecutive numbers, and of equally many tokens of each (llama_batch_allocr::split_equal, sequential, in
// src/llama-batch.cpp, build 11434, 2026). A decode shares a part with one token of the prompts beside it.
type streams struct {
	// free lists the slots without a request, the least recently used first; those never used come highest first
	// (get_available_slot in tools/server/server-context.cpp).
	free []int
	// held counts the tokens of the last request of each slot without one. A slot that had none held as many as its
	// first request brings: servers are warm.
	held     []int
	launched []*sequence  // since the last step
	rest     []slotTokens // of the step that is being cut
	part     model.Batch
}

// slotTokens is what a step computes of one slot.
type slotTokens struct {
	slot, tokens, context int
	decodes, samples      bool
}

func newStreams(c Config) streams {
	var s streams
	if c.MicroBatch > 0 {
		s.held = make([]int, c.Seqs)
		for slot := c.Seqs - 1; slot >= 0; slot-- {
			s.free = append(s.free, slot)
		}
	}
	return s
}

// leave frees the slot of a request.
func (s *streams) leave(r *sequence) {
	s.free = append(s.free, r.slot)
	s.held[r.slot] = r.computed
	s.launched = slices.DeleteFunc(s.launched, func(l *sequence) bool { return l == r })
}

// launch gives the next waiting request the slot that was left first, and returns the time that the server spends on
// saving what the slot held. Requests that arrive meanwhile are launched before the next step too.
func (s *scheduler) launch() (seconds float64, launched bool) {
	k := &s.streams
	if s.waiting.len() == 0 || len(k.free) == 0 {
		return 0, false
	}
	r := s.waiting.front()
	if !s.lookup(r) {
		return 0, false
	}
	cached := int(s.pool.count(s.hits)) * s.blockTokens
	if !s.allocate(r, cached, r.total()) {
		return 0, false
	}
	s.waiting.popFront()
	s.begin(r, cached)
	r.slot = k.free[0]
	k.free = slices.Delete(k.free, 0, 1)
	at, _ := slices.BinarySearchFunc(s.running, r.slot, func(other *sequence, slot int) int { return other.slot - slot })
	s.running = slices.Insert(s.running, at, r)
	k.launched = append(k.launched, r)
	held := k.held[r.slot]
	if held == 0 {
		held = r.total()
	}
	return s.config.SaveToken * float64(held), true
}

// scheduleSlots makes a step of the requests that were launched as update_slots does (server-context.cpp): every slot
// that generates gets a token, and the prompts share what is left of the budget in the order of their slots, not in that
// in which they came.
func (s *scheduler) scheduleSlots(b *stepBatch) {
	b.admitted = append(b.admitted, s.streams.launched...)
	s.streams.launched = s.streams.launched[:0]
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
