package search

import (
	"slices"
	"strings"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// distrusted says why a search ends whose trials cannot be trusted; empty where they can.
func (s *MaxRate) distrusted() note.Reason {
	var doubts note.Notes
	wasted := time.Duration(0)
	for _, t := range s.tried {
		if !t.valid {
			doubts, wasted = append(doubts, doubt(t.Measurement)), wasted+s.cfg.cost(t.Measurement)
		}
	}
	switch {
	case s.learned().distrusted == few:
		return note.Because(note.InvalidInRow, few, inShort(doubts[len(doubts)-few:]))
	case s.cfg.Budget > 0 && len(doubts) > 1 && wasted > s.cfg.Budget/partShare:
		return note.Because(note.InvalidTime, len(doubts), len(s.tried), wasted.Round(time.Second), s.cfg.Budget, inShort(doubts))
	}
	return note.Reason{}
}

// inShort are the first two kinds of doubts of trials in one line, the ranges of their figures in place of
// each.
func inShort(doubts note.Notes) string {
	kinds := doubts.Summary()
	return strings.Join(kinds[:min(len(kinds), 2)], "; ")
}

// doubt is why a trial cannot be trusted: its first warning.
func doubt(m *measure.Measurement) note.Note {
	if len(m.Warnings) == 0 {
		return note.Text("it is not valid")
	}
	return m.Warnings[0]
}

// noneMet is why a search ended without any rate: how far below the rates that missed the
// objective it is met the curve alone would say, and that may be flat. A bound is told
// only where the posterior supports it, two trials at or below it missed the objective, as
// one may have been disturbed, and no trial that cannot be trusted met it.
func (s *MaxRate) noneMet(why note.Reason) note.Reason {
	met, missed := false, []float64{}
	for _, t := range s.tried {
		met = met || !t.valid && t.met
		if t.valid && t.missed() {
			missed = append(missed, t.rate)
		}
	}
	lowest := s.lowest()
	seen := lowest.failing(", where ")
	if !lowest.missed() {
		seen = ", which its trial does not decide"
	}
	if slices.Sort(missed); !met && len(missed) > 1 && s.posteriors.quantile(1-safeQuantile) <= missed[1] {
		return note.Because(note.AllMissed, why.Text, lowest.rate, seen, missed[1], 100*(1-safeQuantile))
	}
	return note.Because(note.NoneMet, why.Text, lowest.rate, seen)
}
