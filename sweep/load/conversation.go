package load

import (
	"slices"
	"sync"

	"planner/sweep/workload"
)

// conversations holds back the turns that wait for the end of the one before,
// and keeps what the engine answered, so that later turns carry it in their
// prompts as a user's client does, and find it in the prefix cache. Where the
// engine does not tell the ids of what it generated, a prompt of ids carries
// others in their place.
//
// Turns are known by their ID plus one, as Parent names them. A nil pointer is
// traffic without conversations.
type conversations struct {
	// awaited are the turns that another one waits for.
	awaited map[int]bool

	mu      sync.Mutex
	ended   map[int]bool
	waiting map[int][]*message
	// answers holds what was said, by its content.
	answers map[workload.Content]priorAnswer
	// unnamed counts the answers without token ids.
	unnamed int
}

// priorAnswer is an answer as a later turn repeats it.
type priorAnswer struct {
	text string
	ids  []int32
}

func newConversations(schedule []workload.Request) *conversations {
	c := &conversations{awaited: map[int]bool{}, ended: map[int]bool{}, waiting: map[int][]*message{}, answers: map[workload.Content]priorAnswer{}}
	for i := range schedule {
		if p := schedule[i].Parent; p > 0 {
			c.awaited[p] = true
		}
	}
	return c
}

// awaits reports whether another turn waits for the end of this one.
func (c *conversations) awaits(id int) bool { return c.awaited[id+1] }

// hold reports whether the message must wait for parent, and keeps it if so.
func (c *conversations) hold(parent int, m *message) bool {
	if parent == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended[parent] {
		return false
	}
	c.waiting[parent] = append(c.waiting[parent], m)
	return true
}

// end notes that a turn ended, and what was answered, and returns the messages
// that waited for it.
func (c *conversations) end(r *workload.Request, answer *received) []*message {
	turn := r.ID + 1
	if !c.awaited[turn] {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Generated != 0 {
		c.answers[r.Generated] = priorAnswer{string(answer.text), slices.Clone(answer.ids)}
		if len(answer.ids) == 0 {
			c.unnamed++
		}
	}
	c.ended[turn] = true
	released := c.waiting[turn]
	delete(c.waiting, turn)
	return released
}

// answer returns the answer with a content, empty where there is none.
func (c *conversations) answer(of workload.Content) priorAnswer {
	if c == nil {
		return priorAnswer{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[of]
}
