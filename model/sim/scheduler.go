package sim

import (
	"math"
	"slices"

	"planner/sweep/workload"
)

// sequence is a request inside a scheduler, from [scheduler.add] to its end; afterwards the
// scheduler may reuse it.
type sequence struct {
	id     int
	prompt int
	// limit is the number of output tokens at which the sequence ends: its own, or fewer where
	// ModelLen cuts it.
	limit int
	// out counts the output tokens that are known, pending those scheduled to be sampled but not
	// known yet (asynchronous scheduling only), and computed the tokens whose KV is present or
	// scheduled. pending and computed include proposed tokens until they are rejected; drafted
	// counts those in pending.
	out, pending, computed int
	drafted                int
	kv                     kvHolding
	path                   []nodeSpan
	// junction is the token at which a chunk of the prompt is to end so that others that begin alike
	// find a state there; 0 is none.
	junction int
	// order rises with each admission and sorts the running list. cached is the number of tokens
	// that the prefix cache held at the latest admission; resumed says that it was not the first
	// one.
	order   int
	cached  int
	resumed bool
	// sampled is the number of the step in which it last sampled.
	sampled int
	// inFlight counts the batches in flight that list the sequence.
	inFlight int
	state    seqState
	// luck seeds the draws of its adapter and its accepted tokens; verified counts the latter draws.
	luck     uint64
	verified uint64
	// adapter is the LoRA adapter that it uses.
	adapter int
	// slot is the number of its stream in the KV cache, where each has one.
	slot int
	// counted asks for each of its tokens in [stepOutput].
	counted bool
	steady  membership
}

// kvHolding is the part of the block pool that a sequence holds.
type kvHolding struct {
	// room is the number of tokens that the blocks can hold, nextFull the number of tokens at which
	// one more block will be full.
	room, nextFull int
	// extents holds the full blocks that are registered.
	extents []int32
}

type seqState uint8

const (
	waiting seqState = iota
	running
	ended
)

// total counts the known tokens of prompt and output.
func (r *sequence) total() int { return r.prompt + r.out }

// scheduler decides what each step of an engine computes, as vLLM V1 does: one token budget per
// step, running requests before waiting ones, KV cache blocks handed out as sequences grow, and the
// request admitted last preempted when there are none left.
//
// The caller alternates [scheduler.schedule] and [scheduler.output]. With asynchronous scheduling
// it schedules a second batch before it hands in the output of the first; the order of these calls
// is all that the scheduler knows of time.
//
// Not modelled: priorities, multimodal input, KV connectors.
type scheduler struct {
	config      Config
	blockTokens int
	pool        blockPool
	// distinct says that requests may find each other's blocks in the cache, so that it matters
	// which blocks are reused first. Until then blocks are only counted.
	distinct bool
	// reserve is the number of blocks that the watermark keeps free.
	reserve int
	// lookahead is for how many tokens beyond those computed blocks are reserved.
	lookahead int
	// windowCap is the number of a sequence's first blocks for which window or state groups need
	// blocks too; 0 without such groups.
	windowCap int

	running []*sequence // these hold blocks
	waiting queue       // these hold none: new and preempted ones
	orders  int
	step    int // number of the latest step
	hits    []int32

	spare   spare
	out     stepOutput
	slots   adapterSlots
	streams streams
	// stuck says that the last admission failed for lack of blocks or of adapter slots and will fail
	// again until running requests give some back.
	stuck bool

	steady steadyGroup
}

// spare holds objects for reuse: in steady state a scheduler allocates nothing.
type spare struct {
	batches   []*stepBatch
	sequences []*sequence
}

// newScheduler returns an idle scheduler with an empty cache.
func newScheduler(c Config) *scheduler {
	c.valid()
	s := &scheduler{config: c, blockTokens: c.Layout.BlockTokens, reserve: int(c.Watermark * float64(c.Blocks))}
	size := c.Blocks
	if l := &c.Layout; l.FullGroups > 0 {
		// One block here stands for one block of each full-attention group.
		size = (size-1)/l.FullGroups + 1
		if l.WindowGroups > 0 {
			s.windowCap = blocksFor(l.Window-1, l.BlockTokens) + 1
			if c.Chunked {
				s.windowCap = blocksFor(l.Window, l.BlockTokens)
			}
		}
		if l.StateGroups > 0 {
			s.windowCap = 1 // a state takes one block of each state group
		}
	}
	s.pool = newPool(size, c.Rules.UnkeyedFirst)
	s.steady.due = make([]int32, s.blockTokens)
	s.steady.off, s.lookahead = c.Speculation.On() || c.MicroBatch > 0, c.Speculation.Lookahead()
	s.slots, s.streams = newAdapterSlots(c.LoRA), newStreams(c)
	return s
}

// add puts a request at the end of the waiting queue; id is the number under which it is reported.
// It joins the next batch if there is room.
func (s *scheduler) add(id int, q *workload.Request, counted bool) *sequence {
	var r *sequence
	if n := len(s.spare.sequences); n > 0 {
		r = s.spare.sequences[n-1]
		s.spare.sequences = s.spare.sequences[:n-1]
		*r = sequence{path: r.path[:0], kv: kvHolding{extents: r.kv.extents[:0]}}
	} else {
		r = new(sequence)
	}
	r.id, r.prompt, r.limit = id, q.Prompt, min(q.Output, s.config.ModelLen-q.Prompt)
	r.kv.nextFull, r.counted = math.MaxInt, counted
	if s.config.Speculation.On() || s.config.LoRA.On() {
		r.luck = mixed(uint64(q.Due) ^ mixed(uint64(id)))
	}
	if s.config.PrefixCaching {
		r.kv.nextFull = s.blockTokens
		if len(q.Shared) > 0 || q.Own != 0 || q.Generated != 0 {
			s.tellApart()
		}
		r.path = s.pool.cache.enterPath(q, r.path)
	}
	if n := s.config.LoRA.Adapters; n > 0 {
		r.adapter = int(mixed(r.luck) % uint64(n))
	}
	s.waiting.pushBack(r)
	s.stuck = false
	return r
}

// fits reports whether a request could ever run: alone, in an empty pool, within ModelLen.
func (s *scheduler) fits(prompt, output int) bool {
	if prompt+output > s.config.ModelLen || prompt <= 0 || output <= 0 {
		return false
	}
	// The KV of the last token is never needed.
	longest := prompt + output - 1
	if s.config.WholePrefill && longest > s.config.BatchTokens {
		return false
	}
	if n := s.config.Speculation.Tokens; n > 0 {
		longest = s.ahead(longest + n)
	}
	return s.withWindow(blocksFor(longest, s.blockTokens)) <= s.pool.size-1
}

// withWindow returns how many blocks a sequence takes from the pool in all, if its full-attention
// groups take so many.
func (s *scheduler) withWindow(blocks int) int {
	if s.windowCap == 0 {
		return blocks
	}
	l := &s.config.Layout
	return blocks + blocksFor((l.WindowGroups+l.StateGroups)*min(blocks, s.windowCap), l.FullGroups)
}

// blocks counts the blocks of a sequence without those of its windows and states.
func (s *scheduler) blocks(r *sequence) int { return r.kv.room / s.blockTokens }

// usage is the share of the pool in use; cached blocks without a user count as free.
func (s *scheduler) usage() float64 {
	return 1 - float64(s.pool.free)/float64(s.pool.size-1)
}

func blocksFor(tokens, blockTokens int) int {
	return (tokens + blockTokens - 1) / blockTokens
}

// release ends a sequence: its blocks are freed, last one first, and it becomes reusable once no
// batch in flight lists it.
func (s *scheduler) release(r *sequence) {
	s.freeBlocks(r)
	for _, span := range r.path {
		s.pool.cache.release(span.node)
	}
	r.path = r.path[:0]
	r.state = ended
	if r.inFlight == 0 {
		s.spare.sequences = append(s.spare.sequences, r)
	}
}

func (s *scheduler) freeBlocks(r *sequence) {
	s.stuck = false
	if r.state == running {
		s.slots.leave(r.adapter)
		if s.config.MicroBatch > 0 {
			s.streams.leave(r)
		}
	}
	blocks := s.blocks(r)
	s.pool.dropUnkeyed(blocks - int(s.pool.count(r.kv.extents)))
	s.pool.drop(r.kv.extents)
	s.pool.dropUnkeyed(s.withWindow(blocks) - blocks)
	r.kv = kvHolding{extents: r.kv.extents[:0], nextFull: math.MaxInt}
	if s.config.PrefixCaching {
		r.kv.nextFull = s.blockTokens
	}
}

// register enters a sequence's full blocks up to a token in the prefix cache.
func (s *scheduler) register(r *sequence, tokens int) {
	size := s.blockTokens
	full := tokens / size
	r.kv.nextFull = (full + 1) * size
	if !s.distinct {
		return
	}
	registered := int(s.pool.count(r.kv.extents))
	begin := registered * size
	for i := 0; registered < full; i++ {
		end := min(full, r.path[i].end/size)
		if end <= registered {
			continue
		}
		id := r.path[i].node
		if w := s.pool.cache.nodes[id].writer; w != nil && w != r {
			s.refresh(w)
		}
		r.kv.extents = s.pool.register(r.kv.extents, id, int32(end))
		if s.config.AlignedStates {
			for block := registered + 1; block <= end; block++ {
				s.keepState(r, id, block, begin, tokens)
			}
		}
		registered = end
	}
}

// keepState keeps the state after a block, which ends in a node, if a chunk of tokens of the prompt, from begin on, ended
// there, or if kernels write it out within the chunk; and after each block of the answer, where tokens are known. Others
// can begin with it from the step after the one that computed it.
func (s *scheduler) keepState(r *sequence, node int32, block, begin, tokens int) {
	at, from := block*s.blockTokens, s.step+1
	switch {
	case at > r.prompt:
		from -= tokens - at
	case at != tokens && !(s.config.InnerStates && begin < r.prompt && at == (tokens-1)/s.blockTokens*s.blockTokens):
		return
	}
	s.pool.keepState(node, int32(block), from, s.withWindow(1)-1)
}

// tellApart makes the cache distinct: it registers the running sequences' full blocks, so far only
// counted.
func (s *scheduler) tellApart() {
	if s.distinct || !s.config.PrefixCaching {
		return
	}
	s.distinct = true
	for _, r := range s.running {
		s.register(r, r.kv.nextFull-1)
	}
}

// lookup collects in s.hits the cached blocks that a sequence's known tokens begin with. The block
// of the last token is never taken from the cache, since at least one token must be computed. With
// AlignedStates they end at the last state; it returns false if that is so new that the sequence has to
// wait for it.
func (s *scheduler) lookup(r *sequence) bool {
	s.find(r, (r.total()-1)/s.blockTokens)
	if !s.config.AlignedStates {
		return true
	}
	blocks := int(s.pool.count(s.hits))
	last := s.lastState(r, blocks)
	r.junction = 0
	if kept := int(last.blocks); kept < blocks {
		if s.config.Rules.SharedStates {
			r.junction = blocks * s.blockTokens
		}
		s.find(r, kept)
	}
	return last.from <= s.step
}

// lastState returns the last state among a sequence's first blocks, of those that are cached.
func (s *scheduler) lastState(r *sequence, blocks int) keptState {
	for _, span := range slices.Backward(r.path) {
		for _, state := range slices.Backward(s.pool.cache.nodes[span.node].states) {
			if int(state.blocks) <= min(blocks, span.end/s.blockTokens) {
				return state
			}
		}
	}
	return keptState{}
}

// find collects in s.hits at most so many cached blocks that a sequence begins with.
func (s *scheduler) find(r *sequence, most int) {
	s.hits = s.hits[:0]
	if !s.distinct {
		return
	}
	for _, span := range r.path {
		if w := s.pool.cache.nodes[span.node].writer; w != nil {
			s.refresh(w)
		}
		to := min(most, span.end/s.blockTokens)
		s.hits = s.pool.find(s.hits, span.node, int32(to))
		if to == most || int(s.pool.count(s.hits)) < to {
			return
		}
	}
}
