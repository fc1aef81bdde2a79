package sim

import (
	"math"
	"slices"

	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// loadRun is the client side of one load on its way through an engine. Times are in seconds.
type loadRun struct {
	engine  *Engine
	load    *Load
	calls   []call
	records []measure.Record

	// arrivals holds when requests reach the engine's loop, deadlines when clients give up.
	arrivals, deadlines eventList
	timeout             float64 // infinite if clients never give up
	nextSlot            int     // closed loop: the first request not yet sent
	chained             bool    // requests are sent when others end

	// watchAt is when the load's Watch is next called, end when the run ended or its last request
	// so far did, and stopped the reason that Watch gave.
	watchAt, end float64
	// until is when the driver of an online engine looks next.
	until   float64
	stopped note.Reason

	// gaps holds the inter-token times if the load asks for them.
	gaps  *measure.Gaps
	stats stats
	// onToken, if set, is called for every token; no request may then become steady.
	onToken func(id int, at float64, first, last bool)
	// onFirst and onEnd, if set, are called for first tokens and for ends.
	onFirst, onEnd func(id int, at float64)
	// spare holds the numbers of ended requests for reuse, so that an engine driven for days holds
	// no more than what is in flight.
	spare []int
}

// call is the client side's state of a request beside its record.
type call struct {
	seq     *sequence // nil before it arrives and after it ends
	replica *scheduler
	due     float64
	begun   float64 // when it was first admitted
	// lastToken is when its newest token came, unless it is steady.
	lastToken float64
	ended     bool
	// follower is the first request that waits for the end of this one, as a turn of a conversation
	// does, and nextFollower the next that waits for the same one as this. Both are 1 + an index
	// into the schedule, 0 for none.
	follower, nextFollower int32
}

func newRun(e *Engine, load Load) *loadRun {
	n := len(load.Requests)
	r := &loadRun{
		engine: e, load: &load, calls: make([]call, n), records: make([]measure.Record, n),
		timeout: math.Inf(1), watchAt: math.Inf(1), until: math.Inf(1),
	}
	if load.Timeout > 0 {
		r.timeout = load.Timeout.Seconds()
	}
	if load.Watch != nil {
		r.watchAt = r.watchEvery()
	}
	if load.Gaps {
		r.gaps = measure.NewGaps(load.GapsFrom, load.GapsTo)
	}
	r.sendFirst()
	return r
}

func (r *loadRun) watchEvery() float64 { return max(r.load.Every.Seconds(), 1e-3) }

// sendFirst creates the records and sends what depends on no other request: in an open loop all
// requests without a parent, in a closed loop one per slot.
func (r *loadRun) sendFirst() {
	r.arrivals.known = make([]futureEvent, 0, len(r.records))
	if !math.IsInf(r.timeout, 1) {
		r.deadlines.known = make([]futureEvent, 0, len(r.records))
	}
	r.nextSlot = min(r.load.Slots, len(r.records))
	r.chained = r.load.Slots > 0
	for i := range r.load.Requests {
		q := &r.load.Requests[i]
		r.records[i] = measure.Record{ID: q.ID, Class: q.Class, Due: q.Due, Sent: measure.Never, First: measure.Never, Last: measure.Never, Prompt: q.Prompt}
		due := q.Due.Seconds()
		if r.load.Slots > 0 {
			if due = 0; i >= r.nextSlot {
				continue
			}
		} else if q.Parent > 0 {
			r.follow(q.Parent-1, i)
			continue
		}
		r.sent(i, due)
		r.arrivals.known = append(r.arrivals.known, futureEvent{due + r.engine.timer.Frontend(q.Prompt), i})
		if r.deadlines.known != nil {
			r.deadlines.known = append(r.deadlines.known, futureEvent{due + r.timeout, i})
		}
	}
	slices.SortFunc(r.arrivals.known, futureEvent.compare)
	slices.SortFunc(r.deadlines.known, futureEvent.compare)
}

// follow makes a request wait for the end of another one.
func (r *loadRun) follow(parent, id int) {
	r.calls[id].nextFollower = r.calls[parent].follower
	r.calls[parent].follower = int32(id + 1)
	r.chained = true
}

// sent records when a request leaves its client.
func (r *loadRun) sent(id int, due float64) {
	r.calls[id].due = due
	r.records[id].Due = duration(due)
	r.records[id].Sent = duration(due)
}

// send sends a request whose time was not known at the start.
func (r *loadRun) send(id int, due float64) {
	r.sent(id, due)
	r.expect(id, due, due)
}

// expect schedules the arrival of a request that enters the front end at time at, and the deadline
// of its client, who waits since due.
func (r *loadRun) expect(id int, at, due float64) {
	r.arrivals.added.Push(futureEvent{at + r.engine.timer.Frontend(r.load.Requests[id].Prompt), id})
	if !math.IsInf(r.timeout, 1) {
		r.deadlines.added.Push(futureEvent{due + r.timeout, id})
	}
}

// submit sends a request unknown at the start: its client issued it at due and it enters the front
// end at time at, both in seconds. It returns the request's number, unique among the live ones.
func (r *loadRun) submit(q workload.Request, at, due float64) (id int) {
	if n := len(r.spare); n > 0 {
		id, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		id = len(r.calls)
		r.load.Requests = append(r.load.Requests, q)
		r.records = append(r.records, measure.Record{})
		r.calls = append(r.calls, call{})
	}
	r.load.Requests[id], r.calls[id] = q, call{}
	r.records[id] = measure.Record{ID: q.ID, Class: q.Class, First: measure.Never, Last: measure.Never, Prompt: q.Prompt}
	r.sent(id, due)
	r.expect(id, at, due)
	return id
}

// retire frees the number of a request of which nothing more will be reported. One that is still in
// the front end keeps it until it arrives. The scheduler may keep using the number of an aborted
// request, but reports nothing of it.
func (r *loadRun) retire(id int) {
	if r.calls[id].replica != nil {
		r.spare = append(r.spare, id)
	}
}

// advance simulates up to a time.
func (r *loadRun) advance(to float64) {
	r.until = to
	for {
		c, now := r.next()
		if now > to {
			break
		}
		r.happen(c, now)
	}
	r.hear(to)
}

// upcoming returns when the next request arrives or gives up; infinite if none will.
func (r *loadRun) upcoming() float64 {
	at := math.Inf(1)
	if a, ok := r.arrivals.next(); ok {
		at = a.at
	}
	for {
		d, ok := r.deadlines.next()
		if !ok {
			return at
		}
		if k := &r.calls[d.id]; !k.ended && r.deadline(k) == d.at {
			return min(at, d.at)
		}
		r.deadlines.drop()
	}
}

// deadline returns when the client of a request gives up.
func (r *loadRun) deadline(k *call) float64 { return k.due + r.timeout }

// next returns the core whose turn it is, nil if all are idle, and the time of the next event,
// infinite if there is none.
func (r *loadRun) next() (*core, float64) {
	if c := r.engine.first(); c != nil {
		return c, c.now
	}
	return nil, r.upcoming()
}

// happen lets a core take its next step, unless requests arrive or give up by then.
func (r *loadRun) happen(c *core, now float64) {
	if r.upcoming() > now {
		c.advance(r)
		return
	}
	r.hear(now)
}

// hear processes the arrivals and the clients' timeouts up to a time.
func (r *loadRun) hear(now float64) {
	for r.upcoming() <= now {
		a, arrival := r.arrivals.next()
		d, deadline := r.deadlines.next()
		if arrival && (!deadline || a.at < d.at) {
			r.arrivals.drop()
			r.arrive(a.id, a.at)
		} else {
			r.deadlines.drop()
			r.giveUp(d.id, d.at)
		}
	}
}

// arrive brings a request to the least loaded replica.
func (r *loadRun) arrive(id int, at float64) {
	k := &r.calls[id]
	q := &r.load.Requests[id]
	core, replica := r.engine.lightest()
	k.replica = replica
	if k.ended { // gave up in the front end
		r.retire(id)
		return
	}
	r.stats.arrived++
	if !replica.fits(q.Prompt, q.Output) {
		r.close(id, at, measure.Rejected)
		return
	}
	core.settle(r)
	if core.idle() {
		core.now = max(core.now, at)
	}
	due := r.records[id].Due
	counted := r.load.Gaps && due >= r.load.GapsFrom && due < r.load.GapsTo
	k.seq = replica.add(id, q, counted || r.onToken != nil)
}

// giveUp ends a request whose client has waited long enough.
func (r *loadRun) giveUp(id int, at float64) {
	k := &r.calls[id]
	if k.ended {
		return
	}
	if k.seq != nil {
		for _, c := range r.engine.cores {
			c.settle(r)
		}
		k.replica.abort(k.seq)
		r.records[id].Output = k.seq.out
	}
	r.close(id, at, measure.Timeout)
}

// close ends a request and sends those that waited for its end.
func (r *loadRun) close(id int, at float64, outcome measure.Outcome) {
	r.calls[id].ended = true
	r.calls[id].seq = nil
	r.records[id].Outcome = outcome
	r.stats.ended++
	r.end = max(r.end, at)
	if r.onEnd != nil {
		r.onEnd(id, at)
	}
	if r.load.Slots > 0 {
		if r.nextSlot < len(r.records) {
			r.send(r.nextSlot, at)
			r.nextSlot++
		}
		return
	}
	for next := r.calls[id].follower - 1; next >= 0; next = r.calls[next].nextFollower - 1 {
		r.send(int(next), max(at, r.load.Requests[next].Due.Seconds()))
	}
}

// scheduled records what a new batch says about requests.
func (r *loadRun) scheduled(c *core, b *stepBatch) {
	for _, a := range b.admitted {
		if a.resumed {
			continue
		}
		r.stats.counts.Queries += a.total()
		r.stats.counts.Hits += a.cached
		r.records[a.id].Cached = a.cached
		r.calls[a.id].begun = c.now
	}
	r.stats.counts.Preemptions += len(b.preempted)
	for _, id := range b.unsteady {
		r.calls[id].lastToken = c.lastOutput
	}
}

// received records the output of a batch, which has just arrived.
func (r *loadRun) received(c *core, o *stepOutput) {
	r.countGaps(c, o)
	for _, id := range o.first {
		if c.now <= r.calls[id].due+r.timeout {
			r.records[id].First = duration(c.now)
			if r.onFirst != nil {
				r.onFirst(id, c.now)
			}
		}
	}
	for _, id := range o.finished {
		k, rec := &r.calls[id], &r.records[id]
		rec.Output = r.load.Requests[id].Output
		if deadline := k.due + r.timeout; c.now > deadline {
			// The client left while the last step ran.
			r.close(id, deadline, measure.Timeout)
			continue
		}
		rec.Last = duration(c.now)
		r.close(id, c.now, measure.OK)
	}
	if r.onToken != nil {
		for _, id := range o.first {
			r.onToken(id, c.now, true, r.calls[id].ended)
		}
		for _, id := range o.tokens {
			r.onToken(id, c.now, false, r.calls[id].ended)
		}
	}
}

// countGaps records the inter-token times of the tokens that have just arrived.
func (r *loadRun) countGaps(c *core, o *stepOutput) {
	if r.gaps == nil {
		return
	}
	for _, id := range o.first {
		r.calls[id].lastToken = c.now
	}
	for _, id := range o.tokens {
		// Tokens of one step leave together, in one event: only the gap between events counts.
		if gap := c.now - r.calls[id].lastToken; gap > 0 {
			r.gaps.Add(duration(c.now), duration(gap), 1)
		}
		r.calls[id].lastToken = c.now
	}
	if o.steady > 0 {
		r.gaps.Add(duration(c.now), duration(c.now-c.lastOutput), o.steady)
	}
}

// over reports whether Watch ends the run now.
func (r *loadRun) over(now float64) bool {
	if now < r.watchAt {
		return false
	}
	r.watchAt = now + r.watchEvery()
	if r.stopped = r.load.Watch(Progress{Now: duration(now), Arrived: r.stats.arrived, Ended: r.stats.ended, Occupancy: r.occupancy(), Records: r.records}); r.stopped.Text != "" {
		r.end = now
	}
	return r.stopped.Text != ""
}

func (r *loadRun) occupancy() Occupancy {
	o := r.stats.counts
	replicas := 0
	for _, c := range r.engine.cores {
		for _, s := range c.replicas {
			o.Running += len(s.running)
			o.Waiting += s.waiting.len()
			o.KV += s.usage()
			replicas++
		}
	}
	o.KV /= float64(replicas)
	return o
}
