package measure

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/stat"
)

// cohort is the measured part of a trial: the requests due in the window. Requests are never
// selected by when they ended, which would drop the slow ones.
type cohort struct {
	trial *Trial
	// from and to bound the window; in a closed loop, and for a trace on its own clock, they are
	// the first intended time and the last event. end is the end of the observation.
	from, to, end time.Duration
	// whole says that the requests are the whole population and not a sample: a trace replayed from
	// its first row to its last.
	whole bool
	// records are the requests due in the window, in order of Due; all also holds those of warm-up
	// and cool-down.
	records, all []*Record
	// drawn caches the latencies computed so far.
	drawn map[Metric]*series
	// parts caches the cohorts of single classes, by name.
	parts map[string]*cohort
}

// of returns the cohort of one class's requests, the whole cohort for "".
func (c *cohort) of(class string) *cohort {
	if class == "" {
		return c
	}
	if part, ok := c.parts[class]; ok {
		return part
	}
	index := c.trial.class(class)
	mine := func(all []*Record) []*Record {
		return list.Filter(all, func(r *Record) bool { return r.Class == index })
	}
	part := &cohort{trial: c.trial, from: c.from, to: c.to, end: c.end, whole: c.whole, records: mine(c.records), all: mine(c.all), drawn: map[Metric]*series{}}
	c.parts[class] = part
	return part
}

func newCohort(t *Trial, records []Record, end time.Duration) *cohort {
	c := &cohort{trial: t, end: end, drawn: map[Metric]*series{}, parts: map[string]*cohort{}}
	c.all = list.Pointers(records, func(r *Record) bool { return r.Due <= end && !awaited(t, r) })
	slices.SortFunc(c.all, func(a, b *Record) int { return cmp.Or(cmp.Compare(a.Due, b.Due), a.ID-b.ID) })
	replayed := t.replayed()
	if t.Closed() || replayed && t.Rate == 0 {
		c.records, c.whole = list.Filter(c.all, t.Measures), replayed && len(c.all) >= len(t.Workload.Replay)
		if len(c.all) > 0 {
			c.from, c.to = c.all[0].Due, c.all[0].Due
		}
		for _, r := range c.all {
			c.to = max(c.to, c.left(r))
		}
		return c
	}
	c.from, c.to = t.Warmup, min(t.Warmup+t.Window, end)
	if t.Window <= 0 {
		c.to = end
	}
	c.to = max(c.to, c.from)
	c.records = c.due(c.from)
	c.whole = replayed && len(t.Workload.Replay) > 0 && len(c.records) >= len(t.Workload.Replay)
	return c
}

// awaited reports whether a request is a conversation turn that has not been sent as the turn
// before it has not ended: whatever its intended time it is not due yet, so it is neither late nor
// in flight.
func awaited(t *Trial, r *Record) bool {
	return t.Workload != nil && t.Workload.Turns > 1 && r.Outcome == InFlight && r.Sent < 0
}

// due returns the requests due between from and the end of the window.
func (c *cohort) due(from time.Duration) []*Record {
	at := func(r *Record, at time.Duration) int { return cmp.Compare(r.Due, at) }
	low, _ := slices.BinarySearchFunc(c.all, from, at)
	high, _ := slices.BinarySearchFunc(c.all, c.to, at)
	return c.all[low:high]
}

func (c *cohort) count(is func(*Record) bool) int { return list.Count(c.records, is) }

func (c *cohort) length() float64 { return (c.to - c.from).Seconds() }

// position is where in the window a request was due, in [0, 1).
func (c *cohort) position(r *Record) float64 {
	if c.to <= c.from {
		return 0
	}
	return float64(r.Due-c.from) / float64(c.to-c.from)
}

// inWindow reports whether an event happened, and did so in the window. The window's end counts as
// inside if all requests are measured, as the last event then lies on it.
func (c *cohort) inWindow(at time.Duration) bool {
	return at >= c.from && (at < c.to || at == c.to && len(c.records) == len(c.all))
}

// left returns when a request left the server: at its last token, when the client gave up, or at
// the end of the observation if it was still in flight. Other failures without a last token leave
// at the last time known of them.
func (c *cohort) left(r *Record) time.Duration {
	at := r.Last
	switch {
	case r.Outcome == InFlight:
		return c.end
	case r.Outcome == Timeout:
		at = c.end
		if w := c.trial.Workload; w != nil && w.Timeout > 0 {
			at = max(r.Sent, r.Due) + w.Timeout
		}
	case at < 0:
		at = max(r.Due, r.Sent, r.First)
	}
	return min(at, c.end)
}

// inFlight returns the mean number of requests in flight in each of equal blocks of the window
// after from, computed from the records alone.
func (c *cohort) inFlight(from time.Duration, blocks int) []float64 {
	mean := make([]float64, blocks)
	width := float64(c.to-from) / float64(blocks)
	if width <= 0 {
		return mean
	}
	for _, r := range c.all {
		start := float64(max(r.Due, from)-from) / width
		stop := float64(min(c.left(r), c.to)-from) / width
		for b := int(start); b < blocks && float64(b) < stop; b++ {
			mean[b] += min(stop, float64(b+1)) - max(start, float64(b))
		}
	}
	return mean
}

// ByPrompt relates the times to first token of a trial to the lengths of its prompts, not counting
// prompt tokens known to have been found in the prefix cache.
type ByPrompt struct {
	// Short and Long are the quarters of the requests with the shortest and the longest prompts.
	Short PromptGroup `json:"short"`
	Long  PromptGroup `json:"long"`
	// Slow are the 2 % that waited longest for their first token.
	Slow PromptGroup `json:"slow"`
	// Mean is the mean prompt length of all requests that saw a first token.
	Mean float64 `json:"mean_prompt_tokens"`
}

// PromptGroup is a group of requests: the mean length of their prompts and the median of their
// times to first token.
type PromptGroup struct {
	Tokens float64       `json:"prompt_tokens"` // the mean prompt length
	TTFT   time.Duration `json:"ttft_p50_ms"`   // the median time to first token
}

// fewestByPrompt is the number of requests below which a comparison of groups says nothing.
const fewestByPrompt = 100

// byPrompt returns nil if too few requests saw a first token, or if the shortest quarter of prompts
// is as long as the longest.
func (c *cohort) byPrompt() *ByPrompt {
	var seen []*Record
	total := 0.0
	for _, r := range c.records {
		if r.First >= 0 {
			seen = append(seen, r)
			total += float64(r.uncached())
		}
	}
	if len(seen) < fewestByPrompt || !slices.ContainsFunc(seen, func(r *Record) bool { return r.uncached() != seen[0].uncached() }) {
		return nil
	}
	b := ByPrompt{Mean: total / float64(len(seen))}
	quarter, few := len(seen)/4, max(len(seen)/50, 1)
	sortBy(seen, (*Record).uncached)
	b.Short, b.Long = groupOf(seen[:quarter]), groupOf(seen[len(seen)-quarter:])
	if b.Short.Tokens == b.Long.Tokens {
		return nil
	}
	sortBy(seen, func(r *Record) time.Duration { return r.First - r.Due })
	b.Slow = groupOf(seen[len(seen)-few:])
	return &b
}

func (r *Record) uncached() int { return max(r.Prompt-r.Cached, 0) }

// sortBy sorts records by a key, and equal ones by when they were due.
func sortBy[T cmp.Ordered](records []*Record, key func(*Record) T) {
	slices.SortFunc(records, func(a, b *Record) int {
		if x, y := key(a), key(b); x != y {
			return cmp.Compare(x, y)
		}
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
}

func groupOf(records []*Record) (g PromptGroup) {
	times := make([]time.Duration, len(records))
	for i, r := range records {
		g.Tokens += float64(r.uncached()) / float64(len(records))
		times[i] = r.First - r.Due
	}
	slices.Sort(times)
	g.TTFT = stat.Quantile(times, 0.5)
	return g
}
