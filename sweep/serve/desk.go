package serve

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// desk is where requests meet the engine. One goroutine owns the engine and all
// replies: it lets the engine's clock follow the real one and writes every token
// when it is due. Connections hand in orders and wait for the end of the reply.
type desk struct {
	start   time.Time
	backend backend
	// caching: the backend has a prefix cache.
	caching bool
	alarm   *alarm
	meter   *meter
	log     *emissionLog

	mu     sync.Mutex
	inbox  []order
	closed bool

	replies map[int]*reply
	held    []held // by time
	// Used again in every turn.
	orders []order
	tokens []sim.Token
	wire   []byte
}

// order is what a connection wants: a reply, or the end of one whose client has
// left.
type order struct {
	reply   *reply
	request workload.Request
	cancel  bool
	at      time.Duration
}

// held is a token, or the end of a stream, that a fault keeps back.
type held struct {
	reply  *reply
	at     time.Duration
	last   bool
	ending bool
}

// nearly is how long before an instant it does not pay to sleep any more.
const nearly = 3 * time.Microsecond

func (d *desk) now() time.Duration { return time.Since(d.start) }

// post hands in an order; false if the desk is closed.
func (d *desk) post(o order) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if len(d.inbox) == 0 {
		d.alarm.ring()
	}
	d.inbox = append(d.inbox, o)
	return true
}

// close makes run return after it has ended all replies.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.alarm.ring()
	}
}

// run serves until the desk is closed.
func (d *desk) run() {
	d.alarm.own()
	for !d.take() {
		for i := range d.orders {
			d.handle(&d.orders[i])
		}
		clear(d.orders)
		now := d.now()
		tokens, next := d.backend.Advance(now, d.tokens[:0])
		d.tokens = tokens
		for _, t := range tokens {
			d.told(t, now)
		}
		d.meter.sample(d.backend.Occupancy())
		if at := d.release(now); at >= 0 && (next < 0 || at < next) {
			next = at
		}
		d.sleep(next)
	}
	for _, o := range d.orders {
		d.end(o.reply, outcomeStopped)
	}
	for _, r := range d.sorted() {
		d.end(r, outcomeStopped)
	}
}

// take fetches the orders, in order of arrival, and reports whether the desk is
// closed.
func (d *desk) take() (closed bool) {
	d.mu.Lock()
	d.orders, d.inbox = d.inbox, d.orders[:0]
	closed = d.closed
	d.mu.Unlock()
	slices.SortStableFunc(d.orders, func(a, b order) int { return cmp.Compare(a.at, b.at) })
	return closed
}

// sleep waits for an instant or an order; forever if the instant is negative.
func (d *desk) sleep(next time.Duration) {
	if next < 0 {
		d.alarm.sleep(-1)
		return
	}
	if left := next - d.now(); left > nearly {
		d.alarm.sleep(left)
	}
}

// sorted returns the replies under way, by the engine's number and then those
// that only wait for the end of a fault.
func (d *desk) sorted() []*reply {
	var all []*reply
	for _, r := range d.replies {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *reply) int { return cmp.Compare(a.request, b.request) })
	for _, h := range d.held {
		all = append(all, h.reply)
	}
	return all
}

func (d *desk) handle(o *order) {
	r := o.reply
	if o.cancel {
		if !r.ended {
			d.cancel(o.at, r)
			d.end(r, outcomeLeft)
		}
		return
	}
	id, ok := d.backend.Submit(r.arrived, o.request)
	if !ok {
		refusal := badRequest("", "A request of %d prompt and %d output tokens does not fit the engine's memory.", o.request.Prompt, o.request.Output)
		_, _ = r.out.write(answer(refusal.status, jsonType, r.frames.keepAlive, refusal.body(), "")) // a client that is gone is noticed by its connection
		d.end(r, outcomeRefused)
		return
	}
	r.request = id
	d.replies[id] = r
	if r.ask.stream {
		d.wire = r.begin(d.wire[:0])
		if r.fault.Kind == FaultRole {
			d.wire = r.frames.role(d.wire)
		}
		d.write(r)
	}
}

// told takes a token from the engine.
func (d *desk) told(t sim.Token, now time.Duration) {
	r := d.replies[t.Request]
	if r == nil {
		return // broken off
	}
	if t.First {
		if d.caching {
			r.frames.cached = t.Cached
		}
		d.meter.first(r, t)
	}
	if t.Last {
		d.forget(r)
	}
	at := t.At + r.delayed()
	r.told++
	if at > now {
		d.hold(held{reply: r, at: at, last: t.Last})
		return
	}
	d.deliver(r, at, t.Last)
}

// hold keeps something for later. Faults are rare, so a sorted list will do.
func (d *desk) hold(h held) {
	i, _ := slices.BinarySearchFunc(d.held, h.at, func(h held, at time.Duration) int {
		if h.at <= at {
			return -1
		}
		return 1
	})
	d.held = slices.Insert(d.held, i, h)
}

// release delivers what was held until now and returns when the next is due,
// negative for never.
func (d *desk) release(now time.Duration) time.Duration {
	for len(d.held) > 0 {
		h := d.held[0]
		if h.at > now {
			return h.at
		}
		d.held = slices.Delete(d.held, 0, 1)
		switch {
		case h.reply.ended:
		case h.ending:
			d.finish(h.reply)
		default:
			d.deliver(h.reply, h.at, h.last)
		}
	}
	return measure.Never
}

// deliver sends a token that was due, alone, with others, or as a part of the
// whole answer.
func (d *desk) deliver(r *reply, due time.Duration, last bool) {
	d.meter.token(r, due)
	r.due = append(r.due, due)
	n := len(r.due)
	stop := r.stop(n)
	if !r.ask.stream {
		if last || stop {
			d.wire = append(d.wire[:0], r.whole()...)
			d.write(r)
			d.broken(r, stop)
		}
		return
	}
	if r.fault.Kind == FaultMerge && n-r.sent < r.fault.Tokens && !last {
		return
	}
	d.wire = r.events(r.begin(d.wire[:0]))
	late := last && r.fault.Kind == FaultUsage
	switch {
	case stop:
		d.wire = r.broken(d.wire)
	case last && !late:
		d.wire = r.ending(d.wire)
	}
	if !d.write(r) {
		return
	}
	switch {
	case late:
		d.hold(held{reply: r, at: due + r.fault.Delay, ending: true})
	case stop || last:
		d.broken(r, stop)
	}
}

// finish ends a stream whose end was held back.
func (d *desk) finish(r *reply) {
	d.wire = r.ending(d.wire[:0])
	if d.write(r) {
		d.broken(r, false)
	}
}

// write sends what is in wire and notes when the tokens in it left. It ends the
// reply, and returns false, if the client is gone.
func (d *desk) write(r *reply) bool {
	left := d.now()
	for ; r.sent < len(r.due); r.sent++ {
		r.left = append(r.left, left)
	}
	kept, err := r.out.write(d.wire)
	if kept {
		r.blocked++
	}
	if err == nil {
		return true
	}
	d.cancel(left, r)
	r.hangUp(true)
	d.end(r, outcomeLeft)
	return false
}

// broken ends a reply: as it should, or as a fault wants it.
func (d *desk) broken(r *reply, stop bool) {
	outcome := outcomeOK
	if stop {
		outcome = outcomeFault
		d.cancel(d.now(), r)
	}
	abrupt := stop && (r.fault.Kind == FaultCut || r.fault.Kind == FaultReset || r.fault.Kind == FaultTruncate && !r.ask.stream)
	if abrupt || !r.frames.keepAlive {
		r.hangUp(abrupt)
	}
	d.end(r, outcome)
}

// cancel ends a request in the engine, unless it is over there.
func (d *desk) cancel(at time.Duration, r *reply) {
	if r.request >= 0 {
		d.backend.Cancel(at, r.request)
		d.forget(r)
	}
}

// forget parts a reply from the engine's number, which may soon be that of
// another request.
func (d *desk) forget(r *reply) {
	if r.request >= 0 {
		delete(d.replies, r.request)
		r.request = -1
	}
}

// end forgets a reply and lets its connection go on.
func (d *desk) end(r *reply, outcome Outcome) {
	if r.ended {
		return
	}
	r.ended = true
	d.forget(r)
	d.meter.ended(r, outcome)
	d.log.add(r.emission(outcome))
	close(r.done)
}
