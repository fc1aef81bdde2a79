package workload

import (
	"math"

	"planner/internal/list"
)

// Longer is the workload with all prompts, what they share included, and all answers
// longer by a factor each. Draws with one seed stay those of the same requests.
func (w *Workload) Longer(prompts, answers float64) *Workload {
	longer := *w
	longer.MaxLen = scaled(w.MaxLen, max(prompts, answers))
	longer.Shapes = list.Map(w.Shapes, func(s Shape) Shape {
		s.Prompt, s.Output = s.Prompt.longer(prompts), s.Output.longer(answers)
		s.Prefix.Tokens = scaled(s.Prefix.Tokens, prompts)
		return s
	})
	longer.Replay = list.Map(w.Replay, func(r TraceRow) TraceRow {
		r.Prompt, r.Output = scaled(r.Prompt, prompts), scaled(r.Output, answers)
		r.Shared = list.Map(r.Shared, func(s Segment) Segment {
			s.Tokens = scaled(s.Tokens, prompts)
			return s
		})
		return r
	})
	return &longer
}

func (l Lengths) longer(by float64) Lengths {
	l.Value, l.Min, l.Max = scaled(l.Value, by), scaled(l.Min, by), scaled(l.Max, by)
	l.Median, l.Mean, l.StdDev = l.Median*by, l.Mean*by, l.StdDev*by
	l.Samples = list.Map(l.Samples, func(n int) int { return scaled(n, by) })
	return l
}

func scaled(tokens int, by float64) int { return int(math.Round(float64(tokens) * by)) }
