package search

import (
	"time"

	"planner/internal/note"
)

// searchOf starts a search of its own for a candidate, within what is left of the
// budget.
func (r *Race) searchOf(p Prior, seed uint64) *MaxRate {
	cfg := r.cfg.Search
	cfg.Prior, cfg.Seed = p, seed
	if cfg.Budget > 0 {
		cfg.Budget = max(cfg.Budget-r.spent, time.Second)
	}
	return NewMaxRate(cfg)
}

// hadItsShare reports whether a set has had half of what was left of the budget when its
// search began, while none is known that meets the objective: the other half is for the
// other sets. A search that is near its end goes on.
func (r *Race) hadItsShare(c *candidate) bool {
	s := c.search
	if s.cfg.Budget == 0 || len(r.all) == 1 || s.spent < s.cfg.Budget/2 || s.outcome != Searching || s.pending != nil {
		return false
	}
	if len(s.valid()) >= minTrials && s.posteriors.halfWidth(s.cfg.Confidence) < 2*s.cfg.Precision {
		return false
	}
	s.outcome, s.reason = OutOfBudget, note.Because(note.ShareSpent, s.cfg.Budget/2)
	return true
}

// without says of a set that its search ended without a rate: it meets the objective at
// none, or what was measured does not tell.
func (c *candidate) without(found Result) {
	c.status, c.reason = Skipped, found.Reason
	if found.Outcome == Infeasible {
		c.status = Infeasibly
	}
}

// mostUndecided ends a race so many of whose searches ended without any rate, for what
// is hardly a matter of the knobs then.
const mostUndecided = 3

// givesUp ends a race without an incumbent when enough of its searches told nothing, or
// the last one spent the budget: there is nothing to measure the other sets against.
func (r *Race) givesUp() bool {
	undecided := 0
	why := note.Reason{}
	for _, c := range r.all {
		if c.status == Skipped {
			undecided++
			why = why.Or(c.reason)
		}
	}
	switch b := r.cfg.Search.Budget; {
	case undecided >= mostUndecided:
		why = note.Because(note.NotTriedBehind, undecided, why.Text)
	case undecided > 0 && b > 0 && b-r.spent < b/leastLeft:
		why = note.Because(note.BudgetSpent)
	default:
		return false
	}
	for _, c := range r.all {
		if c.status == Untried {
			c.status, c.reason = Skipped, why
		}
	}
	r.phase = finished
	return true
}

// leastLeft is the part of the budget, as a divisor, below which no other set is begun.
const leastLeft = 8
