package virtual

import (
	"container/heap"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Engine is a small continuous-batching engine: each step decodes one token of
// every running sequence and fills the rest of the token budget with prompts,
// in order of arrival, a prompt in chunks where it does not fit. It is no model
// of any real engine, only of how one behaves.
type Engine struct {
	// Budget is the largest number of tokens of a step, Sequences that of
	// sequences that run at a time.
	Budget, Sequences int
	// A step takes Base plus PerToken for each prompt token plus PerSequence for
	// each decoded one.
	Base, PerToken, PerSequence time.Duration
}

// steps is a heap of sequences by the number of the step that ends them.
type steps []ending

type ending struct{ step, index int }

// Len is the number of sequences.
func (h steps) Len() int { return len(h) }

// Less orders by the step that ends a sequence.
func (h steps) Less(i, j int) bool { return h[i].step < h[j].step }

// Swap exchanges two sequences.
func (h steps) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds a sequence at the end, for package heap.
func (h *steps) Push(x any) { *h = append(*h, x.(ending)) }

// Pop takes the last sequence off, for package heap.
func (h *steps) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// Serve runs the schedule to its end.
func (e Engine) Serve(requests []workload.Request, speed float64, _ uint64) []measure.Record {
	out := make([]measure.Record, len(requests))
	var running steps
	now := 0.0
	next, left := 0, 0 // the prompt that is being read, and its tokens to go
	for step := 0; next < len(requests) || len(running) > 0; step++ {
		if len(running) == 0 && next < len(requests) {
			now = max(now, requests[next].Due.Seconds())
		}
		decodes := len(running)
		room, prompt := e.Budget-decodes, 0
		first := next
		for next < len(requests) && room > 0 && len(running)+next-first < e.Sequences && requests[next].Due.Seconds() <= now {
			if left == 0 {
				left = requests[next].Prompt
			}
			chunk := min(left, room)
			left -= chunk
			room -= chunk
			prompt += chunk
			if left > 0 {
				break
			}
			next++
		}
		now += (e.Base + time.Duration(prompt)*e.PerToken + time.Duration(decodes)*e.PerSequence).Seconds() / speed
		for i := first; i < next; i++ {
			out[i] = answered(&requests[i], seconds(now), seconds(now))
			if requests[i].Output > 1 {
				heap.Push(&running, ending{step + requests[i].Output - 1, i})
			}
		}
		for len(running) > 0 && running[0].step <= step {
			done := heap.Pop(&running).(ending)
			out[done.index].Last = seconds(now)
		}
	}
	return out
}
