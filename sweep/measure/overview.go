package measure

import (
	"cmp"
	"slices"
	"strings"
)

// Overview sums up what trials decided.
type Overview struct {
	// Trials counts those that ran, Invalid those of them that could not be trusted,
	// Unsure those that neither met nor missed the objective.
	Trials, Invalid, Unsure int
	// Doubts are the distinct reasons of the invalid ones, the commonest first.
	Doubts []string
}

// OverviewOf counts what trials decided.
func OverviewOf(trials []Measurement) Overview {
	var s Overview
	times := map[string]int{}
	for i := range trials {
		m := &trials[i]
		if m.Rejected != "" {
			continue
		}
		s.Trials++
		switch {
		case !m.Valid:
			s.Invalid++
			if len(m.Warnings) > 0 {
				// The first one is why; figures differ from trial to trial.
				why := skeleton(m.Warnings[0])
				if times[why] == 0 {
					s.Doubts = append(s.Doubts, m.Warnings[0])
				}
				times[why]++
			}
		case m.Verdict == nil || m.Verdict.State == Unsure:
			s.Unsure++
		}
	}
	slices.SortStableFunc(s.Doubts, func(a, b string) int { return cmp.Compare(times[skeleton(b)], times[skeleton(a)]) })
	return s
}

// skeleton is a reason without its figures.
func skeleton(reason string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ',' {
			return -1
		}
		return r
	}, reason)
}
