package sim

import "slices"

// extent is a run of KV cache blocks that hold consecutive tokens of one text and are used by the
// same sequences, so that they are always freed and reused together. Its links are indices into
// pool.extents; 0 means none.
type extent struct {
	refs int32 // number of sequences that use it
	// node is the text in which the blocks end, root if they are not cached. The blocks are numbers
	// first to end-1 of the sequence.
	node, first, end int32
	// state says that the blocks hold a state instead, which nobody uses: it is a copy. It stands in no node's list.
	state bool
	// front is the part last split off the front; users of the whole extent use both parts.
	front int32
	// links are the neighbours in the queue of free blocks and in the node's list.
	links [2]struct{ prev, next int32 }
}

func (x *extent) blocks() int { return int(x.end - x.first) }

// The kinds of links.
const inQueue, inNode = 0, 1

// extentList is a list of extents, chained by one kind of link.
type extentList struct{ first, last int32 }

// insert puts an extent into a list before extent next, or at the end if next is 0.
func (p *blockPool) insert(c *extentList, kind int, id, next int32) {
	prev := c.last
	if next != 0 {
		n := &p.extents[next].links[kind]
		prev, n.prev = n.prev, id
	} else {
		c.last = id
	}
	if prev != 0 {
		p.extents[prev].links[kind].next = id
	} else {
		c.first = id
	}
	l := &p.extents[id].links[kind]
	l.prev, l.next = prev, next
}

func (p *blockPool) remove(c *extentList, kind int, id int32) {
	l := p.extents[id].links[kind]
	if l.prev != 0 {
		p.extents[l.prev].links[kind].next = l.next
	} else {
		c.first = l.next
	}
	if l.next != 0 {
		p.extents[l.next].links[kind].prev = l.prev
	} else {
		c.last = l.prev
	}
}

// blockPool hands out blocks from the head of a queue of free ones and takes them back. A freed
// block stays in the prefix cache until it is handed out again, so the order of the queue decides
// what the cache forgets.
//
// Blank blocks come first and are only counted: those never handed out and, with unkeyedFirst,
// those freed without a key. Behind them the others are queued, least recently freed first;
// sequences free their last block first, so an extent is reused from its end.
type blockPool struct {
	size    int // of the pool, null block included
	free    int
	blank   int
	queue   extentList
	extents []extent
	idle    []int32
	cache   tree

	unkeyedFirst bool
}

func newPool(size int, unkeyedFirst bool) blockPool {
	return blockPool{size: size, free: size - 1, blank: size - 1, extents: make([]extent, 1, 64), unkeyedFirst: unkeyedFirst,
		cache: tree{nodes: make([]prefixNode, 1, 64), named: make(map[text]int32)}}
}

// take hands out blocks, blank ones first, then from the head of the queue; free must be that many. Their
// contents leave the cache.
func (p *blockPool) take(blocks int) {
	p.free -= blocks
	for p.blank < blocks {
		id := p.queue.first
		x := &p.extents[id]
		n := min(blocks-p.blank, x.blocks())
		if x.state {
			n = x.blocks() // it is lost with the first of them
			states := &p.cache.nodes[x.node].states
			*states = slices.DeleteFunc(*states, func(k keptState) bool { return k.extent == id })
		}
		p.blank += n
		if x.end -= int32(n); x.end == x.first {
			p.remove(&p.queue, inQueue, id)
			if !x.state {
				p.remove(&p.cache.nodes[x.node].extents, inNode, id)
			}
			p.cache.release(x.node)
			p.idle = append(p.idle, id)
		}
	}
	p.blank -= blocks
}

// add creates an extent and puts it into its node's list before extent next, or at the end if next
// is 0.
func (p *blockPool) add(x extent, next int32) int32 {
	id := place(&p.extents, &p.idle, x)
	n := &p.cache.nodes[x.node]
	n.refs++
	p.insert(&n.extents, inNode, id, next)
	return id
}

// keepState keeps a copy of a state after so many blocks, the last of which ends in a node, in size blocks of the
// pool that are free. What they held leaves the cache when the next blocks are taken: until then fewer than none are
// blank. Without room, which vLLM would make by preempting requests, the state is not kept.
func (p *blockPool) keepState(node, blocks int32, from, size int) {
	n := &p.cache.nodes[node]
	i, found := slices.BinarySearchFunc(n.states, blocks, func(k keptState, b int32) int { return int(k.blocks - b) })
	switch {
	case found:
		p.useState(n.states[i])
	case p.free >= size:
		p.blank -= size
		id := place(&p.extents, &p.idle, extent{state: true, node: node, end: int32(size)})
		p.insert(&p.queue, inQueue, id, 0)
		n.refs++
		n.states = slices.Insert(n.states, i, keptState{blocks, id, from})
	}
}

// useState makes a state the last to be forgotten.
func (p *blockPool) useState(k keptState) {
	p.remove(&p.queue, inQueue, k.extent)
	p.insert(&p.queue, inQueue, k.extent, 0)
}

// place stores a value at an idle index, or at the end if there is none, and returns the index.
func place[T any](all *[]T, idle *[]int32, v T) int32 {
	if n := len(*idle); n > 0 {
		id := (*idle)[n-1]
		*idle, (*all)[id] = (*idle)[:n-1], v
		return id
	}
	*all = append(*all, v)
	return int32(len(*all) - 1)
}

// split makes the blocks of an extent before number at an extent of their own. The new extent comes
// directly before the rest in the node's list and directly behind it in the queue.
func (p *blockPool) split(id, at int32) (front int32) {
	x := p.extents[id]
	x.end = at
	front = p.add(x, id)
	b := &p.extents[id]
	b.first, b.front = at, front
	if b.refs == 0 {
		p.insert(&p.queue, inQueue, front, b.links[inQueue].next)
	}
	return front
}

// count returns the number of blocks in the extents that a sequence begins with.
func (p *blockPool) count(held []int32) int32 {
	if n := len(held); n > 0 {
		return p.extents[held[n-1]].end
	}
	return 0
}

// adopt adds a user to a cached extent and takes it off the queue if it had none.
func (p *blockPool) adopt(id int32) {
	x := &p.extents[id]
	if x.refs == 0 {
		p.free -= x.blocks()
		p.remove(&p.queue, inQueue, id)
	}
	x.refs++
}

// drop removes a user from the extents that a sequence begins with, last one first. Those left
// without a user join the queue.
func (p *blockPool) drop(held []int32) {
	for i := len(held) - 1; i >= 0; i-- {
		begin := p.count(held[:i])
		for id, at := held[i], int32(-1); at != begin; {
			x := &p.extents[id]
			if x.refs--; x.refs == 0 {
				p.free += x.blocks()
				p.insert(&p.queue, inQueue, id, 0)
			}
			id, at = x.front, x.first
		}
	}
}

// dropUnkeyed takes back blocks that are not cached.
func (p *blockPool) dropUnkeyed(blocks int) {
	p.free += blocks
	if p.unkeyedFirst {
		p.blank += blocks
	} else if blocks > 0 {
		p.insert(&p.queue, inQueue, p.add(extent{node: root, end: int32(blocks)}, 0), 0)
	}
}

// register enters a sequence's next blocks, up to number end, in the prefix cache under a node,
// after those already registered with the same tokens. It returns the extents that the sequence
// then holds: the last one grows if it has no other user and is the last in the node's list, so
// that the list keeps the order in which blocks were registered.
func (p *blockPool) register(held []int32, node, end int32) []int32 {
	if n := len(held); n > 0 {
		id := held[n-1]
		if x := &p.extents[id]; x.refs == 1 && p.cache.nodes[node].extents.last == id {
			x.end = end
			return held
		}
	}
	return append(held, p.add(extent{refs: 1, node: node, first: p.count(held), end: end}, 0))
}

// find extends hits, the cached extents that a sequence begins with, by those that end in a node
// and continue the sequence without a gap, up to a block number. Of blocks with the same tokens it
// finds the one registered first.
//
// One pass is enough: a sequence frees its later blocks first, so for every cached block one with
// the preceding tokens was registered earlier.
func (p *blockPool) find(hits []int32, node, to int32) []int32 {
	at := p.count(hits)
	for id := p.cache.nodes[node].extents.first; id != 0 && at < to; id = p.extents[id].links[inNode].next {
		x := &p.extents[id]
		if x.first > at || x.end <= at {
			continue
		}
		if x.first < at {
			p.split(id, at)
		}
		hit := id
		if p.extents[id].end > to {
			hit = p.split(id, to)
		}
		hits, at = append(hits, hit), p.extents[hit].end
	}
	return hits
}
