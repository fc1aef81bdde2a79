package load

import (
	"slices"
	"sync"

	"planner/sweep/workload"
)

// echo keeps what the engine answered within conversations, so that later turns
// carry it in their prompts as a user's client does, and find it in the prefix
// cache. Where the engine does not tell the ids of what it generated, a prompt
// of ids carries others in their place.
type echo struct {
	mu  sync.Mutex
	all map[workload.Content]said
	// unnamed counts the answers without token ids.
	unnamed int
}

// said is one answer: its text, or its token ids.
type said struct {
	text string
	ids  []int32
}

// keep notes the answer to r, which was received as g.
func (e *echo) keep(r *workload.Request, g *received) {
	if r.Generated == 0 {
		return
	}
	s := said{text: string(g.text), ids: slices.Clone(g.ids)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[workload.Content]said{}
	}
	e.all[r.Generated] = s
	if len(s.ids) == 0 {
		e.unnamed++
	}
}

// of returns the answer with a content; false when there is none.
func (e *echo) of(c workload.Content) (said, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.all[c]
	return s, ok
}
