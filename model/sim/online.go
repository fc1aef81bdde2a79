package sim

import (
	"math"
	"slices"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Online drives an engine whose requests are not known in advance, such as those that come in over
// a network. The caller moves its clock; [Online.Advance] simulates everything up to the time it is
// given. An engine that is driven online must not be used otherwise.
type Online struct {
	run     *loadRun
	now     time.Duration // the caller's clock
	pending []Token       // later than the caller's clock
}

// Token is one output token of a request.
type Token struct {
	// Request is the number that [Online.Submit] returned. It may be reused after the request's
	// last token or its cancellation.
	Request int
	// At is when the token leaves the engine.
	At time.Duration
	// First and Last mark the request's first and last token.
	First, Last bool
	// Wait is how long the request waited in the engine before its first step, Cached the number of
	// its prompt tokens that the prefix cache held. Both are set on the first token only.
	Wait   time.Duration
	Cached int
}

// Online starts driving the engine at time zero and keeps its prefix cache. Every token is
// reported, so steps are taken one by one.
func (e *Engine) Online() *Online {
	for _, c := range e.cores {
		c.reset()
		for _, s := range c.replicas {
			s.steady.off = true
		}
	}
	l := &Online{run: newRun(e, Load{})}
	l.run.onToken = l.add
	return l
}

// add keeps a token until the caller's clock reaches it. Replicas that do not step together may
// report tokens out of order.
func (l *Online) add(id int, at float64, first, last bool) {
	k := Token{Request: id, At: duration(at), First: first, Last: last}
	if first {
		k.Wait = duration(max(0, l.run.calls[id].begun-l.arrival(id)))
		k.Cached = l.run.records[id].Cached
	}
	p := append(l.pending, k)
	for i := len(p) - 1; i > 0 && p[i].At < p[i-1].At; i-- {
		p[i], p[i-1] = p[i-1], p[i]
	}
	l.pending = p
}

// arrival returns when a request leaves the front end, in seconds.
func (l *Online) arrival(request int) float64 {
	return l.run.calls[request].due + l.run.engine.timer.Frontend(l.run.load.Requests[request].Prompt)
}

// Submit sends a request and returns its number and true, or false if the engine can never serve
// it. A time before that of the last [Online.Advance] counts as that time. Only the request's
// lengths and the identities of its tokens affect its service. Which of two requests that reach the
// engine at the same instant is served first is undefined.
func (l *Online) Submit(at time.Duration, q workload.Request) (request int, ok bool) {
	at = max(at, l.now)
	if !l.run.engine.cores[0].replicas[0].fits(q.Prompt, q.Output) {
		return 0, false
	}
	q.Due = at
	return l.run.submit(q, at.Seconds(), at.Seconds()), true
}

// Cancel ends a request whose client has left; its blocks are free for the next step. It must not
// be called after the request's last token.
func (l *Online) Cancel(at time.Duration, request int) {
	l.run.giveUp(request, at.Seconds())
	l.run.retire(request)
	l.pending = slices.DeleteFunc(l.pending, func(t Token) bool { return t.Request == request })
}

// Advance simulates up to a time, appends the tokens that have left by then to a slice, in order of
// time, and returns when something will next happen unless requests come in: [measure.Never] if
// nothing will.
func (l *Online) Advance(to time.Duration, tokens []Token) (left []Token, next time.Duration) {
	l.now = max(l.now, to)
	l.run.advance(l.now.Seconds())
	due := 0
	for due < len(l.pending) && l.pending[due].At <= l.now {
		due++
	}
	for _, t := range l.pending[:due] {
		tokens = append(tokens, t)
		if t.Last {
			l.run.retire(t.Request)
		}
	}
	l.pending = l.pending[:copy(l.pending, l.pending[due:])]
	return tokens, l.upcoming()
}

// upcoming returns when something will next happen unless requests come in.
func (l *Online) upcoming() time.Duration {
	next := time.Duration(math.MaxInt64)
	if len(l.pending) > 0 {
		next = l.pending[0].At
	}
	if _, now := l.run.next(); !math.IsInf(now, 1) {
		// A nanosecond too late does no harm; one too early would find nothing to do.
		next = min(next, time.Duration(math.Ceil(now*1e9))+1)
	}
	if next == math.MaxInt64 {
		return measure.Never
	}
	return next
}

// Occupancy returns the load on the engine and its counters.
func (l *Online) Occupancy() Occupancy { return l.run.occupancy() }
