package sim

// stopHeap is a binary heap of settled sequences, the next one to stop on top;
// among those that stop together the one admitted first.
type stopHeap []*Sequence

func before(a, b *Sequence) bool {
	if a.settled.stop != b.settled.stop {
		return a.settled.stop < b.settled.stop
	}
	return a.order < b.order
}

func (h *stopHeap) push(r *Sequence) {
	*h = append(*h, r)
	h.up(len(*h) - 1)
}

// remove takes a sequence out of the heap. It is on top unless its client gave
// up, so looking for it is cheap.
func (h *stopHeap) remove(r *Sequence) {
	old := *h
	i := 0
	for old[i] != r {
		i++
	}
	last := len(old) - 1
	old[i] = old[last]
	old[last] = nil
	*h = old[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h stopHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !before(h[i], h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (h stopHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && before(h[right], h[child]) {
			child = right
		}
		if !before(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
