package sim

import (
	"math"

	"planner/sweep/workload"
)

// sequence is a request inside a scheduler, from [scheduler.add] to its end; what
// it is afterwards is the scheduler's affair.
type sequence struct {
	id     int
	prompt int
	// limit is the number of output tokens at which the sequence ends, by its
	// own length or by the longest that the engine allows.
	limit int
	// out counts output tokens that are known, pending those whose sampling is
	// scheduled and which are not known yet (asynchronous scheduling only), and
	// computed the tokens whose KV is scheduled or present. Both count proposed tokens as
	// if they were accepted, until they are known not to be; drafted are those of pending.
	out, pending, computed int
	drafted                int
	kv                     kvHolding
	path                   []nodeSpan
	// order rises with admission: running is sorted by it. At the latest admission the
	// prefix cache held so many tokens; resumed says that it was not the first.
	order   int
	cached  int
	resumed bool
	// sampled is the number of the step in which it sampled last.
	sampled int
	// inFlight counts the batches under way that list the sequence.
	inFlight int
	state    seqState
	// luck decides which proposed tokens are accepted, verified counts the decisions.
	luck     uint64
	verified uint64
	// adapter is the low-rank adapter that it uses.
	adapter int
	// counted asks for every token of it in [stepOutput].
	counted bool
	steady  membership
}

// kvHolding is what a sequence has of the block pool.
type kvHolding struct {
	blocks []int32
	// room is the number of tokens that blocks can hold.
	room int
	// window holds the blocks of groups with a sliding window.
	window []int32
	// registered counts full blocks in the prefix cache, nextFull is the number
	// of tokens at which there will be one more.
	registered, nextFull int
}

type seqState uint8

const (
	waiting seqState = iota
	running
	ended
)

// total counts the tokens that are known: prompt and output.
func (r *sequence) total() int { return r.prompt + r.out }

// scheduler decides what each step of an engine computes, as vLLM V1 does: one
// token budget a step, running requests before waiting ones, blocks of KV cache
// handed out as sequences grow, and the request admitted last thrown out when
// there are none left.
//
// The caller alternates [scheduler.schedule] and [scheduler.output]. With
// asynchronous scheduling it schedules a second batch before it hands in the
// output of the first one; the order of these calls is all that the scheduler
// knows of time.
//
// Not modelled: priorities, multimodal input, KV connectors.
type scheduler struct {
	config      Config
	blockTokens int
	pool        blockPool
	// reserve is the number of blocks that the watermark keeps free.
	reserve int
	// lookahead is for how many tokens beyond those computed blocks are reserved.
	lookahead int
	// windowCap is the most blocks of a sequence for which window or state groups need
	// blocks too; 0 without such groups.
	windowCap int

	running []*sequence // they hold blocks
	waiting queue       // they hold none: new ones and preempted ones
	orders  int
	step    int // number of the next step
	hits    []int32

	spare spare
	out   stepOutput
	slots adapterSlots
	// stuck says that the last admission failed for lack of blocks and will fail
	// as long as running requests only take more of them.
	stuck bool

	steady steadyGroup
}

// spare is what is not in use and will be: a scheduler in its stride allocates
// nothing.
type spare struct {
	batches   []*stepBatch
	sequences []*sequence
	lists     [][]int32 // of blocks
}

// list returns an empty list of blocks.
func (s *spare) list() []int32 {
	n := len(s.lists)
	if n == 0 {
		return nil
	}
	l := s.lists[n-1]
	s.lists = s.lists[:n-1]
	return l
}

// keep takes a list back.
func (s *spare) keep(list []int32) {
	if cap(list) > 0 {
		s.lists = append(s.lists, list[:0])
	}
}

// newScheduler returns an idle scheduler with an empty cache.
func newScheduler(c Config) *scheduler {
	c.valid()
	s := &scheduler{config: c, blockTokens: c.Layout.BlockTokens, reserve: int(c.Watermark * float64(c.Blocks))}
	size := c.Blocks
	if l := &c.Layout; l.FullGroups > 0 {
		// One block of ours is a block of each full group.
		size = (size-1)/l.FullGroups + 1
		if l.WindowGroups > 0 {
			s.windowCap = blocksFor(l.Window-1, l.BlockTokens) + 1
		}
		if l.StateGroups > 0 {
			s.windowCap = 1 // a state takes one block of each group
		}
	}
	s.pool = newPool(size, c.Rules.UnkeyedFirst)
	s.steady.due = make([]int32, s.blockTokens)
	s.steady.off, s.lookahead = c.Speculation.On() || c.LoRA.On(), c.Speculation.Lookahead()
	s.slots = newAdapterSlots(c.LoRA)
	return s
}

// add puts a request at the end of the waiting queue, under the number by which it is
// reported. It joins the next batch that is scheduled, if there is room.
func (s *scheduler) add(id int, q *workload.Request, counted bool) *sequence {
	var r *sequence
	if n := len(s.spare.sequences); n > 0 {
		r = s.spare.sequences[n-1]
		s.spare.sequences = s.spare.sequences[:n-1]
		*r = sequence{path: r.path[:0]}
	} else {
		r = new(sequence)
	}
	r.id, r.prompt, r.limit = id, q.Prompt, min(q.Output, s.config.ModelLen-q.Prompt)
	r.kv.nextFull, r.counted = math.MaxInt, counted
	if s.config.Speculation.On() || s.config.LoRA.On() {
		r.luck = mixed(uint64(q.Due) ^ mixed(uint64(id)))
	}
	if s.config.PrefixCaching {
		if len(q.Shared) > 0 || q.Own != 0 || q.Generated != 0 {
			s.tellApart()
		}
		r.kv.nextFull = s.blockTokens
		r.path = s.pool.enterPath(q, r.path, s.blockTokens)
	}
	if n := s.config.LoRA.Adapters; n > 0 {
		r.adapter = int(mixed(r.luck) % uint64(n))
	}
	s.waiting.pushBack(r)
	s.stuck = false
	return r
}

// fits reports whether a request of so many tokens could ever run: alone, in an
// empty pool, within the longest length that the engine allows.
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

// withWindow is what a sequence of so many blocks takes from the pool.
func (s *scheduler) withWindow(blocks int) int {
	if s.windowCap == 0 {
		return blocks
	}
	l := &s.config.Layout
	return blocks + blocksFor((l.WindowGroups+l.StateGroups)*min(blocks, s.windowCap), l.FullGroups)
}

// blocks counts the blocks of a sequence, without those of its windows.
func (s *scheduler) blocks(r *sequence) int { return r.kv.room / s.blockTokens }

// usage is the share of the pool that is in use; cached blocks that nobody uses are free.
func (s *scheduler) usage() float64 {
	return 1 - float64(s.pool.free)/float64(s.pool.size-1)
}

func blocksFor(tokens, blockTokens int) int {
	return (tokens + blockTokens - 1) / blockTokens
}

// release ends a sequence: its blocks go back, last one first, and the scheduler
// forgets it as soon as no batch under way lists it.
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
	}
	if !s.pool.distinct {
		s.pool.free += s.withWindow(s.blocks(r))
	}
	for i := len(r.kv.blocks) - 1; i >= 0; i-- {
		s.pool.drop(r.kv.blocks[i])
	}
	for _, id := range r.kv.window {
		s.pool.drop(id)
	}
	s.spare.keep(r.kv.blocks)
	s.spare.keep(r.kv.window)
	r.kv = kvHolding{nextFull: math.MaxInt}
	if s.config.PrefixCaching {
		r.kv.nextFull = s.blockTokens
	}
}

// register enters a sequence's full blocks up to a token in the prefix cache.
func (s *scheduler) register(r *sequence, tokens int) {
	size := s.blockTokens
	if !s.pool.distinct {
		r.kv.registered = tokens / size
		r.kv.nextFull = (r.kv.registered + 1) * size
		return
	}
	i := 0
	for tokens >= r.kv.nextFull {
		for r.path[i].end < r.kv.nextFull {
			i++
		}
		if node := &s.pool.cache.nodes[r.path[i].node]; node.text.content == 0 {
			s.pool.blocks[r.kv.blocks[r.kv.registered]].node = private
		} else {
			if node.writer != nil && node.writer != r {
				s.refresh(node.writer)
			}
			s.pool.register(r.kv.blocks[r.kv.registered], r.path[i].node, int32(r.kv.registered))
		}
		r.kv.registered++
		r.kv.nextFull += size
	}
}

// tellApart gives the sequences the very blocks that they hold, which were only counted.
func (s *scheduler) tellApart() {
	if s.pool.distinct || !s.config.PrefixCaching {
		return
	}
	for _, r := range s.running[:s.steady.members] {
		if r.steady.member {
			s.refresh(r)
		}
	}
	s.pool.distinct = true
	for _, r := range s.running {
		end := r.kv.room
		s.pool.free += s.withWindow(s.blocks(r))
		r.kv.room = 0
		s.extend(r, end)
		for _, id := range r.kv.blocks[:r.kv.registered] {
			s.pool.blocks[id].node = private
		}
	}
}

// publish makes a sequence's private blocks findable.
func (s *scheduler) publish(r *sequence) {
	i := 0
	for j, id := range r.kv.blocks[:r.kv.registered] {
		for r.path[i].end < (j+1)*s.blockTokens {
			i++
		}
		if s.pool.blocks[id].node == private {
			s.pool.register(id, r.path[i].node, int32(j))
		}
	}
}

// lookup collects in s.hits the cached blocks with which a sequence's known
// tokens begin. The block of the last token is never taken from the cache, as
// there must be something left to compute.
func (s *scheduler) lookup(r *sequence) {
	s.hits = s.hits[:0]
	if !s.pool.distinct {
		return
	}
	size := s.blockTokens
	most := (r.total() - 1) / size
	i := 0
	for j := 0; j < most; j++ {
		for r.path[i].end < (j+1)*size {
			i++
		}
		node := r.path[i].node
		if w := s.pool.cache.nodes[node].writer; w != nil {
			s.refresh(w)
		}
		b := s.pool.cache.find(node, int32(j))
		if b == 0 {
			return
		}
		s.hits = append(s.hits, b)
	}
}
