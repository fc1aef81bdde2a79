package serve

import (
	"slices"
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// modelled is the simulated engine as a server drives it.
type modelled struct {
	live    *sim.Live
	timer   sim.Timer
	caching bool
	// now is where its clock stands. A request that was stamped a moment before
	// the clock moved on arrives now.
	now time.Duration
	// queued are requests that have not begun, begun how long those waited
	// whose first token is still to come.
	queued []queued
	begun  map[int]time.Duration
	// tokens is used again in every call.
	tokens []sim.Token
}

// queued is a request and when it came to the engine's loop.
type queued struct {
	request int
	since   time.Duration
}

func newModelled(timer sim.Timer, config sim.Config) *modelled {
	return &modelled{live: sim.NewEngine(timer, config).Live(), timer: timer, caching: config.Limits.PrefixCaching, begun: map[int]time.Duration{}}
}

// Submit sends a request, which waits from when the front end is done with it.
func (m *modelled) Submit(at time.Duration, q workload.Request) (int, bool) {
	at = max(at, m.now)
	id, ok := m.live.Submit(at, q)
	if ok {
		m.queued = append(m.queued, queued{id, at + seconds(m.timer.Frontend(q.Prompt))})
	}
	return id, ok
}

// Cancel ends a request, whether it has begun or not.
func (m *modelled) Cancel(at time.Duration, request int) {
	m.live.Cancel(max(at, m.now), request)
	m.queued = slices.DeleteFunc(m.queued, func(q queued) bool { return q.request == request })
	delete(m.begun, request)
}

// Advance goes from event to event, so that it knows when requests begin.
func (m *modelled) Advance(to time.Duration, tokens []token) ([]token, time.Duration) {
	m.tokens = m.tokens[:0]
	next, ok := m.live.Next()
	for ok && next <= to {
		m.tokens = m.live.Advance(next, m.tokens)
		m.dequeue(next)
		m.now = max(m.now, next)
		next, ok = m.live.Next()
	}
	m.tokens = m.live.Advance(max(m.now, to), m.tokens)
	m.now = max(m.now, to)
	for _, t := range m.tokens {
		tokens = append(tokens, m.describe(t))
	}
	if !ok {
		return tokens, never
	}
	return tokens, next
}

// dequeue notes which requests have begun.
func (m *modelled) dequeue(now time.Duration) {
	m.queued = slices.DeleteFunc(m.queued, func(q queued) bool {
		if !m.live.Begun(q.request) {
			return false
		}
		m.begun[q.request] = max(0, now-q.since)
		return true
	})
}

func (m *modelled) describe(t sim.Token) token {
	k := token{request: t.Request, at: t.At, last: t.Last, cached: -1}
	wait, first := m.begun[t.Request]
	if !first {
		return k
	}
	delete(m.begun, t.Request)
	k.first, k.wait = true, wait
	if m.caching {
		k.cached = m.live.Record(t.Request).Cached
	}
	return k
}

// Load is what the scheduler and its cache hold.
func (m *modelled) Load() load {
	s := m.live.State()
	return load{running: s.Running, waiting: s.Waiting, kv: s.KV, preemptions: s.Preemptions, cache: s.Cache}
}
