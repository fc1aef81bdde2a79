package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/note"
)

// LeastSent is the least share of the offered requests that the window of a trial
// of conversations must see for its figures to be those of the offered rate. A
// measurement below it says so, and a search takes it at the rate that was sent.
const LeastSent = 0.95

// unsteady says why conversations sent fewer requests in the window than were
// offered; empty if they did not. A schedule begins without conversations under
// way, and a turn is sent only when the one before it has ended. Requests of one
// conversation are one clump, so that their number scatters by its turns.
func (c *cohort) unsteady(m *Measurement) note.Notes {
	w := c.trial.Workload
	if w == nil || w.Turns <= 1 || c.trial.Closed() || c.trial.Rate <= 0 || c.length() <= 0 {
		return nil
	}
	offered := c.trial.Rate
	if steady := w.Steady(c.from, c.to); steady < LeastSent {
		course := w.Course(max(m.E2E.Mean, 0))
		return note.Notes{note.New(note.ConversationsStarting, m.Sent, offered, course.Round(time.Second), c.trial.Warmup)}
	}
	want := offered * c.length()
	missing := want - m.Sent*c.length()
	return note.If(missing > max((1-LeastSent)*want, 3*math.Sqrt(want*float64(w.Turns))), note.TurnsWaited, m.Sent, offered)
}

// mostComplaints is how many kinds of failure are told in words.
const mostComplaints = 3

// complaints says what was seen of the failed requests, the most frequent first:
// "217 requests ended with http status: 429: rate limit". Failures without words
// of their own are in the tally alone.
func complaints(records []*Record) note.Notes {
	type complaint struct {
		outcome Outcome
		detail  string
	}
	seen := map[complaint]int{}
	for _, r := range records {
		if r.failed() && r.Detail != "" {
			seen[complaint{r.Outcome, r.Detail}]++
		}
	}
	kinds := slices.SortedFunc(maps.Keys(seen), func(a, b complaint) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.detail, b.detail))
	})
	var out note.Notes
	for _, k := range kinds[:min(len(kinds), mostComplaints)] {
		how := strings.ReplaceAll(k.outcome.String(), "_", " ")
		out = append(out, note.New(note.FailedWith, seen[k], how, k.detail))
	}
	more := len(kinds) - mostComplaints
	return append(out, note.If(more > 0, note.FailedOtherwise, more)...)
}

// unresolved names all quantiles that the sample does not resolve in one remark.
func (m *Measurement) unresolved() note.Notes {
	var sizes []int
	names := map[int][]string{}
	for metric := TTFT; metric <= E2E; metric++ {
		s := m.Latency(metric)
		for _, q := range s.quantiles() {
			if *q.value != Unresolved || s.N == 0 {
				continue
			}
			if names[s.N] == nil {
				sizes = append(sizes, s.N)
			}
			names[s.N] = append(names[s.N], fmt.Sprintf("%s.%s", metric, q.name))
		}
	}
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		parts[i] = fmt.Sprintf("%d values do not resolve %s", n, strings.Join(names[n], ", "))
	}
	return note.If(len(parts) > 0, note.QuantilesUnresolved, strings.Join(parts, "; "))
}

// remarks lists what is worth knowing beside doubts: quantiles that the sample
// does not resolve, requests that are not in them, and overload.
func (m *Measurement) remarks(c *cohort) note.Notes {
	open := c.count((*Record).open)
	return slices.Concat(m.unresolved(), note.If(open > 0, note.RequestsOpen, open, m.Requests),
		note.If(m.Failed > 0, note.RequestsFailed, m.Failed, m.Requests), complaints(c.records), c.unsteady(m), note.If(m.Overloaded, note.Overloaded))
}
