package sim

import "planner/sweep/workload"

// turns links the requests of conversations: who waits for whose end.
type turns struct {
	// first and sibling are 1 + an index into the schedule, 0 for none: the
	// first request that waits for this one, and the next that waits for the
	// same. Empty slices mean that there are no conversations.
	first, sibling []int
}

// findTurns reads the links from a schedule.
func findTurns(requests []workload.Request) turns {
	var t turns
	for i := range requests {
		p := requests[i].Parent - 1
		if p < 0 {
			continue
		}
		if t.first == nil {
			t = turns{make([]int, len(requests)), make([]int, len(requests))}
		}
		t.sibling[i] = t.first[p]
		t.first[p] = i + 1
	}
	return t
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
