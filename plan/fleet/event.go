package fleet

import "time"

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

// events are a heap: each comes before the two at 2i+1 and 2i+2.
type events struct {
	list  []event
	order int
}

func (e *events) before(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (f *fleet) at(t float64, e event) {
	h := &f.events
	e.at, e.order = t, h.order
	h.order++
	h.list = append(h.list, e)
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
