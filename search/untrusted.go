package search

import (
	"math"
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
			doubts, wasted = append(doubts, t.doubt), wasted+t.cost
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
	lowest, seen := attempt{rate: math.Inf(1)}, ""
	met := false
	var missed []float64
	for _, t := range s.tried {
		switch {
		case !t.valid:
			met = met || t.met
			continue
		case t.state == measure.Missed:
			missed = append(missed, t.rate)
		}
		if t.rate < lowest.rate {
			lowest = t
		}
	}
	switch {
	case lowest.state != measure.Missed:
		seen = ", which its trial does not decide"
	case lowest.failing != "":
		seen = ", where " + lowest.failing
	}
	bound := math.Inf(1)
	if len(missed) > 1 {
		slices.Sort(missed)
		bound = missed[1]
	}
	sure := 1 - s.posteriors.survival(math.Log(bound))
	if met || math.IsInf(bound, 1) || sure < 1-safeQuantile {
		return note.Because(note.NoneMet, why.Text, lowest.rate, seen)
	}
	return note.Because(note.AllMissed, why.Text, lowest.rate, seen, bound, min(math.Floor(100*sure), 99))
}

// failingAt says how requests failed at the lowest rate, where that is what missed the
// objective.
func (s *MaxRate) failingAt(lowest float64) string {
	for _, t := range s.valid() {
		if t.rate == lowest && t.failing != "" {
			return ": " + t.failing
		}
	}
	return ""
}
