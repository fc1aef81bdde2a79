package sim

import "slices"

// kvBlock is one block of KV cache. Its links are indices into pool.blocks; 0, the
// null block, stands for none.
type kvBlock struct {
	refs int32
	// node and index say which tokens the block holds, if it is registered in
	// the prefix cache. Node 0 means that it is not; node private, that it is
	// under a key that nobody but its owner can ask for, and that the owner has
	// had no reason to.
	node, index int32
	// links are the neighbours in the queue of free blocks, and among the twins: the
	// blocks that hold the same tokens, in the order in which they were registered.
	links [2]struct{ prev, next int32 }
}

// The kinds of links.
const inQueue, asTwins = 0, 1

// blockList is a list of blocks by their links of one kind.
type blockList struct{ first, last int32 }

func (p *blockPool) push(c *blockList, kind int, id int32) {
	l := &p.blocks[id].links[kind]
	l.prev, l.next = c.last, 0
	if c.last != 0 {
		p.blocks[c.last].links[kind].next = id
	} else {
		c.first = id
	}
	c.last = id
}

func (p *blockPool) remove(c *blockList, kind int, id int32) {
	l := p.blocks[id].links[kind]
	if l.prev != 0 {
		p.blocks[l.prev].links[kind].next = l.next
	} else {
		c.first = l.next
	}
	if l.next != 0 {
		p.blocks[l.next].links[kind].prev = l.prev
	} else {
		c.last = l.prev
	}
}

// private marks blocks of a text without a name. Only a preempted sequence looks
// for its own text; until then there is no need to make such blocks findable.
const private int32 = -1

// blockPool hands out blocks from the head of a queue of free ones and takes them
// back. A freed block keeps its place in the prefix cache until it is handed out
// again, so the order of the queue decides what the cache forgets.
//
// The queue has three parts, from the head: blocks freed without a key that are
// to be reused first (a stack), blocks that were never handed out (a counter),
// and a list of the others, least recently freed first.
type blockPool struct {
	blocks []kvBlock
	size   int // of the pool, null block included
	free   int
	spare  []int32
	freed  blockList
	cache  tree

	unkeyedFirst bool
	// distinct says that the cache holds or will hold what somebody may look for, so that
	// it matters who has which block, and in which order they are reused. Until then
	// blocks are only counted, in free.
	distinct bool
}

func newPool(size int, unkeyedFirst bool) blockPool {
	return blockPool{blocks: make([]kvBlock, 1), size: size, free: size - 1, unkeyedFirst: unkeyedFirst,
		cache: tree{nodes: make([]prefixNode, 1, 64), named: make(map[text]int32)}}
}

// take hands out the block at the head of the queue, which must not be empty.
// What it held is forgotten.
func (p *blockPool) take() int32 {
	p.free--
	if n := len(p.spare); n > 0 {
		id := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.blocks[id].refs = 1
		return id
	}
	if id := len(p.blocks); id < p.size {
		if id == cap(p.blocks) {
			p.blocks = slices.Grow(p.blocks, min(3*id, p.size-id)) // pools of millions of blocks are copied less often
		}
		p.blocks = append(p.blocks, kvBlock{refs: 1})
		return int32(id)
	}
	id := p.freed.first
	p.remove(&p.freed, inQueue, id)
	b := &p.blocks[id]
	b.refs = 1
	switch {
	case b.node == private:
		b.node = 0
	case b.node > 0:
		p.unregister(id)
	}
	return id
}

// adopt adds a user to a cached block, which leaves the queue if it had none.
func (p *blockPool) adopt(id int32) {
	b := &p.blocks[id]
	if b.refs == 0 {
		p.free--
		p.remove(&p.freed, inQueue, id)
	}
	b.refs++
}

// drop removes a user from a block, which joins the queue if it was the last.
func (p *blockPool) drop(id int32) {
	b := &p.blocks[id]
	if b.refs--; b.refs > 0 {
		return
	}
	p.free++
	if b.node == 0 && p.unkeyedFirst {
		p.spare = append(p.spare, id)
		return
	}
	p.push(&p.freed, inQueue, id)
}

// register enters a block in the prefix cache as block index of node's text,
// behind those that hold the same tokens already.
func (p *blockPool) register(id, node, index int32) {
	b := &p.blocks[id]
	b.node, b.index = node, index
	p.push(p.cache.slot(node, index), asTwins, id)
	p.cache.nodes[node].refs++
}

// unregister takes a block out of the prefix cache.
func (p *blockPool) unregister(id int32) {
	b := &p.blocks[id]
	n := &p.cache.nodes[b.node]
	p.remove(&n.slots[b.index-n.first], asTwins, id)
	node := b.node
	b.node, b.index = 0, 0
	p.cache.release(node)
}
