package load

import "time"

// Status is what can be said of a trial while it runs.
type Status struct {
	// Elapsed counts from the start of the trial; Left is what remains of its
	// schedule, negative where that is not known (a closed loop).
	Elapsed, Left time.Duration
	// Total counts the requests of the schedule, Sent those that left, Done
	// those that ended in any way, Failed the ones among them without a good
	// end.
	Total, Sent, Done, Failed, InFlight int
	// Rate is the requests sent per second over the last whole second.
	Rate float64
	// TTFT50 and TTFT99 are quantiles over the requests of the window that
	// ended well so far; negative before the first.
	TTFT50, TTFT99 time.Duration
}
