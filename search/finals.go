package search

import (
	"cmp"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// conclude begins the final measurement of the winner and the default. Where engine time is short the search
// of the winner goes on; where it costs nothing another begins, on requests that no choice was made by.
func (r *Race) conclude(why note.Reason) {
	r.skip(why)
	if r.incumbent == nil {
		r.phase = finished
		return
	}
	r.phase = finishing
	seed := trialSeed(r.cfg.Search.Seed, streamFinal)
	if r.cfg.FinalPrecision > 0 {
		r.cfg.Search.Precision = r.cfg.FinalPrecision
	}
	best := r.incumbent.prior
	r.settled = r.incumbent.search.Result()
	best.Rate, best.Spread, best.Latency = r.incumbent.carries.Value, 0, r.incumbent.search.latency
	r.finals = []*candidate{{prior: best}}
	if d := r.cfg.Default; d != nil && d.Knobs != best.Knobs {
		r.standard = &candidate{prior: *d}
		r.finals = append(r.finals, r.standard)
	}
	for i, c := range r.finals {
		if i == 0 && r.cfg.Search.Budget > 0 {
			c.search = r.incumbent.search
			c.search.goOn((r.cfg.Search.Budget-r.spent)/time.Duration(len(r.finals)), r.cfg.Search.Precision)
			continue
		}
		c.search = r.searchOf(c.prior, seed, time.Duration(len(r.finals)))
	}
}

// finish runs the final searches side by side, or by turns.
func (r *Race) finish() []measure.Trial {
	var batch []measure.Trial
	if r.cfg.OneEngine {
		batch = r.takeTurns()
	} else {
		batch = r.sideBySide(r.finals, len(r.finals))
	}
	if len(batch) == 0 {
		r.phase = finished
	}
	return batch
}

// takeTurns proposes trials of the final searches by turns of turnTrials.
func (r *Race) takeTurns() []measure.Trial {
	for range 2 * len(r.finals) {
		c := r.finals[r.turn/turnTrials%len(r.finals)]
		if c.status != Unable {
			if batch := r.follow(c); len(batch) > 0 {
				r.turn++
				return batch
			}
		}
		r.turn += turnTrials - r.turn%turnTrials
	}
	return nil
}

// goOn lets a search that has ended go on, for a budget more, to a precision: on requests of which
// it takes as many trials as any answer rests on, as those before them were chosen by.
func (s *MaxRate) goOn(budget time.Duration, precision float64) {
	s.cfg.Budget, s.cfg.Precision = s.spent+budget, cmp.Or(precision, s.cfg.Precision)
	s.outcome, s.reason, s.pending, s.chosen = Searching, note.Reason{}, nil, len(s.tried)
}
