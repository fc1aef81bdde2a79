package sim

import (
	"cmp"
	"math"
	"slices"

	"planner/sweep/measure"
)

// run is one load on its way through an engine: the clients' side of it.
type run struct {
	engine  *Engine
	load    *Load
	calls   []call
	records []measure.Record
	turns   turns

	// arrivals are at the engine, deadlines are when clients give up.
	arrivals, deadlines agenda
	timeout             float64 // seconds, infinite if clients never give up
	nextSlot            int     // closed loop: the first request without a slot yet

	stop           stopping
	arrived, ended int

	gaps  gaps
	stats Stats
	// onToken, if set, is told of every token; nothing may settle then.
	onToken func(id int, at float64, first, last bool)
}

// stopping says when a run ends though requests are left. Times are in seconds.
type stopping struct {
	horizon, watchAt, every float64
	done                    bool
	reason                  string
	// end is when the run ended, or its last request so far.
	end float64
}

// call is what the clients' side knows of a request beside its record.
type call struct {
	seq     *Sequence // while it is in the engine
	replica *Scheduler
	due     float64
	begun   float64 // when it was first given blocks
	ended   bool
}

func newRun(e *Engine, load Load) *run {
	n := len(load.Requests)
	r := &run{
		engine: e, load: &load, calls: make([]call, n), records: make([]measure.Record, n),
		timeout: math.Inf(1), stop: stopping{horizon: math.Inf(1), watchAt: math.Inf(1), every: max(load.Every.Seconds(), 1e-3)},
	}
	if load.Timeout > 0 {
		r.timeout = load.Timeout.Seconds()
	}
	if load.End > 0 {
		r.stop.horizon = load.End.Seconds()
	}
	if load.Watch != nil {
		r.stop.watchAt = r.stop.every
	}
	if load.Slots == 0 {
		r.turns = findTurns(load.Requests)
	}
	if load.Gaps {
		r.gaps = newGaps(n)
	}
	r.sendFirst()
	return r
}

// sendFirst makes the records and sends what is due whatever happens: in open
// loop all requests without a parent, in a closed loop one for each slot.
func (r *run) sendFirst() {
	r.arrivals.fixed = make([]appointment, 0, len(r.records))
	if !math.IsInf(r.timeout, 1) {
		r.deadlines.fixed = make([]appointment, 0, len(r.records))
	}
	r.nextSlot = min(r.load.Slots, len(r.records))
	for i := range r.load.Requests {
		q := &r.load.Requests[i]
		r.records[i] = measure.Record{ID: q.ID, Class: q.Class, Due: q.Due, Sent: measure.Never, First: measure.Never, Last: measure.Never, Prompt: q.Prompt}
		due := q.Due.Seconds()
		if r.load.Slots > 0 {
			if due = 0; i >= r.nextSlot {
				continue
			}
		} else if q.Parent > 0 {
			continue
		}
		r.sent(i, due)
		r.arrivals.fixed = append(r.arrivals.fixed, appointment{due + r.engine.timer.Frontend(q.Prompt), i})
		if r.deadlines.fixed != nil {
			r.deadlines.fixed = append(r.deadlines.fixed, appointment{due + r.timeout, i})
		}
	}
	sortAppointments(r.arrivals.fixed)
	sortAppointments(r.deadlines.fixed)
}

func sortAppointments(a []appointment) {
	slices.SortFunc(a, func(a, b appointment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
}

// sent notes that a request leaves its client.
func (r *run) sent(id int, due float64) {
	r.calls[id].due = due
	r.records[id].Due = duration(due)
	r.records[id].Sent = duration(due)
}

// send sends a request that was not known to be due from the start.
func (r *run) send(id int, due float64) {
	r.sent(id, due)
	r.arrivals.add(due+r.engine.timer.Frontend(r.load.Requests[id].Prompt), id)
	if !math.IsInf(r.timeout, 1) {
		r.deadlines.add(due+r.timeout, id)
	}
}

// upcoming is when the next request arrives or gives up; infinite if none will.
func (r *run) upcoming() float64 {
	at := math.Inf(1)
	if a, ok := r.arrivals.next(); ok {
		at = a.at
	}
	for {
		d, ok := r.deadlines.next()
		if !ok {
			return at
		}
		if !r.calls[d.id].ended {
			return min(at, d.at)
		}
		r.deadlines.drop()
	}
}

// happen lets everything happen that is due by now, in order.
func (r *run) happen(now float64) {
	for {
		a, arrival := r.arrivals.next()
		d, deadline := r.deadlines.next()
		switch {
		case arrival && a.at <= now && (!deadline || a.at < d.at):
			r.arrivals.drop()
			r.arrive(a.id, a.at)
		case deadline && d.at <= now:
			r.deadlines.drop()
			r.giveUp(d.id, d.at)
		default:
			return
		}
	}
}

// arrive brings a request to the replica with the least to do: as vLLM's load
// balancer counts it, four for a waiting request and one for a running one.
func (r *run) arrive(id int, at float64) {
	k := &r.calls[id]
	if k.ended { // gave up on the way
		return
	}
	r.arrived++
	q := &r.load.Requests[id]
	core, replica, least := r.engine.cores[0], r.engine.cores[0].replicas[0], math.MaxInt
	for _, c := range r.engine.cores {
		for _, s := range c.replicas {
			if work := 4*s.Waiting() + s.Running(); work < least {
				core, replica, least = c, s, work
			}
		}
	}
	if !replica.Fits(q.Prompt, q.Output) {
		r.close(id, at, measure.Rejected)
		return
	}
	if core.idle() {
		core.now = max(core.now, at)
	}
	k.replica = replica
	k.seq = replica.Add(&Request{ID: id, Prompt: q.Prompt, Output: q.Output, Shared: q.Shared, Own: q.Own, Reply: q.Generated, Counted: r.onToken != nil || r.counted(id)})
}

// giveUp is what a client does that waited long enough.
func (r *run) giveUp(id int, at float64) {
	k := &r.calls[id]
	if k.ended {
		return
	}
	if k.seq != nil {
		k.replica.Abort(k.seq)
		r.records[id].Output = k.seq.Generated()
	}
	r.close(id, at, measure.Timeout)
}

// close ends a request and starts what waited for its end.
func (r *run) close(id int, at float64, outcome measure.Outcome) {
	r.calls[id].ended = true
	r.calls[id].seq = nil
	r.records[id].Outcome = outcome
	r.ended++
	r.stop.end = max(r.stop.end, at)
	if r.load.Slots > 0 {
		if r.nextSlot < len(r.records) {
			r.send(r.nextSlot, at)
			r.nextSlot++
		}
		return
	}
	for next := r.turns.after(id); next >= 0; next = r.turns.beside(next) {
		r.send(next, max(at, r.load.Requests[next].Due.Seconds()))
	}
}

// scheduled notes what the making of a batch says of requests.
func (r *run) scheduled(c *core, b *Batch) {
	for i := range b.Admitted {
		a := &b.Admitted[i]
		if a.Resumed {
			continue
		}
		r.stats.Cache.Queries += a.Tokens
		r.stats.Cache.Hits += a.Cached
		r.records[a.ID].Cached = a.Cached
		r.calls[a.ID].begun = c.now
	}
	r.stats.Preemptions += len(b.Preempted)
	for _, id := range b.Unsettled {
		r.gaps.last[id] = c.heard
	}
}

// heard notes the output of a batch, which arrived now.
func (r *run) heard(c *core, e *Events) {
	r.countGaps(c, e)
	for _, id := range e.First {
		if c.now <= r.calls[id].due+r.timeout {
			r.records[id].First = duration(c.now)
		}
	}
	for _, id := range e.Finished {
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
		for _, id := range e.First {
			r.onToken(id, c.now, true, r.calls[id].ended)
		}
		for _, id := range e.Tokens {
			r.onToken(id, c.now, false, r.calls[id].ended)
		}
	}
}

// over reports whether the run ends at this time though requests are left.
func (r *run) over(now float64) bool {
	s := &r.stop
	if s.done || now >= s.horizon {
		s.end = s.horizon
		return true
	}
	if now < s.watchAt {
		return false
	}
	s.watchAt = now + s.every
	if s.reason = r.load.Watch(r.progress(now)); s.reason != "" {
		s.end = now
	}
	return s.reason != ""
}

func (r *run) progress(now float64) Progress {
	p := Progress{Now: duration(now), Arrived: r.arrived, Ended: r.ended, Records: r.records}
	for _, c := range r.engine.cores {
		for _, s := range c.replicas {
			p.Running += s.Running()
			p.Waiting += s.Waiting()
		}
	}
	return p
}

func (r *run) result() *Result {
	r.stats.finish(r.engine)
	c := &r.engine.config
	return &Result{
		Records: r.records, End: duration(r.stop.end), Stopped: r.stop.reason, Gaps: r.gaps.histogram, Stats: r.stats,
		Blocks: c.Limits.Blocks, BlockTokens: c.Limits.BlockTokens,
	}
}
