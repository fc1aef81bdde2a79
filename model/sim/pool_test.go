package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"planner/model"
	"planner/sweep/workload"
)

// singleBlock is a block of KV cache with the key of what it holds, 0 for none.
type singleBlock struct{ refs, key int }

// singleBlocks is vLLM's block pool as it is written there, one block at a time.
type singleBlocks struct {
	queue        []*singleBlock
	cached       map[int][]*singleBlock // by key, in order of registration
	unkeyedFirst bool
}

func (p *singleBlocks) take() *singleBlock {
	b := p.queue[0]
	p.queue = p.queue[1:]
	p.cached[b.key] = slices.DeleteFunc(p.cached[b.key], func(x *singleBlock) bool { return x == b })
	b.refs, b.key = 1, 0
	return b
}

func (p *singleBlocks) adopt(b *singleBlock) {
	if b.refs == 0 {
		p.queue = slices.DeleteFunc(p.queue, func(x *singleBlock) bool { return x == b })
	}
	b.refs++
}

func (p *singleBlocks) drop(b *singleBlock) {
	if b.refs--; b.refs > 0 {
		return
	}
	if b.key == 0 && p.unkeyedFirst {
		p.queue = slices.Insert(p.queue, 0, b)
	} else {
		p.queue = append(p.queue, b)
	}
}

// keyed tells texts of blocks apart by all of their tokens.
type keyed map[struct {
	before int
	tokens [keyedTokens][2]int
}]int

const keyedTokens = 8 // of a block

// keys are those of the blocks of a request.
func (k keyed) keys(q *workload.Request) (keys []int) {
	var tokens [][2]int
	text := func(content workload.Content, end int) {
		if content == 0 {
			content = workload.Content(1<<40 + q.ID) // nobody else has it
		}
		for i := 0; len(tokens) < end; i++ {
			tokens = append(tokens, [2]int{int(content), i})
		}
	}
	for _, s := range q.Shared {
		text(s.Content, len(tokens)+s.Tokens)
	}
	text(q.Own, q.Prompt)
	text(q.Generated, q.Prompt+q.Output)
	block := struct {
		before int
		tokens [keyedTokens][2]int
	}{}
	for ; len(tokens) >= keyedTokens; tokens = tokens[keyedTokens:] {
		copy(block.tokens[:], tokens)
		if k[block] == 0 {
			k[block] = len(k) + 1
		}
		block.before = k[block]
		keys = append(keys, block.before)
	}
	return keys
}

// twin is a sequence of a scheduler with the blocks that it holds in a pool of single ones.
type twin struct {
	*sequence
	keys            []int
	blocks, windows []*singleBlock
}

// twins drive a scheduler's pool and one of single blocks alike.
type twins struct {
	*testing.T
	seed  uint64
	s     *scheduler
	pool  singleBlocks
	texts map[[2]int32]int // the keys of registered blocks, by node and number
}

func (p *twins) fatal(format string, args ...any) {
	p.Helper()
	p.Fatalf("seed %d, %+v: %s", p.seed, p.s.config, fmt.Sprintf(format, args...))
}

// grow hands out single blocks up to a token and registers those that known tokens fill.
func (p *twins) grow(w *twin, end int) {
	full := min(end, w.total()) / keyedTokens
	for need := blocksFor(end, keyedTokens); len(w.blocks) < need; {
		w.blocks = append(w.blocks, p.pool.take())
	}
	for n := len(w.blocks); len(w.windows) < p.s.withWindow(n)-n; {
		w.windows = append(w.windows, p.pool.take())
	}
	for j, b := range w.blocks[:full] {
		if b.key == 0 {
			b.key = w.keys[j]
			p.pool.cached[b.key] = append(p.pool.cached[b.key], b)
			i := slices.IndexFunc(w.path, func(s nodeSpan) bool { return s.end >= (j+1)*keyedTokens })
			p.texts[[2]int32{w.path[i].node, int32(j)}] = b.key
		}
	}
}

// admit looks a sequence up and gives it blocks, if there are enough.
func (p *twins) admit(w *twin, rng *rand.Rand) {
	var hits []*singleBlock
	unused := 0
	for _, key := range w.keys[:(w.total()-1)/keyedTokens] {
		if len(p.pool.cached[key]) == 0 {
			break
		}
		hits = append(hits, p.pool.cached[key][0])
		if hits[len(hits)-1].refs == 0 {
			unused++
		}
	}
	p.s.lookup(w.sequence)
	if got := int(p.s.pool.count(p.s.hits)); got != len(hits) {
		p.fatal("%d blocks are cached, want %d", got, len(hits))
	}
	cached := len(hits) * keyedTokens
	end := cached + 1 + rng.IntN(w.total()-cached)
	fits := p.s.withWindow(blocksFor(end, keyedTokens))-len(hits)+unused <= len(p.pool.queue)
	if got := p.s.allocate(w.sequence, cached, end); got != fits {
		p.fatal("%d blocks of which %d are cached and %d of those unused, %d free: allocated is %v",
			blocksFor(end, keyedTokens), len(hits), unused, len(p.pool.queue), got)
	}
	if fits {
		for _, b := range hits {
			p.pool.adopt(b)
		}
		w.blocks = hits
		p.grow(w, end)
	}
}

// extend gives a sequence that holds blocks some more tokens, if there are enough blocks.
func (p *twins) extend(w *twin, rng *rand.Rand) {
	room := w.kv.room
	if w.out < w.limit && rng.IntN(3) == 0 {
		w.out += 1 + rng.IntN(w.limit-w.out)
	}
	end := min(w.total(), room-rng.IntN(keyedTokens)+rng.IntN(5*keyedTokens))
	if end > room {
		if p.s.withWindow(blocksFor(end, keyedTokens))-p.s.withWindow(p.s.blocks(w.sequence)) > p.s.pool.free {
			return
		}
		p.s.extend(w.sequence, end)
	}
	p.s.fill(w.sequence, end)
	p.grow(w, end)
}

// free takes the blocks of a sequence, as a preemption does.
func (p *twins) free(w *twin) {
	p.s.freeBlocks(w.sequence)
	for _, b := range slices.Backward(w.blocks) {
		p.pool.drop(b)
	}
	for _, b := range w.windows {
		p.pool.drop(b)
	}
	w.blocks, w.windows = nil, nil
}

// compare checks that both queues have the same blocks in the same order.
func (p *twins) compare() {
	q := &p.s.pool
	if q.free != len(p.pool.queue) {
		p.fatal("%d blocks are free, want %d", q.free, len(p.pool.queue))
	}
	got := make([]int, q.blank, q.free)
	for id := q.queue.first; id != 0; id = q.extents[id].links[inQueue].next {
		x := &q.extents[id]
		for j := x.end - 1; j >= x.first; j-- {
			key := 0
			if x.node != root {
				key = p.texts[[2]int32{x.node, j}]
			}
			got = append(got, key)
		}
	}
	for i, b := range p.pool.queue {
		if got[i] != b.key {
			p.fatal("block %d of the queue has key %d, want %d", i, got[i], b.key)
		}
	}
}

// TestPoolEqualsSingleBlocks: over random sequences that share prefixes, continue others, are preempted and
// end, extents decide as a pool of single blocks does, to the order in which blocks are reused.
func TestPoolEqualsSingleBlocks(t *testing.T) {
	admitted, hits, splits := 0, 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := Config{Seqs: 8, BatchTokens: 100, ModelLen: 300, Blocks: 10 + rng.IntN(150), PrefixCaching: true,
			Rules: Rules{UnkeyedFirst: rng.IntN(2) == 0}, Layout: model.KVLayout{BlockTokens: keyedTokens}}
		if rng.IntN(4) == 0 {
			c.Layout.Window, c.Layout.WindowGroups, c.Layout.FullGroups = 40, 1+rng.IntN(3), 1
		}
		p := &twins{t, seed, newScheduler(c), singleBlocks{cached: map[int][]*singleBlock{}, unkeyedFirst: c.Rules.UnkeyedFirst}, map[[2]int32]int{}}
		p.s.distinct = true
		for range p.s.pool.free {
			p.pool.queue = append(p.pool.queue, new(singleBlock))
		}
		texts := keyed{}
		var requests []*workload.Request
		var live []*twin
		for range 200 {
			if len(live) < 8 && rng.IntN(3) == 0 {
				q := randomRequest(rng, requests, c.ModelLen)
				if len(requests) > 0 && rng.IntN(4) == 0 {
					*q = *requests[rng.IntN(len(requests))]
					q.ID = len(requests)
				}
				requests = append(requests, q)
				live = append(live, &twin{sequence: p.s.add(q.ID, q, false), keys: texts.keys(q)})
				continue
			}
			if len(live) == 0 {
				continue
			}
			i := rng.IntN(len(live))
			switch w := live[i]; {
			case w.blocks == nil:
				p.admit(w, rng)
				admitted += min(len(w.blocks), 1)
				hits += len(p.s.hits)
			case rng.IntN(4) > 0:
				p.extend(w, rng)
			default:
				p.free(w)
				if rng.IntN(3) > 0 {
					p.s.release(w.sequence)
					live = slices.Delete(live, i, i+1)
				}
			}
			p.compare()
		}
		for _, x := range p.s.pool.extents {
			splits += min(int(x.front), 1)
		}
	}
	if admitted < 50000 || hits < 50000 || splits < 1000 {
		t.Errorf("the scenarios are tame: %d admissions, %d extents found, %d split", admitted, hits, splits)
	}
}
