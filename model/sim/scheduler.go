package sim

import (
	"math"

	"planner/sweep/workload"
)

// Request is what the scheduler must know of a request.
type Request struct {
	// ID names the request in everything that the scheduler reports.
	ID int
	// Prompt and Output count tokens.
	Prompt, Output int
	// Shared lists the leading parts of the prompt that other requests may have
	// too.
	Shared []workload.Segment
	// Counted selects the requests of which [Events] counts every token.
	Counted bool
	// Own and Reply name the tokens of the prompt behind Shared and the
	// generated ones, if another request's Shared may hold them; 0 otherwise.
	Own, Reply workload.Content
}

// Sequence is a request inside a scheduler, from [Scheduler.Add] to its end; what
// it is afterwards is the scheduler's affair.
type Sequence struct {
	id     int
	prompt int
	// limit is the number of output tokens at which the sequence ends, by its
	// own length or by the longest that the engine allows.
	limit int
	// out counts output tokens that are known, pending those whose sampling is
	// scheduled and which are not known yet (asynchronous scheduling only), and
	// computed the tokens whose KV is scheduled or present.
	out, pending, computed int
	kv                     holding
	path                   []span
	// order rises with admission: running is sorted by it.
	order int
	// sampled is the number of the step in which it sampled last.
	sampled int
	// inFlight counts the batches under way that list the sequence.
	inFlight int
	state    state
	counted  bool
	settled  settling
}

// holding is what a sequence has of the block pool.
type holding struct {
	blocks []int32
	// room is the number of tokens that blocks can hold.
	room int
	// window holds the blocks of groups with a sliding window.
	window []int32
	// registered counts full blocks in the prefix cache, nextFull is the number
	// of tokens at which there will be one more.
	registered, nextFull int
}

type state uint8

const (
	waiting state = iota
	running
	ended
)

// Generated counts the output tokens that are known.
func (r *Sequence) Generated() int { return r.out }

// total counts the tokens that are known: prompt and output.
func (r *Sequence) total() int { return r.prompt + r.out }

// Scheduler decides what each step of an engine computes, as vLLM V1 does: one
// token budget a step, running requests before waiting ones, blocks of KV cache
// handed out as sequences grow, and the request admitted last thrown out when
// there are none left.
//
// The caller alternates [Scheduler.Schedule] and [Scheduler.Output]. With
// asynchronous scheduling it schedules a second batch before it hands in the
// output of the first one; the order of these calls is all that the scheduler
// knows of time.
//
// Not modelled: priorities, speculation, LoRA, multimodal input, KV connectors.
type Scheduler struct {
	rules  Rules
	limits Limits
	pool   pool
	// reserve is the number of blocks that the watermark keeps free.
	reserve int
	// windowCap is the most blocks of a sequence for which window groups need
	// blocks too; 0 without window groups.
	windowCap int

	running []*Sequence
	waiting queue
	orders  int
	step    int // number of the next step
	hits    []int32

	spare  spare
	events Events
	// stuck says that the last admission failed for lack of blocks and will fail
	// as long as running requests only take more of them.
	stuck bool

	calm calm
}

// spare is what is not in use and will be: a scheduler in its stride allocates
// nothing.
type spare struct {
	batches   []*Batch
	sequences []*Sequence
	lists     [][]int32 // of blocks
	items     []item
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

// NewScheduler returns an idle scheduler with an empty cache.
func NewScheduler(rules Rules, limits Limits) *Scheduler {
	limits.valid()
	if limits.ActiveSeqs == 0 {
		limits.ActiveSeqs = limits.Seqs
	}
	s := &Scheduler{rules: rules, limits: limits, reserve: int(limits.Watermark * float64(limits.Blocks))}
	size := limits.Blocks
	if w := &s.limits.Window; w.FullGroups > 0 {
		// One block of ours is a block of each full group.
		size = (size-1)/w.FullGroups + 1
		if w.Groups > 0 {
			s.windowCap = w.blocks(limits.BlockTokens)
		}
	}
	s.pool = newPool(size, rules.UnkeyedFirst)
	s.calm.crossing = make([]int32, limits.BlockTokens)
	return s
}

// Add puts a request at the end of the waiting queue. It joins the next batch
// that is scheduled, if there is room.
func (s *Scheduler) Add(q *Request) *Sequence {
	var r *Sequence
	if n := len(s.spare.sequences); n > 0 {
		r = s.spare.sequences[n-1]
		s.spare.sequences = s.spare.sequences[:n-1]
		*r = Sequence{path: r.path[:0]}
	} else {
		r = new(Sequence)
	}
	r.id, r.prompt, r.limit = q.ID, q.Prompt, min(q.Output, s.limits.ModelLen-q.Prompt)
	r.kv.nextFull, r.counted = math.MaxInt, q.Counted
	if s.limits.PrefixCaching {
		r.kv.nextFull = s.limits.BlockTokens
		r.path = s.pool.enterPath(q, r.path, s.limits.BlockTokens)
	}
	s.waiting.pushBack(r)
	s.stuck = false
	return r
}

// Running counts the requests that hold blocks.
func (s *Scheduler) Running() int { return len(s.running) }

// Waiting counts the requests that hold no blocks: new ones and preempted ones.
func (s *Scheduler) Waiting() int { return s.waiting.len() }

// Free counts the blocks that nobody uses; cached ones are among them.
func (s *Scheduler) Free() int { return s.pool.free }

// Fits reports whether a request of so many tokens could ever run: alone, in an
// empty pool, within the longest length that the engine allows.
func (s *Scheduler) Fits(prompt, output int) bool {
	if prompt+output > s.limits.ModelLen || prompt <= 0 || output <= 0 {
		return false
	}
	// The KV of the last token is never needed.
	longest := prompt + output - 1
	if s.limits.WholePrefill && longest > s.limits.BatchTokens {
		return false
	}
	return s.withWindow(blocksFor(longest, s.limits.BlockTokens)) <= s.pool.size-1
}

// withWindow is what a sequence of so many blocks takes from the pool.
func (s *Scheduler) withWindow(blocks int) int {
	if s.windowCap == 0 {
		return blocks
	}
	w := &s.limits.Window
	return blocks + blocksFor(w.Groups*min(blocks, s.windowCap), w.FullGroups)
}

// Usage is the share of the pool that is in use.
func (s *Scheduler) Usage() float64 {
	return 1 - float64(s.pool.free)/float64(s.pool.size-1)
}

func blocksFor(tokens, blockTokens int) int {
	return (tokens + blockTokens - 1) / blockTokens
}

// release ends a sequence: its blocks go back, last one first, and the scheduler
// forgets it as soon as no batch under way lists it.
func (s *Scheduler) release(r *Sequence) {
	s.freeBlocks(r)
	s.pool.leavePath(r.path)
	r.path = r.path[:0]
	r.state = ended
	if r.inFlight == 0 {
		s.spare.sequences = append(s.spare.sequences, r)
	}
}

func (s *Scheduler) freeBlocks(r *Sequence) {
	s.stuck = false
	for i := len(r.kv.blocks) - 1; i >= 0; i-- {
		s.pool.drop(r.kv.blocks[i])
	}
	for _, id := range r.kv.window {
		s.pool.drop(id)
	}
	s.spare.keep(r.kv.blocks)
	s.spare.keep(r.kv.window)
	r.kv = holding{nextFull: math.MaxInt}
	if s.limits.PrefixCaching {
		r.kv.nextFull = s.limits.BlockTokens
	}
}

// register enters a sequence's full blocks up to a token in the prefix cache.
func (s *Scheduler) register(r *Sequence, tokens int) {
	size := s.limits.BlockTokens
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

// publish makes a sequence's private blocks findable.
func (s *Scheduler) publish(r *Sequence) {
	i := 0
	for j, id := range r.kv.blocks[:r.kv.registered] {
		for r.path[i].end < (j+1)*s.limits.BlockTokens {
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
func (s *Scheduler) lookup(r *Sequence) {
	s.hits = s.hits[:0]
	if !s.limits.PrefixCaching {
		return
	}
	size := s.limits.BlockTokens
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
