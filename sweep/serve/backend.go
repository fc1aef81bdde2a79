package serve

import (
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// backend decides when tokens come: a [sim.Live], or [Fixed] times. Its clock is
// that of the server, in time since the start, and moves with the calls.
type backend interface {
	// Submit sends a request and returns its number, which is that of another
	// request once this one is over; false if the backend can never serve it.
	Submit(at time.Duration, q workload.Request) (request int, ok bool)
	// Cancel ends a request that is not over and whose client has left.
	Cancel(at time.Duration, request int)
	// Advance appends the tokens that have left by a time, in order of time,
	// and says when something is going to happen next: measure.Never if nothing
	// is.
	Advance(to time.Duration, tokens []sim.Token) (left []sim.Token, next time.Duration)
	// Occupancy is what the backend holds and has done until now.
	Occupancy() sim.Occupancy
}
