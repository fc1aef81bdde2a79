package sim

import (
	"math"

	"planner/sweep/workload"
)

// forever is the end of a span that has none.
const forever = math.MaxInt

// tree identifies the tokens up to the end of every cached block, as vLLM does with a chain of
// hashes, but exactly: a text is a path of contents, each given by its identity and the token at
// which it starts, and a block is given by the node in which it ends and its number in the
// sequence. Two blocks have the same node and number if and only if they and all blocks before them
// hold the same tokens.
//
// Nodes are reference-counted by sequences, extents and child nodes and reused when unreferenced,
// so the tree stays as small as the pool.
type tree struct {
	nodes []prefixNode
	idle  []int32
	named map[text]int32
}

// text identifies a node: content that follows the text of the parent and starts at a token.
type text struct {
	content workload.Content
	parent  int32
	start   int32
}

// prefixNode is one content on the path of a text.
type prefixNode struct {
	text text
	refs int32
	// extents holds the cached blocks that end in it, in order of registration.
	extents extentList
	// writer is the steady sequence that is generating this content; its newest blocks may not be
	// registered yet.
	writer *sequence
	// states are those kept after blocks that end in it, in the order of the blocks.
	states []keptState
}

// keptState is a state of a model's recurrent layers in the cache: after how many blocks of the sequence, from
// which step on others can begin with it, and the extent of the blocks that it takes.
type keptState struct {
	blocks, extent int32
	from           int
}

// root is the empty text. It is also the node of blocks that are not cached.
const root int32 = 0

// enter returns the node of content behind parent, created if necessary, with a reference for the
// caller. Content 0 is text that no other request can name: it gets a new node every time.
func (t *tree) enter(parent int32, content workload.Content, start int) int32 {
	key := text{content, parent, int32(start)}
	if content != 0 {
		if id, ok := t.named[key]; ok {
			t.nodes[id].refs++
			return id
		}
	}
	id := place(&t.nodes, &t.idle, prefixNode{text: key, refs: 1})
	t.nodes[parent].refs++
	if content != 0 {
		t.named[key] = id
	}
	return id
}

// release drops a reference to a node and removes nodes without any.
func (t *tree) release(id int32) {
	for id != root {
		n := &t.nodes[id]
		if n.refs--; n.refs > 0 {
			return
		}
		if n.text.content != 0 {
			delete(t.named, n.text)
		}
		t.idle = append(t.idle, id)
		id = n.text.parent
	}
}

// nodeSpan is the part of a sequence that lies in one node: the tokens from the end of the previous
// span up to end.
type nodeSpan struct {
	node int32
	end  int
}

// enterPath returns the nodes of a sequence's prompt and output.
func (t *tree) enterPath(q *workload.Request, path []nodeSpan) []nodeSpan {
	parent, at := root, 0
	for _, s := range q.Shared {
		if tokens := min(s.Tokens, q.Prompt+q.Output-at); tokens > 0 {
			parent = t.enter(parent, s.Content, at)
			at += tokens
			path = append(path, nodeSpan{parent, at})
		}
	}
	if at < q.Prompt && q.Own != 0 {
		parent = t.enter(parent, q.Own, at)
		at = q.Prompt
		path = append(path, nodeSpan{parent, at})
	}
	// Without names, own prompt tokens and output are one anonymous text. If only the output is
	// named, the own tokens still need a node.
	if at < q.Prompt && q.Generated != 0 {
		parent = t.enter(parent, 0, at)
		at = q.Prompt
		path = append(path, nodeSpan{parent, at})
	}
	return append(path, nodeSpan{t.enter(parent, q.Generated, at), forever})
}
