package sim

import (
	"cmp"

	"planner/internal/heap"
)

// futureEvent is something that is to happen to a request: at a time in seconds, or in
// a step of that number.
type futureEvent struct {
	at float64
	id int
}

// Before orders events by time, ties by request.
func (e futureEvent) Before(f futureEvent) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	return e.id < f.id
}

func (e futureEvent) compare(f futureEvent) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.id, f.id))
}

// eventList hands out events in order: those known from the start, of which a run has
// many, from a sorted list, those that come up on the way from a heap.
type eventList struct {
	known []futureEvent // sorted
	added heap.Heap[futureEvent]
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
	l.added.Remove(0)
}

func (l *eventList) knownFirst() bool {
	return len(l.added) == 0 || len(l.known) > 0 && l.known[0].Before(l.added[0])
}
