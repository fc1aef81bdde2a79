package fleet

import (
	"math"
	"time"

	"planner/internal/heap"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// fleetRun is a scenario that is being replayed.
type fleetRun struct {
	s      *Scenario
	now    float64
	events heap.Heap[event]
	// announced counts the events so far.
	announced int
	router    *router
	control   controller
	monitor   monitor
	told      []sim.Told
	episode   Episode
	replicaSet
	trafficState
	// missed counts the requests that missed a limit, held the seconds of the replicas that hold GPUs.
	missed int
	held   float64
	// watched is up to when a watcher has been told.
	watched float64
	judges  []classTally
}

// replicaSet holds the replicas and their nodes.
type replicaSet struct {
	replicas []*replica // all that are not gone, in the order in which they were asked for
	live     []*replica // those with an engine
	targets  []*replica // those that take requests
	nodes    []*gpuNode
	asked    int
	count    int // of replicas ever
	lost     int // replicas that nobody has asked for again yet
}

// trafficState is how far the requests are.
type trafficState struct {
	requests []*workload.Request
	calls    []routedRequest
	queue    []int // requests that no replica takes, in order
	// stage is the one whose requests arrive, arrival the next of its requests, of which
	// first is the number of the first.
	stage, arrival, first int
	// left counts the requests that have not ended, lefts those of each stage.
	left  int
	lefts []int
	// coupled says that the end of a request may start something.
	coupled bool
}

// Run replays a scenario. The same scenario gives the same episode, to the byte.
func Run(s *Scenario) *Episode {
	f := &fleetRun{s: s, router: newRouter(&s.Policy, s.Seed)}
	f.load()
	f.judges = tallies(s.Limits)
	first := s.Policy.Replicas
	if first == 0 {
		if first = s.Policy.Initial; first == 0 {
			first = s.Policy.Min
		}
		f.control = s.Policy.Autoscaler.start(first, &s.Policy)
	}
	f.begin(first)
	f.enter(0)
	if f.control != nil {
		f.monitor.begin(f)
	}
	for (f.left > 0 || f.stage < len(f.s.Stages)) && !f.hopeless() {
		t := f.nextTime()
		if f.coupled || f.stage >= len(f.s.Stages) { // then the last request ends it all
			t = f.creep(t)
		}
		if math.IsInf(t, 1) {
			break // nothing will ever serve what is left
		}
		f.advance(t)
		f.happen()
		f.tell(time.Minute)
	}
	f.tell(0)
	f.forsake()
	f.episode.End = f.now
	f.episode.Means = f.monitor.means()
	return &f.episode
}

// hopeless reports whether the bounds of the scenario are passed.
func (f *fleetRun) hopeless() bool {
	f.episode.Dropped = f.s.MostMissed > 0 && f.missed > f.s.MostMissed || f.s.MostHours > 0 && f.held/3600 > f.s.MostHours
	return f.episode.Dropped
}

// load makes the list of all requests.
func (f *fleetRun) load() {
	for i := range f.s.Stages {
		base := len(f.requests)
		for j := range f.s.Stages[i].Requests {
			q := &f.s.Stages[i].Requests[j]
			c := routedRequest{root: base + j, stage: i}
			if q.Parent > 0 {
				parent := &f.calls[base+q.Parent-1]
				c.next, parent.follower = parent.follower, base+j+1
				c.root = parent.root
				f.coupled = true
			}
			f.requests = append(f.requests, q)
			f.calls = append(f.calls, c)
		}
		f.lefts = append(f.lefts, len(f.s.Stages[i].Requests))
		f.coupled = f.coupled || f.s.Stages[i].Drain
	}
	f.left = len(f.requests)
	f.coupled = f.coupled || f.s.Retries > 0
	f.episode.Records = make([]measure.Record, len(f.requests))
}

// begin puts the first replicas into service, as if they had been there before.
func (f *fleetRun) begin(n int) {
	f.ask(n)
	for _, r := range f.replicas {
		if r.state == starting {
			f.serve(r)
		}
	}
	f.episode.Starts = 0
}

// enter begins a stage, and those behind it that are over at once.
func (f *fleetRun) enter(stage int) {
	f.stage, f.arrival = stage, 0
	if stage >= len(f.s.Stages) {
		return
	}
	if stage > 0 {
		f.first += len(f.s.Stages[stage-1].Requests)
	}
	f.episode.Stages = append(f.episode.Stages, f.now)
	f.at(f.now+f.s.Stages[stage].length().Seconds(), func() { f.over(stage) })
}

// due is when the next request of the schedule arrives, infinite if none does in this
// stage. One that waits for another is not among them.
func (f *fleetRun) due() float64 {
	if f.stage >= len(f.s.Stages) {
		return never
	}
	requests := f.s.Stages[f.stage].Requests
	for f.arrival < len(requests) && requests[f.arrival].Parent > 0 {
		f.arrival++
	}
	if f.arrival == len(requests) {
		return never
	}
	return f.start() + requests[f.arrival].Due.Seconds()
}

func (f *fleetRun) start() float64 { return f.episode.Stages[f.stage] }

func (f *fleetRun) nextTime() float64 {
	t := f.due()
	if len(f.events) > 0 {
		t = min(t, f.events[0].at)
	}
	return t
}

// creep lets the engines step one after another where the end of a request may start
// something before the next event: to the first time at which one is told.
func (f *fleetRun) creep(to float64) float64 {
	for {
		var first *replica
		next, second, told := never, never, never
		for _, r := range f.live {
			told = min(told, r.engine.Untold())
			switch at := r.engine.Next(); {
			case at < next:
				first, next, second = r, at, next
			default:
				second = min(second, at)
			}
		}
		to = min(to, told)
		if next > to || first == nil {
			return to
		}
		first.engine.Step(min(second, to))
	}
}

// advance lets all engines run up to a time, and hears what became of their requests.
func (f *fleetRun) advance(to float64) {
	l := &f.episode.Levels[len(f.episode.Levels)-1]
	f.held += (to - f.now) * float64(l.Starting+l.Ready+l.Draining)
	f.now = to
	f.told = f.told[:0]
	for _, r := range f.live {
		r.engine.Advance(to)
		f.told = r.engine.Hear(to, f.told)
	}
	for i := range f.told {
		t := &f.told[i]
		c := &f.calls[t.Request]
		if c.state != inFlight {
			continue
		}
		if t.End == nil {
			f.begun(c, f.requests[t.Request])
			f.monitor.first(f, t)
			continue
		}
		f.land(t.Request, t.End)
		f.end(t.Request, t.End, t.At)
	}
	f.told = f.told[:0]
}

// begun takes the prompt of an attempt off what its replica has yet to compute.
func (f *fleetRun) begun(c *routedRequest, q *workload.Request) {
	if !c.begun {
		c.begun = true
		c.replica.flight.prefill -= q.Prompt
	}
}

func (f *fleetRun) land(id int, record *measure.Record) {
	r := f.calls[id].replica
	r.flight.requests--
	r.flight.tokens -= f.requests[id].Prompt
	f.begun(&f.calls[id], f.requests[id])
	r.outputTokens += record.Output
	if r.state == draining && r.flight.requests == 0 {
		f.at(f.now, func() { f.drained(r) })
	}
}

// end concludes an attempt at a request: it is sent again if it failed and its client
// has the patience.
func (f *fleetRun) end(id int, record *measure.Record, at float64) {
	c := &f.calls[id]
	if record.Outcome != measure.OK && record.Outcome != measure.Rejected && c.attempts <= f.s.Retries {
		c.state = unsent
		f.episode.Retries++
		f.at(at, func() { f.send(id) })
		return
	}
	c.state, c.replica = closed, nil
	record.ID, record.Due = id, seconds(c.due)
	f.episode.Records[id] = *record
	f.monitor.ended(f, record)
	if f.s.MostMissed > 0 && !f.judges[record.Class].add(record) {
		f.missed++
	}
	f.left--
	f.lefts[c.stage]--
	begin := f.episode.Stages[c.stage]
	for next := c.follower - 1; next >= 0; next = f.calls[next].next - 1 {
		f.at(max(at, begin+f.requests[next].Due.Seconds()), func() { f.send(next) })
	}
	if st := &f.s.Stages[c.stage]; f.lefts[c.stage] == 0 && st.Drain {
		f.at(max(f.now, begin+st.length().Seconds()), func() { f.over(c.stage) })
	}
}

// happen lets everything happen that is due now: events first, so that a replica that
// has just become ready takes what arrives.
func (f *fleetRun) happen() {
	for len(f.events) > 0 && f.events[0].at <= f.now {
		f.events.Remove(0).do()
	}
	for f.due() <= f.now {
		id := f.first + f.arrival
		f.arrival++
		f.send(id)
	}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
