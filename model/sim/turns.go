package sim

import "planner/sweep/workload"

// turns links the requests of conversations: who waits for whose end, and what
// the tokens that a later turn repeats are called.
type turns struct {
	// first and sibling are 1 + an index into the schedule, 0 for none: the
	// first request that waits for this one, and the next that waits for the
	// same. Empty slices mean that there are no conversations.
	first, sibling []int
	own, reply     []workload.Content
}

// findTurns reads the links from a schedule. A turn's prompt begins with its
// parent's shared segments, then has the parent's own prompt tokens and its reply
// as two more segments; their contents are the names.
func findTurns(requests []workload.Request) turns {
	var t turns
	for i := range requests {
		p := requests[i].Parent - 1
		if p < 0 {
			continue
		}
		if t.first == nil {
			n := len(requests)
			t = turns{make([]int, n), make([]int, n), make([]workload.Content, n), make([]workload.Content, n)}
		}
		t.sibling[i] = t.first[p]
		t.first[p] = i + 1
		if rest := requests[i].Shared; len(rest) > len(requests[p].Shared) {
			rest = rest[len(requests[p].Shared):]
			t.own[p] = rest[0].Content
			if len(rest) > 1 {
				t.reply[p] = rest[1].Content
			}
		}
	}
	return t
}

// names returns what a request's own prompt tokens and its output are called, 0
// for what nobody repeats.
func (t *turns) names(id int) (own, reply workload.Content) {
	if t.first == nil {
		return 0, 0
	}
	return t.own[id], t.reply[id]
}

// after returns the first request that waits for the end of another one, -1 for
// none, and beside the next that waits for the same.
func (t *turns) after(id int) int {
	if t.first == nil {
		return -1
	}
	return t.first[id] - 1
}

func (t *turns) beside(id int) int { return t.sibling[id] - 1 }
