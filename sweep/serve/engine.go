package serve

import (
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// engine decides when tokens come. Its clock is that of the server, in time
// since the start, and moves with the calls.
type engine interface {
	// Submit sends a request and returns its number, which is that of another
	// request once this one is over; false if the engine can never serve it.
	Submit(at time.Duration, q workload.Request) (request int, ok bool)
	// Cancel ends a request that is not over and whose client has left.
	Cancel(at time.Duration, request int)
	// Advance appends the tokens that have left by a time, in order of time,
	// and says when something is going to happen next; never, if that is
	// negative.
	Advance(to time.Duration, tokens []token) (left []token, next time.Duration)
	// Load is what the engine holds and has done until now.
	Load() load
}

// never is a time that does not come.
const never time.Duration = -1

// token is one output token that leaves an engine.
type token struct {
	request     int
	at          time.Duration
	first, last bool
	// wait is how long the request waited before it was served, and cached how
	// many tokens of its prompt needed no computing, -1 where there is no
	// cache. Both hold for first tokens.
	wait   time.Duration
	cached int
}

// load is the state of an engine.
type load struct {
	running, waiting int
	kv               float64 // share of the blocks in use
	preemptions      int
	cache            sim.Cache
}
