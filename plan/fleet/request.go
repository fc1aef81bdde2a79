package fleet

import (
	"slices"

	"planner/sweep/measure"
)

// routedRequest is the state of a request in the fleet.
type routedRequest struct {
	state    requestState
	replica  *replica
	due      float64 // of the first attempt
	sent     float64 // of the current attempt
	attempts int
	follower int // 1 + the first request that waits for this one's end
	next     int // 1 + the next one that waits for the same request
	root     int // the first request of its conversation
	stage    int
	// begun says that the attempt has its first token; predicted are TTFT and TPOT in seconds, if the monitor
	// asks for them.
	begun     bool
	predicted [2]float64
}

type requestState uint8

const (
	unsent requestState = iota
	queued
	inFlight
	closed
)

func (f *fleetRun) send(id int) {
	c := &f.calls[id]
	if c.attempts == 0 {
		c.due = f.now
		if f.requests[id].Parent == 0 {
			c.due = f.start() + f.requests[id].Due.Seconds()
		}
	}
	c.attempts++
	c.sent = f.now
	f.monitor.arrived(f)
	f.route(id)
}

func (f *fleetRun) route(id int) {
	c, q := &f.calls[id], f.requests[id]
	if len(f.targets) == 0 {
		c.state = queued
		f.queue = append(f.queue, id)
		if f.s.Timeout > 0 {
			f.at(c.sent+f.s.Timeout.Seconds(), func() { f.giveUp(id) })
		}
		return
	}
	r := f.router.choose(f.targets, q, c.root)
	c.state, c.replica, c.begun = inFlight, r, false
	f.monitor.routed(f, r, id)
	r.flight.requests++
	r.flight.tokens += q.Prompt
	r.flight.prefill += q.Prompt
	r.arrived++
	r.promptTokens += q.Prompt
	r.engine.Submit(f.now, c.sent, id, q)
}

// giveUp ends an attempt that no replica took before the client's timeout.
func (f *fleetRun) giveUp(id int) {
	if c := &f.calls[id]; c.state == queued && f.now >= c.sent+f.s.Timeout.Seconds() {
		f.queue = slices.DeleteFunc(f.queue, func(other int) bool { return other == id })
		f.end(id, f.unanswered(id, measure.Timeout), f.now)
	}
}

// forsake records the requests that have not ended.
func (f *fleetRun) forsake() {
	for id := range f.calls {
		if c := &f.calls[id]; c.state != closed {
			r := f.unanswered(id, measure.InFlight)
			r.Due, r.Sent = seconds(c.due), measure.Never
			f.episode.Records[id] = *r
		}
	}
}

// unanswered returns the record of an attempt that did not complete, without any token.
func (f *fleetRun) unanswered(id int, outcome measure.Outcome) *measure.Record {
	q := f.requests[id]
	return &measure.Record{ID: id, Class: q.Class, Sent: seconds(f.calls[id].sent), First: measure.Never, Last: measure.Never,
		Prompt: q.Prompt, Outcome: outcome}
}
