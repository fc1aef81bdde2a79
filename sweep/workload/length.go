package workload

import (
	"math"
	"time"
)

// shortestWindow is the least time in which a trial is looked at, longestWindow what
// no rate makes it exceed, however small.
const (
	shortestWindow = time.Minute
	// It leaves room for the doublings of what could not be trusted.
	longestWindow = 1_000_000_000 * time.Second
)

// Span is how long a load of a rate in requests per second takes to offer so many
// requests: some thirty years at most.
func Span(requests, rate float64) time.Duration {
	return time.Duration(min(requests/rate*float64(time.Second), float64(longestWindow)))
}

// Window is how long a trial lasts that offers so many requests at a rate in
// requests per second: a minute at least.
func Window(requests, rate float64) time.Duration {
	return max(shortestWindow, Span(requests, rate))
}

// WholeWindow is a [Window] of whole seconds.
func WholeWindow(requests, rate float64) time.Duration {
	return time.Duration(math.Ceil(Window(requests, rate).Seconds())) * time.Second
}

// LongOutput is the output length that 99 % of the requests stay below, in
// tokens.
func (w *Workload) LongOutput() int {
	n := 1
	for _, s := range w.Shapes {
		n = max(n, s.Output.Quantile(0.99))
	}
	for _, r := range w.Replay {
		n = max(n, r.Output)
	}
	return n
}

// SharesPrefixes reports whether requests begin as others do.
func (w *Workload) SharesPrefixes() bool {
	for i := range w.Replay {
		if len(w.Replay[i].Shared) > 0 {
			return true
		}
	}
	if w.Replayed() {
		return false
	}
	for _, s := range w.Shapes {
		if s.Prefix.Groups > 0 {
			return true
		}
	}
	return w.Turns > 1
}
