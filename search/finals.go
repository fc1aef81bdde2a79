package search

import (
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// conclude begins the final measurement of the winner and the default.
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
	best.Rate, best.Spread, best.Latency = r.incumbent.carries.Value, 0, r.incumbent.search.latency
	r.finals = []*candidate{{prior: best}}
	if d := r.cfg.Default; d != nil && d.Knobs != best.Knobs {
		r.standard = &candidate{prior: *d}
		r.finals = append(r.finals, r.standard)
	}
	for _, c := range r.finals {
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
