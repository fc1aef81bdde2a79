package fleet

import (
	"math"
	"time"

	"planner/internal/heap"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// fleetRun is a replay in progress.
type fleetRun struct {
	s      *Scenario
	now    float64
	events heap.Heap[event]
	// announced counts the events scheduled so far.
	announced int
	router    *router
	control   controller
	monitor   monitor
	told      []sim.Told
	episode   Episode
	replicaSet
	trafficState
	// missed counts the requests that missed a limit, held the replica seconds with GPUs held.
	missed int
	held   float64
	// watched is the time up to which the watcher has been told.
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
	count    int // of all replicas so far
	lost     int // replicas not yet replaced
}

// trafficState is the progress of the traffic.
type trafficState struct {
	requests []*workload.Request
	calls    []routedRequest
	queue    []int // requests that wait for a ready replica, in order
	// stage is the current stage, arrival the index of its next request, and first the number of its first
	// request.
	stage, arrival, first int
	// left counts the requests that have not ended, lefts those of each stage.
	left  int
	lefts []int
	// coupled says that the end of a request may trigger something.
	coupled bool
}

// Run replays a scenario. The same scenario gives an identical episode.
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
		if f.coupled || f.stage >= len(f.s.Stages) { // the end of the last request may end the replay
			t = f.creep(t)
		}
		if math.IsInf(t, 1) {
			break // no replica will ever serve the rest
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

// hopeless reports whether the replay exceeds MostMissed or MostHours.
func (f *fleetRun) hopeless() bool {
	f.episode.Dropped = f.s.MostMissed > 0 && f.missed > f.s.MostMissed || f.s.MostHours > 0 && f.held/3600 > f.s.MostHours
	return f.episode.Dropped
}

// load lists all requests.
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

// begin makes the first replicas ready at once, as if they had started earlier.
func (f *fleetRun) begin(n int) {
	f.ask(n)
	for _, r := range f.replicas {
		if r.state == starting {
			f.serve(r)
		}
	}
	f.episode.Starts = 0
}

// enter begins a stage and schedules its end.
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

// due returns when the next scheduled request of the stage arrives, never if there is none. Requests that wait
// for another are not scheduled.
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

// creep steps the engines one at a time, because the end of a request may trigger something before the next
// event. It returns the first time at which an engine reports something, at most to.
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

// advance runs all engines up to a time and processes what they report of their requests.
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

// begun subtracts an attempt's prompt from its replica's outstanding prefill.
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

// end ends an attempt: a request that failed, but was not rejected, is sent again if it has retries left.
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

// happen runs all that is due now: events first, so that a replica that has just become ready takes arriving
// requests.
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
