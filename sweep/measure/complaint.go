package measure

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"planner/internal/note"
)

// mostComplaints is how many kinds of failure are told in words.
const mostComplaints = 3

// complaints says what was seen of the failed requests, the most frequent first:
// "217 requests ended with http status: 429: rate limit". Failures without words
// of their own are in the tally alone.
func (c *cohort) complaints() note.Notes {
	type complaint struct {
		outcome Outcome
		detail  string
	}
	seen := map[complaint]int{}
	for _, r := range c.records {
		if r.failed() && r.Detail != "" {
			seen[complaint{r.Outcome, r.Detail}]++
		}
	}
	kinds := slices.SortedFunc(maps.Keys(seen), func(a, b complaint) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.detail, b.detail))
	})
	var out note.Notes
	for _, k := range kinds[:min(len(kinds), mostComplaints)] {
		out = append(out, note.New(note.FailedWith, seen[k], strings.ReplaceAll(k.outcome.String(), "_", " "), k.detail))
	}
	if more := len(kinds) - mostComplaints; more > 0 {
		out = append(out, note.New(note.FailedOtherwise, more))
	}
	return out
}
