package sim

// extent is a row of KV cache blocks that hold successive tokens of one text and that
// the same sequences use, so that all that happens to one of them happens to all. Its
// links are indices into pool.extents; 0 stands for none.
type extent struct {
	refs int32 // sequences that use it
	// node is the text in which the blocks end, root if they are not cached; they are its
	// blocks first up to end, counted from the beginning of the sequence.
	node, first, end int32
	// front is what was split off last; who used the whole before uses both.
	front int32
	// links are the neighbours in the queue of free blocks, and in the node's list.
	links [2]struct{ prev, next int32 }
}

func (x *extent) blocks() int { return int(x.end - x.first) }

// The kinds of links.
const inQueue, inNode = 0, 1

// extentList is a list of extents by their links of one kind.
type extentList struct{ first, last int32 }

// insert puts an extent into a list before another, at the end if that is 0.
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

// blockPool hands out blocks from the head of a queue of free ones and takes them
// back. A freed block keeps its place in the prefix cache until it is handed out
// again, so the order of the queue decides what the cache forgets.
//
// At the head of the queue are blank blocks, which are only counted: those that were
// never handed out, and those freed without a key that are to be reused first. Behind
// them come the others, least recently freed first; sequences free their last block
// first, so an extent is reused from its end.
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

// take hands out blocks from the head of the queue, which must have so many. What
// they held is forgotten.
func (p *blockPool) take(blocks int) {
	p.free -= blocks
	blank := min(blocks, p.blank)
	p.blank -= blank
	for blocks -= blank; blocks > 0; {
		id := p.queue.first
		x := &p.extents[id]
		n := min(blocks, x.blocks())
		blocks -= n
		if x.end -= int32(n); x.end == x.first {
			p.remove(&p.queue, inQueue, id)
			p.remove(&p.cache.nodes[x.node].extents, inNode, id)
			p.cache.release(x.node)
			p.idle = append(p.idle, id)
		}
	}
}

// add makes an extent before another one in the list of its node, at the end if that is 0.
func (p *blockPool) add(x extent, next int32) int32 {
	id := place(&p.extents, &p.idle, x)
	n := &p.cache.nodes[x.node]
	n.refs++
	p.insert(&n.extents, inNode, id, next)
	return id
}

// place puts a value where another one is idle, at the end if none is, and returns the index.
func place[T any](all *[]T, idle *[]int32, v T) int32 {
	if n := len(*idle); n > 0 {
		id := (*idle)[n-1]
		*idle, (*all)[id] = (*idle)[:n-1], v
		return id
	}
	*all = append(*all, v)
	return int32(len(*all) - 1)
}

// split makes an extent of its own of the blocks of another one before a number. The
// other keeps its place in the lists, with the new one where its blocks were.
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

// count is the number of blocks in the extents with which a sequence begins.
func (p *blockPool) count(held []int32) int32 {
	if n := len(held); n > 0 {
		return p.extents[held[n-1]].end
	}
	return 0
}

// adopt adds a user to a cached extent, which leaves the queue if it had none.
func (p *blockPool) adopt(id int32) {
	x := &p.extents[id]
	if x.refs == 0 {
		p.free -= x.blocks()
		p.remove(&p.queue, inQueue, id)
	}
	x.refs++
}

// drop removes a user from the extents with which a sequence begins, last one first.
// Those of which it was the last join the queue.
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

// register enters the next blocks of a sequence, up to a number, in the prefix cache as
// blocks of node's text, behind those that hold the same tokens already. It returns the
// extents that the sequence holds then: the last one grows if nobody else uses it and no
// other was registered after it, so that the order of a node's list is that of all blocks.
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

// find appends to hits, with which a sequence begins, the extents that hold its further
// blocks up to a number, as far as those are cached and end in a node. Of blocks that hold
// the same tokens it finds those that were registered first.
//
// One pass is enough: whoever frees a block frees the ones before it afterwards, so for
// every cached block there is one for the tokens before it that was registered earlier.
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
