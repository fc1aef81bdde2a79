package serve

import (
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// modelled is the simulated engine as a server drives it.
type modelled struct {
	live    *sim.Live
	caching bool
	// now is where its clock stands. A request that was stamped a moment before
	// the clock moved on arrives now.
	now time.Duration
	// tokens is used again in every call.
	tokens []sim.Token
}

func (m *modelled) Submit(at time.Duration, q workload.Request) (int, bool) {
	return m.live.Submit(max(at, m.now), q)
}

func (m *modelled) Cancel(at time.Duration, request int) { m.live.Cancel(max(at, m.now), request) }

func (m *modelled) Advance(to time.Duration, tokens []token) ([]token, time.Duration) {
	m.now = max(m.now, to)
	m.tokens = m.live.Advance(m.now, m.tokens[:0])
	for _, t := range m.tokens {
		k := token{request: t.Request, at: t.At, last: t.Last, cached: -1}
		if r := m.live.Record(t.Request); r.First == t.At {
			k.first = true
			if m.caching {
				k.cached = r.Cached
			}
		}
		tokens = append(tokens, k)
	}
	next, ok := m.live.Next()
	if !ok {
		return tokens, never
	}
	return tokens, next
}

func (m *modelled) Load() load { return load{} }
