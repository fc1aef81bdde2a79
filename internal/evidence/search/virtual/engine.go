package virtual

import (
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

// Serve runs the schedule to its end.
func (e Engine) Serve(requests []workload.Request, speed float64, _ uint64) []measure.Record {
	out := make([]measure.Record, len(requests))
	running := 0
	ends := map[int][]int{} // by the step in which they end, the requests that run
	now := 0.0
	next, left := 0, 0 // the prompt that is being read, and its tokens to go
	for step := 0; next < len(requests) || running > 0; step++ {
		if running == 0 && next < len(requests) {
			now = max(now, requests[next].Due.Seconds())
		}
		decodes := running
		room, prompt := e.Budget-decodes, 0
		first := next
		for next < len(requests) && room > 0 && running+next-first < e.Sequences && requests[next].Due.Seconds() <= now {
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
				end := step + requests[i].Output - 1
				ends[end] = append(ends[end], i)
				running++
			}
		}
		for _, i := range ends[step] {
			out[i].Last = seconds(now)
		}
		running -= len(ends[step])
		delete(ends, step)
	}
	return out
}
