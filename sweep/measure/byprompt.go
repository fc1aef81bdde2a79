package measure

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/stat"
)

// ByPrompt sets the times to first token of a trial beside the lengths of its prompts,
// without what the prefix cache is known to have held of them.
type ByPrompt struct {
	// Short and Long are the quarters of the requests with the shortest and with the
	// longest prompts.
	Short PromptGroup `json:"short"`
	Long  PromptGroup `json:"long"`
	// Slow are the 2 % that waited longest for their first token.
	Slow PromptGroup `json:"slow"`
	// Mean is the mean length of all prompts.
	Mean float64 `json:"mean_prompt_tokens"`
}

// PromptGroup are some of the requests of a trial: the mean length of their prompts and
// the median of their times to first token.
type PromptGroup struct {
	Tokens float64       `json:"prompt_tokens"` // the mean prompt of the group
	TTFT   time.Duration `json:"ttft_p50_ms"`   // the median of the group
}

// fewestByPrompt are the requests below which groups of them say nothing.
const fewestByPrompt = 100

// byPrompt is nil where too few requests saw a first token, and where all prompts are
// alike.
func (c *cohort) byPrompt() *ByPrompt {
	var seen []*Record
	total := 0.0
	for _, r := range c.records {
		if r.First >= 0 {
			seen = append(seen, r)
			total += float64(r.uncached())
		}
	}
	if len(seen) < fewestByPrompt {
		return nil
	}
	b := ByPrompt{Mean: total / float64(len(seen))}
	quarter, few := len(seen)/4, max(len(seen)/50, 1)
	sortBy(seen, (*Record).uncached)
	b.Short, b.Long = groupOf(seen[:quarter]), groupOf(seen[len(seen)-quarter:])
	sortBy(seen, func(r *Record) time.Duration { return r.First - r.Due })
	b.Slow = groupOf(seen[len(seen)-few:])
	if b.Short.Tokens == b.Long.Tokens {
		return nil
	}
	return &b
}

func (r *Record) uncached() int { return max(r.Prompt-r.Cached, 0) }

// sortBy sorts records by a key, and those of the same in the order in which they came.
func sortBy[T cmp.Ordered](records []*Record, key func(*Record) T) {
	slices.SortFunc(records, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
}

func groupOf(records []*Record) PromptGroup {
	var g PromptGroup
	times := make([]time.Duration, len(records))
	for i, r := range records {
		g.Tokens += float64(r.uncached()) / float64(len(records))
		times[i] = r.First - r.Due
	}
	slices.Sort(times)
	g.TTFT = stat.Quantile(times, 0.5)
	return g
}
