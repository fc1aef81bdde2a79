package fleet

import (
	"container/heap"
	"time"
)

// eventKind is what happens to a fleet beside requests that arrive and end.
type eventKind uint8

const (
	isReady eventKind = iota
	drainEnds
	stageEnds
	sent
	queueGivesUp
	scrape
	decide
	nodeFails
	nodeBack
	nodeNoticed
	nodeTaken
)

// event is something that happens at a time, ties in the order in which they came up.
type event struct {
	at      float64
	order   int
	kind    eventKind
	replica *replica
	node    *node
	request int
	stage   int
}

// events is a heap.
type events struct {
	list  []event
	order int
}

func (e *events) Len() int { return len(e.list) }

func (e *events) Less(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }

// Push adds an event, as container/heap asks.
func (e *events) Push(x any) { e.list = append(e.list, x.(event)) }

// Pop removes the last event, as container/heap asks.
func (e *events) Pop() any {
	last := len(e.list) - 1
	x := e.list[last]
	e.list = e.list[:last]
	return x
}

// at lets something happen at a time.
func (f *fleet) at(t float64, e event) {
	e.at, e.order = t, f.events.order
	f.events.order++
	heap.Push(&f.events, e)
}

// handle lets an event happen.
func (f *fleet) handle(e event) {
	switch e.kind {
	case isReady:
		if e.replica.state == starting {
			f.serve(e.replica)
		}
	case drainEnds:
		if r := e.replica; r.state == draining && (r.flight.requests == 0 || f.now >= r.until) {
			f.remove(r)
			f.place()
			f.note()
		}
	case stageEnds:
		if st := f.s.Stages; e.stage == f.stage && (!st[f.stage].Drain || f.lefts[f.stage] == 0) {
			f.enter(f.stage + 1)
		}
	case sent:
		f.send(e.request)
	case queueGivesUp:
		f.giveUp(e.request)
	case scrape:
		f.monitor.scrape(f)
	case decide:
		f.decide()
	default:
		f.handleNode(e)
	}
}

// handleNode lets a node fail, come back, be told that it will be taken, or be taken.
func (f *fleet) handleNode(e event) {
	n, spec := e.node, &f.s.Nodes
	switch e.kind {
	case nodeFails:
		f.lose(n)
		n.away, n.warm = true, false
		f.at(f.now+spec.Repair.Seconds(), event{kind: nodeBack, node: n})
	case nodeBack:
		n.away = false
		f.failNext(n)
	case nodeNoticed:
		n.leaving = true
		for _, r := range append([]*replica(nil), f.replicas...) {
			if r.node == n && r.state <= ready {
				f.lost++
				f.dismiss(r, spec.Notice.Seconds())
			}
		}
		f.at(f.now+spec.Notice.Seconds(), event{kind: nodeTaken, node: n})
	case nodeTaken:
		f.lose(n)
		n.leaving, n.warm = false, false
		f.spotNext(n)
	}
	f.ask(f.asked)
}

// tell tells a watcher of the time that has passed, at least so much of it.
func (f *fleet) tell(least time.Duration) {
	if passed := f.now - f.watched; f.s.Watch != nil && passed >= least.Seconds() {
		f.s.Watch(seconds(passed))
		f.watched = f.now
	}
}
