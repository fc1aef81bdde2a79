package fleet

import (
	"cmp"
	"slices"
	"time"
)

// event happens at a time; of simultaneous events the one scheduled first comes first.
type event struct {
	at    float64
	order int
	do    func()
}

// Before orders events by time, then by the order of scheduling.
func (e event) Before(o event) bool {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.order, o.order)) < 0
}

func (f *fleetRun) at(t float64, do func()) {
	f.events.Push(event{t, f.announced, do})
	f.announced++
}

// drained removes a draining replica once it has no requests left or its grace period is over.
func (f *fleetRun) drained(r *replica) {
	if r.state == draining && (r.flight.requests == 0 || f.now >= r.until) {
		f.remove(r)
		f.place()
		f.note()
	}
}

// over ends a stage unless the next one must wait for its last request.
func (f *fleetRun) over(stage int) {
	if stage == f.stage && (!f.s.Stages[stage].Drain || f.lefts[stage] == 0) {
		f.enter(stage + 1)
	}
}

// fail makes a node unavailable until it is repaired.
func (f *fleetRun) fail(n *gpuNode) {
	f.countLoss(n)
	f.lose(n)
	n.away, n.warm = true, false
	f.at(f.now+f.s.Nodes.Repair.Seconds(), func() {
		n.away = false
		f.after(f.s.Nodes.MTBF, n, f.fail)
		f.ask(f.asked)
	})
	f.ask(f.asked)
}

// leave gives a node notice that it will be reclaimed, and lets its replicas drain until then.
func (f *fleetRun) leave(n *gpuNode) {
	notice := f.s.Nodes.Notice.Seconds()
	n.leaving = true
	f.countLoss(n)
	for _, r := range slices.Clone(f.replicas) {
		if r.node == n && r.state <= ready {
			f.lost++
			f.dismiss(r, notice)
		}
	}
	f.at(f.now+notice, func() {
		f.lose(n)
		n.leaving, n.warm = false, false
		f.after(f.s.Nodes.SpotMTBF, n, f.leave)
		f.ask(f.asked)
	})
	f.ask(f.asked)
}

// tell reports the time that has passed to the watcher if it is at least the given time.
func (f *fleetRun) tell(least time.Duration) {
	if passed := f.now - f.watched; f.s.Watch != nil && passed >= least.Seconds() {
		f.s.Watch(seconds(passed))
		f.watched = f.now
	}
}
