package fleet

import (
	"slices"
	"time"
)

// event is something that happens at a time, ties in the order in which they came up.
type event struct {
	at    float64
	order int
	do    func()
}

// events are a heap: each comes before the two at 2i+1 and 2i+2.
type events struct {
	list  []event
	order int
}

func (e *events) before(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (f *fleet) at(t float64, do func()) {
	h := &f.events
	h.list = append(h.list, event{t, h.order, do})
	h.order++
	for i := len(h.list) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h.list[i], h.list[(i-1)/2] = h.list[(i-1)/2], h.list[i]
	}
}

func (e *events) pop() event {
	first, last := e.list[0], len(e.list)-1
	e.list[0] = e.list[last]
	e.list = e.list[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if e.before(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		e.list[i], e.list[least] = e.list[least], e.list[i]
		i = least
	}
}

// drained removes a replica that drains once it has nothing to do, or at the end of its grace.
func (f *fleet) drained(r *replica) {
	if r.state == draining && (r.flight.requests == 0 || f.now >= r.until) {
		f.remove(r)
		f.place()
		f.note()
	}
}

// over ends a stage, unless the next one waits for its last request.
func (f *fleet) over(stage int) {
	if stage == f.stage && (!f.s.Stages[stage].Drain || f.lefts[stage] == 0) {
		f.enter(stage + 1)
	}
}

// fail takes a node away until it is repaired.
func (f *fleet) fail(n *node) {
	f.lose(n)
	n.away, n.warm = true, false
	f.at(f.now+f.s.Nodes.Repair.Seconds(), func() {
		n.away = false
		f.failNext(n)
		f.ask(f.asked)
	})
	f.ask(f.asked)
}

// leave tells a node that it will be taken, and lets its replicas drain until then.
func (f *fleet) leave(n *node) {
	notice := f.s.Nodes.Notice.Seconds()
	n.leaving = true
	for _, r := range slices.Clone(f.replicas) {
		if r.node == n && r.state <= ready {
			f.lost++
			f.dismiss(r, notice)
		}
	}
	f.at(f.now+notice, func() {
		f.lose(n)
		n.leaving, n.warm = false, false
		f.spotNext(n)
		f.ask(f.asked)
	})
	f.ask(f.asked)
}

// tell tells a watcher of the time that has passed, at least so much of it.
func (f *fleet) tell(least time.Duration) {
	if passed := f.now - f.watched; f.s.Watch != nil && passed >= least.Seconds() {
		f.s.Watch(seconds(passed))
		f.watched = f.now
	}
}
