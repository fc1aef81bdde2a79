package sim

// appointment is a request that something happens to at a time (seconds).
type appointment struct {
	at float64
	id int
}

func (a appointment) before(b appointment) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.id < b.id
}

// agenda hands out appointments in order of time, ties by request: those known
// from the start from a sorted list, those made on the way from a heap.
type agenda struct {
	fixed []appointment // sorted
	heap  []appointment
}

// next returns the earliest appointment.
func (a *agenda) next() (appointment, bool) {
	switch {
	case len(a.fixed) == 0 && len(a.heap) == 0:
		return appointment{}, false
	case len(a.heap) == 0 || len(a.fixed) > 0 && a.fixed[0].before(a.heap[0]):
		return a.fixed[0], true
	}
	return a.heap[0], true
}

// drop removes the earliest appointment.
func (a *agenda) drop() {
	if len(a.heap) == 0 || len(a.fixed) > 0 && a.fixed[0].before(a.heap[0]) {
		a.fixed = a.fixed[1:]
		return
	}
	h := a.heap
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	a.heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return
		}
		if child+1 < last && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// add makes an appointment.
func (a *agenda) add(at float64, id int) {
	h := append(a.heap, appointment{at, id})
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	a.heap = h
}
