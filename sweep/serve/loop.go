package serve

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// backend decides when tokens come: a [sim.Online], or [Fixed] times. Its clock is that of the
// server, the time since the start, and advances with the calls.
type backend interface {
	// Submit sends a request and returns its number, which may be reused once the request is over;
	// false if the backend can never serve it.
	Submit(at time.Duration, q workload.Request) (request int, ok bool)
	// Cancel ends a request that is not over but whose client has left.
	Cancel(at time.Duration, request int)
	// Advance appends the tokens that have left by a time, in order of time, and returns when
	// something happens next: measure.Never if nothing does.
	Advance(to time.Duration, tokens []sim.Token) (left []sim.Token, next time.Duration)
	// Occupancy returns what the backend holds and has done so far.
	Occupancy() sim.Occupancy
}

// eventLoop is where requests meet the backend. One goroutine owns the backend and all replies: it
// makes the backend's clock follow the real one and writes every token when it is due. Connections
// hand in requests and wait for the end of the reply.
type eventLoop struct {
	start   time.Time
	backend backend
	waker   *waker
	metrics *vllmMetrics
	log     *emissionLog
	// idle is how long a client may take to send another request.
	idle time.Duration

	mu sync.Mutex
	// arrived are replies to begin, left those whose client has left.
	arrived, left []*reply
	closed        bool

	replies map[int]*reply // by the backend's number
	// Reused in every turn.
	tokens []sim.Token
	wire   []byte
}

// nearly is how long before an instant it no longer pays to sleep.
const nearly = 3 * time.Microsecond

func (l *eventLoop) now() time.Duration { return time.Since(l.start) }

// submit hands in a request; false if the loop has ended.
func (l *eventLoop) submit(r *reply) bool { return l.post(&l.arrived, r) }

func (l *eventLoop) abandon(r *reply) { l.post(&l.left, r) }

func (l *eventLoop) post(to *[]*reply, r *reply) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.arrived)+len(l.left) == 0 {
		l.waker.wake()
	}
	*to = append(*to, r)
	return true
}

// close makes run return after it has ended all replies.
func (l *eventLoop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.waker.wake()
}

func (l *eventLoop) run() {
	l.waker.own()
	for l.takeIn() {
		tokens, next := l.backend.Advance(l.now(), l.tokens[:0])
		l.tokens = tokens
		for _, t := range tokens {
			l.deliver(t)
		}
		l.metrics.sample(l.backend.Occupancy())
		if next < 0 {
			l.waker.sleep(-1)
		} else if wait := next - l.now(); wait > nearly {
			l.waker.sleep(wait)
		}
	}
	for _, r := range l.arrived {
		l.end(r, outcomeStopped)
	}
	for _, r := range l.replies {
		l.end(r, outcomeStopped)
	}
}

// takeIn begins the replies that were handed in, in order of arrival, and ends those whose client
// has left; false if the loop is closed.
func (l *eventLoop) takeIn() bool {
	l.mu.Lock()
	arrived, left, closed := l.arrived, l.left, l.closed
	if !closed {
		l.arrived, l.left = nil, nil
	}
	l.mu.Unlock()
	if closed {
		return false
	}
	slices.SortStableFunc(arrived, func(a, b *reply) int { return cmp.Compare(a.Arrived, b.Arrived) })
	for _, r := range arrived {
		l.begin(r)
	}
	for _, r := range left {
		if !r.ended {
			l.cancel(r)
			l.end(r, outcomeLeft)
		}
	}
	return true
}

func (l *eventLoop) begin(r *reply) {
	number, ok := l.backend.Submit(r.Arrived, r.request)
	if !ok {
		refusal := badRequest("", "A request of %d prompt and %d output tokens does not fit the engine's memory.", r.request.Prompt, r.request.Output)
		_, _ = r.out.write(answer(refusal.status, jsonType, r.keepAlive, refusal.body())) // that a client is gone shows on its connection
		r.rest(l.idle)
		l.end(r, outcomeRefused)
		return
	}
	r.number = number
	l.replies[number] = r
	if r.Stream {
		l.wire = r.head(l.wire[:0])
		l.write(r)
	}
}

// deliver sends a token, alone or as a part of the whole answer.
func (l *eventLoop) deliver(t sim.Token) {
	r := l.replies[t.Request]
	if r == nil {
		return // broken off
	}
	if t.First {
		if r.caching {
			r.Cached = t.Cached
		}
		l.metrics.first(r, t)
	}
	if t.Last {
		l.forget(r)
	}
	l.metrics.token(r, t.At)
	r.Due = append(r.Due, t.At)
	broken := r.breaks()
	switch {
	case r.Stream:
		l.wire = r.token(l.wire[:0], len(r.Due)-1)
		if broken {
			l.wire = r.breakOff(l.wire)
		} else if t.Last {
			l.wire = r.ending(l.wire)
		}
	case t.Last || broken:
		l.wire = append(l.wire[:0], r.whole()...)
	default:
		return
	}
	if l.write(r) && (t.Last || broken) {
		l.finish(r, broken)
	}
}

// write sends what is in wire and notes when the tokens in it left. It ends the reply and returns
// false if the client has left or the server stops.
func (l *eventLoop) write(r *reply) bool {
	now := l.now()
	for len(r.Left) < len(r.Due) {
		r.Left = append(r.Left, now)
	}
	kept, err := r.out.write(l.wire)
	if kept {
		r.Blocked++
	}
	if err == nil {
		return true
	}
	l.cancel(r)
	r.hangUp(true)
	l.mu.Lock()
	outcome := map[bool]string{false: outcomeLeft, true: outcomeStopped}[l.closed]
	l.mu.Unlock()
	l.end(r, outcome)
	return false
}

// finish ends a reply, as it should or as a fault requires.
func (l *eventLoop) finish(r *reply, broken bool) {
	outcome := outcomeOK
	if broken {
		outcome = outcomeFault
		l.cancel(r)
	}
	abrupt := broken && r.fault.kind != faultEvent
	if abrupt || !r.keepAlive {
		r.hangUp(abrupt)
	} else {
		r.rest(l.idle)
	}
	l.end(r, outcome)
}

func (l *eventLoop) cancel(r *reply) {
	if r.number >= 0 {
		l.backend.Cancel(l.now(), r.number)
		l.forget(r)
	}
}

// forget detaches a reply from the backend's number, which may soon be that of another request.
func (l *eventLoop) forget(r *reply) {
	if r.number >= 0 {
		delete(l.replies, r.number)
		r.number = -1
	}
}

// end ends a reply and lets its connection continue.
func (l *eventLoop) end(r *reply, outcome string) {
	l.forget(r)
	r.ended, r.Outcome = true, outcome
	l.metrics.ended(r)
	l.log.add(r.Emission)
	close(r.done)
}
