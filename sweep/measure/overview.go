package measure

import (
	"cmp"
	"slices"

	"planner/internal/note"
)

// Overview sums up what trials decided.
type Overview struct {
	// Trials counts those that ran, Invalid those of them that could not be trusted,
	// Unsure those that neither met nor missed the objective.
	Trials, Invalid, Unsure int
	// Doubts are the reasons of the invalid ones, one of a kind, the commonest first.
	Doubts note.Notes
}

// OverviewOf counts what trials decided.
func OverviewOf(trials []Measurement) Overview {
	var s Overview
	var doubts note.Notes
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
				// The first one is why.
				doubts = append(doubts, m.Warnings[0])
			}
		case m.Verdict == nil || m.Verdict.State == Unsure:
			s.Unsure++
		}
	}
	kinds := doubts.Groups()
	slices.SortStableFunc(kinds, func(a, b note.Notes) int { return cmp.Compare(len(b), len(a)) })
	for _, k := range kinds {
		s.Doubts = append(s.Doubts, k[0])
	}
	return s
}
