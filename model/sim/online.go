package sim

import (
	"math"
	"slices"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Online drives an engine whose requests are not known in advance, such as those
// that come in over a network. Its clock is moved by the caller, who says what
// time it is; everything up to then has happened afterwards. An engine that is
// driven online must not be used otherwise.
type Online struct {
	run     *loadRun
	now     time.Duration // the caller's time
	pending []Token       // beyond the caller's time
}

// Token is one output token of a request.
type Token struct {
	// Request is the number that [Online.Submit] gave. Behind its last token, and
	// when it was cancelled, another request may be given it.
	Request int
	// At is when the token leaves the engine.
	At time.Duration
	// First and Last say that it is the first and the last one.
	First, Last bool
	// Wait is how long the request waited in the engine before its first step,
	// Cached how many tokens of its prompt the prefix cache held. Both are told
	// with the first token.
	Wait   time.Duration
	Cached int
}

// Online begins to drive the engine at time zero, with its prefix cache as it is.
// Tokens are told one by one, so steps are taken one by one.
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

// add keeps a token until its time comes. Replicas that do not step together may
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

// arrival is when a request is through the front end, in seconds.
func (l *Online) arrival(request int) float64 {
	return l.run.calls[request].due + l.run.engine.timer.Frontend(l.run.load.Requests[request].Prompt)
}

// Submit sends a request and returns its number and true; false if the engine can
// never serve it. One of a time before that of the last call of [Online.Advance]
// comes at that time. Only its lengths and shared prefix matter. Which of two
// requests that reach the engine at the same instant is served first is not
// defined.
func (l *Online) Submit(at time.Duration, q workload.Request) (request int, ok bool) {
	at = max(at, l.now)
	if !l.run.engine.cores[0].replicas[0].fits(q.Prompt, q.Output) {
		return 0, false
	}
	q.Due = at
	return l.run.submit(q, at.Seconds(), at.Seconds()), true
}

// Cancel ends a request whose client has left; what it held is free for the next
// step. It must not be called behind the last token of a request.
func (l *Online) Cancel(at time.Duration, request int) {
	l.run.giveUp(request, at.Seconds())
	l.run.retire(request)
	l.pending = slices.DeleteFunc(l.pending, func(t Token) bool { return t.Request == request })
}

// Advance lets everything happen up to a time, appends the tokens that have left
// by then to a slice, in order of time, and says when something is going to happen
// next if nothing new comes in: [measure.Never] if nothing is.
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

// upcoming is when something is going to happen if nothing new comes in.
func (l *Online) upcoming() time.Duration {
	next := time.Duration(math.MaxInt64)
	if len(l.pending) > 0 {
		next = l.pending[0].At
	}
	if _, now := l.run.next(); !math.IsInf(now, 1) {
		// A nanosecond late is in time; one early would find nothing to do.
		next = min(next, time.Duration(math.Ceil(now*1e9))+1)
	}
	if next == math.MaxInt64 {
		return measure.Never
	}
	return next
}

// Occupancy is what the engine holds and has done.
func (l *Online) Occupancy() Occupancy { return l.run.occupancy() }
