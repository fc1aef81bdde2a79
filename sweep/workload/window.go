package workload

import (
	"math"
	"slices"
	"time"

	"planner/internal/list"
)

// shortestWindow is the least and longestWindow the greatest length of a trial's window, whatever
// the rate.
const (
	shortestWindow = time.Minute
	// It leaves room to double the windows of trials that could not be trusted.
	longestWindow = 1_000_000_000 * time.Second
)

// Span returns how long a load of a rate in requests per second takes to offer so many requests:
// some thirty years at most.
func Span(requests, rate float64) time.Duration {
	return time.Duration(min(requests/rate*float64(time.Second), float64(longestWindow)))
}

// Window returns how long a trial takes to offer so many requests at a rate in requests per second:
// a minute at least.
func Window(requests, rate float64) time.Duration {
	return max(shortestWindow, Span(requests, rate))
}

// WholeWindow returns the [Window], rounded up to whole seconds.
func WholeWindow(requests, rate float64) time.Duration {
	return time.Duration(math.Ceil(Window(requests, rate).Seconds())) * time.Second
}

// LongOutput returns the length of a long output, in tokens: the largest p99 of the components, or
// the longest output of a trace.
func (w *Workload) LongOutput() int {
	return max(1, list.Largest(w.Shapes, func(s Shape) int { return s.Output.Quantile(0.99) }), list.Largest(w.Replay, func(r TraceRow) int { return r.Output }))
}

// SharesPrefixes reports whether prompts may begin as others do.
func (w *Workload) SharesPrefixes() bool {
	if w.Replayed() {
		return slices.ContainsFunc(w.Replay, func(r TraceRow) bool { return len(r.Shared) > 0 })
	}
	return w.Turns > 1 || slices.ContainsFunc(w.Shapes, func(s Shape) bool { return s.Prefix.Groups > 0 })
}

// Course returns about how long a conversation lasts, from its first request to the end of its
// last, if each request takes latency. It is an upper estimate: the next turn is due after Think,
// and only waits for an answer that takes longer. Without conversations it is latency.
func (w *Workload) Course(latency time.Duration) time.Duration {
	if w.Turns <= 1 {
		return latency
	}
	return times(float64(w.Turns-1), w.Think+latency) + latency
}

// recurrences is how many mean times between two requests with the same shared text must pass until
// less than one request in a hundred meets a text for the first time: exp(-5) is 0.7 %.
const recurrences = 5

// mostCached is more tokens than caches of prefixes hold: eight B300 have room for 20 million of a small cache per token,
// such as DeepSeek-V3's. Twice as many in distinct texts fill any.
const mostCached = 20e6

// Settling returns how long after the start of a schedule at rate requests per second its traffic,
// and what a prefix cache can hold of it, become steady, if a request takes latency: 0 for a trace,
// and for traffic without conversations and shared prefixes.
//
// A schedule starts with no conversations under way, so requests are rarer, and have shorter
// histories, until the first conversations have ended. A cache evicts nothing before it is full,
// and a trial has to see its evictions if they matter. They only matter if what comes between two
// uses of a text fills the cache. So whatever its size, once conversations are steady and each has
// had one more turn, it is full or will never lose what is asked for again. Shared prefixes must
// have been met once, or have filled the cache.
func (w *Workload) Settling(rate float64, latency time.Duration) time.Duration {
	if w.Arrivals == Trace || !(rate > 0) {
		return 0
	}
	settled := time.Duration(0)
	if w.Turns > 1 {
		settled = w.Course(latency) + w.Think + latency
	}
	total := w.weight(nil)
	for i := range w.Shapes {
		s := &w.Shapes[i]
		texts := float64(s.Prefix.Groups) * float64(max(s.Prefix.Prompts, 1))
		// The turns of a conversation keep the prefix of its first.
		starts := rate * s.weight(len(w.Shapes)) / total / float64(max(w.Turns, 1))
		if texts > 0 && starts > 0 {
			fill := 2 * mostCached / (float64(s.Prefix.Tokens) + s.Prompt.Expected())
			settled = max(settled, times(min(recurrences*texts, fill)/starts, time.Second))
		}
	}
	return settled
}

// Steady returns the mean number of requests per second between two times of a schedule of rate 1,
// if no turn waits for the end of the one before: 1, and less while conversations are still
// starting.
func (w *Workload) Steady(from, to time.Duration) float64 {
	if w.Turns <= 1 || w.Arrivals == Trace || to <= from {
		return 1
	}
	// Turn t is due t times Think after the start of its conversation, and none starts before time
	// 0.
	sum := 0.0
	for t := range w.Turns {
		sum += float64(max(to-max(from, times(float64(t), w.Think)), 0))
	}
	return sum / float64(w.Turns) / float64(to-from)
}

// times multiplies a duration and keeps it within its type.
func times(n float64, d time.Duration) time.Duration {
	return time.Duration(min(n*float64(d), math.MaxInt64/4))
}

// Burst returns the variance of the number of arrivals over that of Poisson arrivals at the same
// rate, over times much longer than the gaps: 1 for Poisson arrivals, 0 for constant gaps, and the
// squared coefficient of variation of the gaps, 1/shape, for gamma ones. For a trace it is the
// largest of its values over equal parts of it, from tenths to thousandths.
func (w *Workload) Burst() float64 {
	switch w.Arrivals {
	case Constant:
		return 0
	case Gamma:
		if w.Burstiness > 0 {
			return 1 / w.Burstiness
		}
	case Trace:
		return list.Largest([]int{1000, 300, 100, 30, 10}, w.scatter)
	}
	return 1
}

// scatter returns the variance over the mean of the numbers of rows in equal parts of a trace.
func (w *Workload) scatter(parts int) float64 {
	if len(w.Replay) == 0 {
		return 0
	}
	counts := make([]float64, parts)
	start, period := w.Replay[0].Arrival, periodOf(w.Replay)
	for _, row := range w.Replay {
		counts[min(int(float64(row.Arrival-start)/float64(period)*float64(parts)), parts-1)]++
	}
	mean, sum := float64(len(w.Replay))/float64(parts), 0.0
	for _, c := range counts {
		sum += (c - mean) * (c - mean)
	}
	return sum / float64(parts-1) / mean
}
