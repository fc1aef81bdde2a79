package load

import (
	"sync"
	"time"

	"planner/sweep/workload"
)

// turns holds back the requests that wait for the end of another one.
type turns struct {
	mu sync.Mutex
	// ended is when a request ended, by its ID plus one, as Parent names it; only
	// requests that somebody waits for are entered.
	ended   map[int]time.Duration
	awaited map[int]bool
	waiting map[int][]*message
}

func newTurns(schedule []workload.Request) *turns {
	t := &turns{ended: map[int]time.Duration{}, awaited: map[int]bool{}, waiting: map[int][]*message{}}
	for i := range schedule {
		if p := schedule[i].Parent; p > 0 {
			t.awaited[p] = true
		}
	}
	return t
}

// awaits reports whether another request waits for the end of this one.
func (t *turns) awaits(id int) bool { return t.awaited[id+1] }

// hold reports whether the message must wait for parent, and keeps it if so.
func (t *turns) hold(parent int, m *message) bool {
	if parent == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, over := t.ended[parent]; over {
		return false
	}
	t.waiting[parent] = append(t.waiting[parent], m)
	return true
}

// end notes that a request ended and returns those that waited for it.
func (t *turns) end(id int, now time.Duration) []*message {
	if len(t.awaited) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id++
	if !t.awaited[id] {
		return nil
	}
	t.ended[id] = now
	released := t.waiting[id]
	delete(t.waiting, id)
	return released
}
