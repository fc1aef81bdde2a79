package sim

// block is one block of KV cache. Its links are indices into pool.blocks; 0, the
// null block, stands for none.
type block struct {
	refs int32
	// prev and next are the neighbours in the queue of free blocks. The head's
	// prev, and both outside the queue, mean nothing.
	prev, next int32
	// node and index say which tokens the block holds, if it is registered in
	// the prefix cache. Node 0 means that it is not; node private, that it is
	// under a key that nobody but its owner can ask for, and that the owner has
	// had no reason to.
	node, index int32
	// twinPrev and twinNext link the blocks that hold the same tokens, in the
	// order in which they were registered.
	twinPrev, twinNext int32
}

// private marks blocks of a text without a name. Only a preempted sequence looks
// for its own text; until then there is no need to make such blocks findable.
const private int32 = -1

// pool hands out blocks from the head of a queue of free ones and takes them
// back. A freed block keeps its place in the prefix cache until it is handed out
// again, so the order of the queue decides what the cache forgets.
//
// The queue has three parts, from the head: blocks freed without a key that are
// to be reused first (a stack), blocks that were never handed out (a counter),
// and a list of the others, least recently freed first.
type pool struct {
	blocks []block
	size   int // of the pool, null block included
	free   int
	spare  []int32
	oldest int32
	newest int32
	cache  tree

	unkeyedFirst bool
}

func newPool(size int, unkeyedFirst bool) pool {
	return pool{blocks: make([]block, 1, min(size, 1<<15)), size: size, free: size - 1, unkeyedFirst: unkeyedFirst, cache: newTree()}
}

// take hands out the block at the head of the queue, which must not be empty.
// What it held is forgotten.
func (p *pool) take() int32 {
	p.free--
	if n := len(p.spare); n > 0 {
		id := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.blocks[id].refs = 1
		return id
	}
	if id := len(p.blocks); id < p.size {
		p.blocks = append(p.blocks, block{refs: 1})
		return int32(id)
	}
	id := p.oldest
	b := &p.blocks[id]
	b.refs = 1
	p.oldest = b.next
	if b.next == 0 {
		p.newest = 0
	}
	switch {
	case b.node == private:
		b.node = 0
	case b.node > 0:
		p.unregister(id)
	}
	return id
}

// adopt adds a user to a cached block, which leaves the queue if it had none.
func (p *pool) adopt(id int32) {
	b := &p.blocks[id]
	if b.refs == 0 {
		p.free--
		if id != p.oldest {
			p.blocks[b.prev].next = b.next
		} else {
			p.oldest = b.next
		}
		switch {
		case b.next != 0:
			p.blocks[b.next].prev = b.prev
		case p.oldest == 0:
			p.newest = 0
		default:
			p.newest = b.prev
		}
	}
	b.refs++
}

// drop removes a user from a block, which joins the queue if it was the last.
func (p *pool) drop(id int32) {
	b := &p.blocks[id]
	if b.refs--; b.refs > 0 {
		return
	}
	p.free++
	if b.node == 0 && p.unkeyedFirst {
		p.spare = append(p.spare, id)
		return
	}
	b.prev, b.next = p.newest, 0
	if p.newest != 0 {
		p.blocks[p.newest].next = id
	} else {
		p.oldest = id
	}
	p.newest = id
}

// register enters a block in the prefix cache as block index of node's text,
// behind those that hold the same tokens already.
func (p *pool) register(id, node, index int32) {
	b := &p.blocks[id]
	b.node, b.index = node, index
	s := p.cache.slot(node, index)
	b.twinPrev, b.twinNext = s.last, 0
	if s.last != 0 {
		p.blocks[s.last].twinNext = id
	} else {
		s.first = id
	}
	s.last = id
	p.cache.nodes[node].refs++
}

// unregister takes a block out of the prefix cache.
func (p *pool) unregister(id int32) {
	b := &p.blocks[id]
	n := &p.cache.nodes[b.node]
	s := &n.slots[b.index-n.first]
	if b.twinPrev != 0 {
		p.blocks[b.twinPrev].twinNext = b.twinNext
	} else {
		s.first = b.twinNext
	}
	if b.twinNext != 0 {
		p.blocks[b.twinNext].twinPrev = b.twinPrev
	} else {
		s.last = b.twinPrev
	}
	node := b.node
	b.node, b.index, b.twinPrev, b.twinNext = 0, 0, 0, 0
	p.cache.release(node)
}
