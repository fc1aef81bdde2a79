// Package heap implements a priority queue.
package heap

// Heap is a binary heap with the first value on top.
type Heap[T interface{ Before(T) bool }] []T

// Push adds a value.
func (h *Heap[T]) Push(v T) {
	*h = append(*h, v)
	h.up(len(*h) - 1)
}

// Remove takes out the i-th value, 0 being the first.
func (h *Heap[T]) Remove(i int) T {
	old := *h
	last, v := len(old)-1, old[i]
	old[i] = old[last]
	*h = old[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	return v
}

func (h Heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].Before(h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (h Heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[right].Before(h[child]) {
			child = right
		}
		if !h[child].Before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
