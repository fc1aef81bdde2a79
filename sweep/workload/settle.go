package workload

import (
	"math"
	"time"
)

// Course is about how long a conversation lasts, from its first request to the
// end of its last, where each request takes latency. It is an upper estimate: the
// next turn is due after Think, and only waits for an answer that takes longer.
// Without conversations it is latency.
func (w *Workload) Course(latency time.Duration) time.Duration {
	if w.Turns <= 1 {
		return latency
	}
	return times(float64(w.Turns-1), w.Think+latency) + latency
}

// recurrences is how many mean times between two requests with the same shared
// text must pass until less than one request in a hundred meets a text for the
// first time: exp(-5) is 0.7 %.
const recurrences = 5

// Settling is how long after the start of a schedule its traffic, and what a prefix
// cache can hold of it, become steady at rate requests per second, where a request
// takes latency: 0 for traffic without conversations and shared prefixes.
//
// A schedule starts without conversations under way, so requests come more rarely,
// and with shorter histories, until the first conversations have ended. A cache
// gives nothing up before it is full, which a trial has to see if it matters. But
// it matters only where what comes in between two uses of a text fills the cache:
// so whatever its size, it is full once conversations are steady and each has had
// one more turn, or it never loses what will be asked for again. Shared
// prefixes must have been met once.
func (w *Workload) Settling(rate float64, latency time.Duration) time.Duration {
	if w.Arrivals == Trace || !(rate > 0) {
		return 0
	}
	settled := time.Duration(0)
	if w.Turns > 1 {
		settled = w.Course(latency) + w.Think + latency
	}
	total := 0.0
	for i := range w.Shapes {
		total += w.Shapes[i].weight(len(w.Shapes))
	}
	for i := range w.Shapes {
		s := &w.Shapes[i]
		texts := float64(s.Prefix.Groups) * float64(max(s.Prefix.Prompts, 1))
		// The turns of a conversation keep the prefix of its first.
		starts := rate * s.weight(len(w.Shapes)) / total / float64(max(w.Turns, 1))
		if texts > 0 && starts > 0 {
			settled = max(settled, times(recurrences*texts/starts, time.Second))
		}
	}
	return settled
}

// Steady is the mean number of requests that a schedule of rate 1 holds between
// two times, per second, if no turn waits for the end of the one before: 1, and
// less where conversations are still starting.
func (w *Workload) Steady(from, to time.Duration) float64 {
	if w.Turns <= 1 || w.Arrivals == Trace || to <= from {
		return 1
	}
	// Turn t is due Think t after the start of its conversation, of which there
	// are none before time 0.
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
