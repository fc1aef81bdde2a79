package serve

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"planner/sweep/workload"
)

// Fixed answers without a model: a first token after one time, every further one
// after another.
type Fixed struct {
	// TTFT is drawn for each request, TPOT for each token behind the first.
	TTFT, TPOT Law
	// Slots is how many requests are served at once; the others wait in one
	// queue, first come, first served. 0 serves all at once. With one slot, no
	// TPOT and a TTFT that is constant or exponential, Poisson arrivals make the
	// queues M/D/1 and M/M/1.
	Slots int
}

// fixed is the engine of a Fixed.
type fixed struct {
	law      Fixed
	seed     uint64
	requests int
	jobs     map[int]*job
	due      jobHeap // those in service, by next token
	queue    []*job
	// idle holds the times since when slots that serve nobody are free.
	idle []time.Duration
}

// job is one request in a fixed engine.
type job struct {
	id       int
	arrived  time.Duration
	started  time.Duration
	next     time.Duration
	left     int // tokens
	begun    bool
	rng      *rand.Rand
	position int // in the heap; -1 outside
}

func newFixed(law Fixed, seed uint64) *fixed {
	return &fixed{law: law, seed: seed, jobs: map[int]*job{}, idle: make([]time.Duration, law.Slots)}
}

// Submit puts a request at the end of the queue; a fixed engine serves any.
func (f *fixed) Submit(at time.Duration, q workload.Request) (int, bool) {
	j := &job{id: f.requests, arrived: at, left: q.Output, position: -1, rng: rand.New(rand.NewPCG(f.seed, uint64(f.requests)))}
	f.requests++
	f.jobs[j.id] = j
	f.queue = append(f.queue, j)
	f.start()
	return j.id, true
}

// start serves the queue as far as there are slots.
func (f *fixed) start() {
	for len(f.queue) > 0 {
		j := f.queue[0]
		j.started = j.arrived
		if f.law.Slots > 0 {
			if len(f.idle) == 0 {
				return
			}
			// The slot that is free for longest; it may have become free after
			// the request came.
			first := slices.Index(f.idle, slices.Min(f.idle))
			j.started = max(j.arrived, f.idle[first])
			f.idle = slices.Delete(f.idle, first, first+1)
		}
		f.queue = f.queue[1:]
		j.next = j.started + f.law.TTFT.draw(j.rng)
		heap.Push(&f.due, j)
	}
}

// end takes a request out of service or out of the queue.
func (f *fixed) end(at time.Duration, j *job) {
	delete(f.jobs, j.id)
	if j.position < 0 {
		i := slices.Index(f.queue, j)
		f.queue = slices.Delete(f.queue, i, i+1)
		return
	}
	heap.Remove(&f.due, j.position)
	if f.law.Slots > 0 {
		f.idle = append(f.idle, at)
		f.start()
	}
}

// Cancel frees the slot of a request, or its place in the queue.
func (f *fixed) Cancel(at time.Duration, request int) {
	if j := f.jobs[request]; j != nil {
		f.end(at, j)
	}
}

// Advance draws the tokens up to a time in their order, whichever request they are of.
func (f *fixed) Advance(to time.Duration, tokens []token) ([]token, time.Duration) {
	for len(f.due) > 0 && f.due[0].next <= to {
		j := f.due[0]
		j.left--
		at := j.next
		tokens = append(tokens, token{request: j.id, at: at, first: !j.begun, last: j.left == 0, wait: j.started - j.arrived, cached: -1})
		j.begun = true
		if j.left == 0 {
			f.end(at, j)
			continue
		}
		j.next += f.law.TPOT.draw(j.rng)
		heap.Fix(&f.due, 0)
	}
	if len(f.due) == 0 {
		return tokens, never
	}
	return tokens, f.due[0].next
}

// Load counts requests; there is no memory.
func (f *fixed) Load() load { return load{running: len(f.due), waiting: len(f.queue)} }

// jobHeap orders jobs by their next token, those that came first before others.
type jobHeap []*job

// Len counts the jobs in service.
func (h jobHeap) Len() int { return len(h) }

// Less orders by the next token, and jobs whose tokens fall together by arrival.
func (h jobHeap) Less(a, b int) bool {
	if h[a].next != h[b].next {
		return h[a].next < h[b].next
	}
	return h[a].id < h[b].id
}

// Swap exchanges two jobs, which know their places.
func (h jobHeap) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].position, h[b].position = a, b
}

// Push adds a *job at the end; it is for package heap.
func (h *jobHeap) Push(x any) {
	j := x.(*job)
	j.position = len(*h)
	*h = append(*h, j)
}

// Pop takes the job at the end out; it is for package heap.
func (h *jobHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	j.position = -1
	return j
}
