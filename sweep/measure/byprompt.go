package measure

import (
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
			total += r.uncached()
		}
	}
	if len(seen) < fewestByPrompt {
		return nil
	}
	b := ByPrompt{Mean: total / float64(len(seen))}
	quarter, few := len(seen)/4, max(len(seen)/50, 1)
	sortBy(seen, (*Record).uncached)
	b.Short, b.Long = groupOf(seen[:quarter]), groupOf(seen[len(seen)-quarter:])
	times := make([]time.Duration, len(seen))
	for i, r := range seen {
		times[i] = r.First - r.Due
	}
	slices.Sort(times)
	slow := slices.DeleteFunc(seen, func(r *Record) bool { return r.First-r.Due < times[len(times)-few] })
	sortBy(slow, func(r *Record) float64 { return float64(r.First - r.Due) })
	b.Slow = groupOf(slow[len(slow)-few:])
	if b.Short.Tokens == b.Long.Tokens {
		return nil
	}
	return &b
}

func (r *Record) uncached() float64 { return float64(max(r.Prompt-r.Cached, 0)) }

// sortBy sorts records by a key and leaves those of the same key in their order.
func sortBy(records []*Record, key func(*Record) float64) {
	type keyed struct {
		key   float64
		place int
		*Record
	}
	all := make([]keyed, len(records))
	for i, r := range records {
		all[i] = keyed{key(r), i, r}
	}
	slices.SortFunc(all, func(x, y keyed) int {
		switch {
		case x.key < y.key:
			return -1
		case x.key > y.key:
			return 1
		}
		return x.place - y.place
	})
	for i := range all {
		records[i] = all[i].Record
	}
}

func groupOf(records []*Record) PromptGroup {
	var g PromptGroup
	times := make([]time.Duration, len(records))
	for i, r := range records {
		g.Tokens += r.uncached() / float64(len(records))
		times[i] = r.First - r.Due
	}
	slices.Sort(times)
	g.TTFT = stat.Quantile(times, 0.5)
	return g
}
