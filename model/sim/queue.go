package sim

// queue holds the waiting sequences, first come, first served; preempted ones
// return to the front.
type queue struct {
	items []*Sequence
	head  int // items[:head] are gone
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) front() *Sequence { return q.items[q.head] }

func (q *queue) pushBack(r *Sequence) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

func (q *queue) pushFront(r *Sequence) {
	if q.head == 0 {
		// Make room for more than one: a step may preempt several.
		n := len(q.items)
		gap := n/8 + 8
		q.items = append(q.items, make([]*Sequence, gap)...)
		copy(q.items[gap:], q.items[:n])
		q.head = gap
	}
	q.head--
	q.items[q.head] = r
}

func (q *queue) popFront() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// remove takes a sequence out of the middle. Those that give up have mostly
// waited longest, so the search begins at the front and shifts what it passed.
func (q *queue) remove(r *Sequence) {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i] == r {
			copy(q.items[q.head+1:i+1], q.items[q.head:i])
			q.popFront()
			return
		}
	}
}
