package sim

import "cmp"

// futureEvent is something that is to happen to a request: at a time in seconds, or in
// a step of that number.
type futureEvent struct {
	at float64
	id int
}

func (e futureEvent) before(f futureEvent) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	return e.id < f.id
}

func (e futureEvent) compare(f futureEvent) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.id, f.id))
}

// eventHeap is a binary heap with the earliest event on top, ties by request.
type eventHeap []futureEvent

func (h *eventHeap) push(e futureEvent) {
	*h = append(*h, e)
	h.up(len(*h) - 1)
}

// remove takes out the i-th element, 0 being the earliest.
func (h *eventHeap) remove(i int) {
	old := *h
	last := len(old) - 1
	old[i] = old[last]
	*h = old[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h eventHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (h eventHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// eventList hands out events in order: those known from the start, of which a run has
// many, from a sorted list, those that come up on the way from a heap.
type eventList struct {
	known []futureEvent // sorted
	added eventHeap
}

// next returns the earliest event.
func (l *eventList) next() (futureEvent, bool) {
	switch {
	case len(l.known) == 0 && len(l.added) == 0:
		return futureEvent{}, false
	case l.knownFirst():
		return l.known[0], true
	}
	return l.added[0], true
}

// drop removes the earliest event.
func (l *eventList) drop() {
	if l.knownFirst() {
		l.known = l.known[1:]
		return
	}
	l.added.remove(0)
}

func (l *eventList) knownFirst() bool {
	return len(l.added) == 0 || len(l.known) > 0 && l.known[0].before(l.added[0])
}
