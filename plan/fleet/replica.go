package fleet

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"planner/internal/list"
	"planner/model/sim"
	"planner/sweep/measure"
)

// replicaState is a stage in the life of a replica.
type replicaState int

const (
	pending  replicaState = iota // not placed on a node
	starting                     // placed
	ready
	draining
	gone
)

// replica is one replica from the moment it is asked for.
type replica struct {
	number int
	state  replicaState
	node   *gpuNode
	engine *sim.FleetEngine
	// readyAt is when it becomes ready, until when a draining one is removed at the latest.
	readyAt, until float64
	// replaces says that it replaces a lost replica.
	replaces bool
	// flight is its load as the router counts it: requests, their prompt tokens, and the prompt tokens of
	// requests without a first token.
	flight struct{ requests, tokens, prefill int }
	// arrived, promptTokens and outputTokens are counters since its start, as exposed on its metrics endpoint.
	arrived, promptTokens, outputTokens int
	samples                             []scrape // newest last, see monitor.go
}

// gpuNode is a machine, or its replacement.
type gpuNode struct {
	used int // slots in use
	warm bool
	// away says that it is being repaired, leaving that it will be reclaimed.
	away, leaving bool
	rng           *rand.Rand
}

// ask adjusts the number of replicas: it places missing ones and dismisses surplus ones in the order of a
// ReplicaSet, those farthest from ready and then the newest first.
func (f *fleetRun) ask(want int) {
	f.asked = want
	have := list.Filter(f.replicas, func(r *replica) bool { return r.state <= ready })
	for n := len(have); n < want; n++ {
		r := &replica{number: f.count, replaces: f.lost > 0}
		f.lost = max(f.lost-1, 0)
		f.count++
		f.replicas = append(f.replicas, r)
	}
	if extra := len(have) - want; extra > 0 {
		slices.SortStableFunc(have, func(a, b *replica) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(b.number, a.number)) })
		for _, r := range have[:extra] {
			f.dismiss(r, f.s.Policy.Drain.Seconds())
		}
	}
	f.place()
	f.note()
}

func (f *fleetRun) place() {
	for _, r := range f.replicas {
		if r.state != pending {
			continue
		}
		if r.node = f.slot(); r.node == nil {
			return
		}
		r.node.used++
		r.state = starting
		r.readyAt = f.now + f.s.Policy.StartUp.Total(r.node.warm).Seconds()
		f.at(r.readyAt, func() {
			if r.state == starting {
				f.serve(r)
			}
		})
	}
}

// slot returns the first node with a free slot, if need be a new one; nil at the maximum of nodes.
func (f *fleetRun) slot() *gpuNode {
	for _, n := range f.nodes {
		if !n.away && !n.leaving && n.used < f.s.Nodes.Slots {
			return n
		}
	}
	if f.s.Nodes.Max > 0 && len(f.nodes) >= f.s.Nodes.Max {
		return nil
	}
	n := &gpuNode{rng: rand.New(rand.NewPCG(f.s.Seed, streamNode+uint64(len(f.nodes))))}
	f.nodes = append(f.nodes, n)
	f.after(f.s.Nodes.MTBF, n, f.fail)
	f.after(f.s.Nodes.SpotMTBF, n, f.leave)
	return n
}

// after does something to a node after a random time of the given mean; never if that is 0.
func (f *fleetRun) after(mean time.Duration, n *gpuNode, do func(*gpuNode)) {
	if mean > 0 {
		f.at(f.now+n.rng.ExpFloat64()*mean.Seconds(), func() { do(n) })
	}
}

func (f *fleetRun) serve(r *replica) {
	r.state, r.readyAt = ready, f.now
	r.node.warm = true
	r.engine = f.s.Engine().Replica(f.now, f.s.Timeout)
	f.live = append(f.live, r)
	f.targets = append(f.targets, r)
	f.episode.Starts++
	f.note()
	waiting := f.queue
	f.queue = nil
	for _, id := range waiting {
		if f.calls[id].state == queued {
			f.route(id)
		}
	}
}

// dismiss takes a replica out of service; a ready one may finish its requests within the grace period, in
// seconds.
func (f *fleetRun) dismiss(r *replica, grace float64) {
	switch r.state {
	case ready:
		r.state = draining
		r.until = f.now + grace
		f.targets = slices.DeleteFunc(f.targets, func(o *replica) bool { return o == r })
		if r.flight.requests == 0 {
			f.remove(r)
			return
		}
		f.at(r.until, func() { f.drained(r) })
	case pending, starting:
		f.remove(r)
	}
}

// remove ends a replica and the requests that it still has, and frees its slot.
func (f *fleetRun) remove(r *replica) {
	if r.state == gone {
		return
	}
	served := r.engine != nil
	r.state = gone
	if r.node != nil {
		r.node.used--
	}
	keep := func(o *replica) bool { return o == r }
	f.replicas = slices.DeleteFunc(f.replicas, keep)
	f.live = slices.DeleteFunc(f.live, keep)
	f.targets = slices.DeleteFunc(f.targets, keep)
	if served && r.flight.requests > 0 {
		for id := range f.calls {
			if c := &f.calls[id]; c.state == inFlight && c.replica == r {
				f.end(id, f.unanswered(id, measure.Reset), f.now)
			}
		}
	}
	f.note()
}

// countLoss counts a node that is lost, or about to be, if it holds replicas.
func (f *fleetRun) countLoss(n *gpuNode) {
	if slices.ContainsFunc(f.replicas, func(r *replica) bool { return r.node == n }) {
		f.episode.Failures++
	}
}

// lose removes all replicas of a node and counts them as to be replaced.
func (f *fleetRun) lose(n *gpuNode) {
	for _, r := range slices.Clone(f.replicas) {
		if r.node == n {
			if r.state <= ready {
				f.lost++
			}
			f.remove(r)
		}
	}
}

func (f *fleetRun) levels() Level {
	l := Level{At: f.now, Asked: f.asked}
	for _, r := range f.replicas {
		if r.replaces && r.state < ready {
			l.Replacing++
		}
		switch r.state {
		case pending:
			l.Pending++
		case starting:
			l.Starting++
		case ready:
			l.Ready++
		case draining:
			l.Draining++
		}
	}
	return l
}

// note records the numbers of replicas from now on.
func (f *fleetRun) note() {
	l := f.levels()
	if n := len(f.episode.Levels); n > 0 && f.episode.Levels[n-1].At == f.now {
		f.episode.Levels[n-1] = l
		return
	}
	f.episode.Levels = append(f.episode.Levels, l)
}

// never is later than any time.
var never = math.Inf(1)
