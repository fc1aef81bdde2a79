package search

import (
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Status says what became of a knob set. The zero value is Untried.
type Status int

// What can become of a knob set.
const (
	Untried    Status = iota // The race is not over.
	Measured                 // Its maximum rate was searched in full.
	Beaten                   // It was measured beside the best set and is not better.
	Tied                     // It could not be told from the best set.
	Skipped                  // It was predicted to be worse, or the budget ended.
	Infeasibly               // It meets the objective at no rate.
	Unable                   // The engine does not run with it.
	underTest                // It is being measured beside the best set.
)

var statusNames = []string{"untried", "measured", "beaten", "tied", "skipped", "infeasible", "unable", "testing"}

// String is the status's name in files.
func (s Status) String() string { return statusNames[s] }

// Contestant is one knob set and what became of it.
type Contestant struct {
	Knobs  measure.Knobs `json:"knobs"`
	Status Status        `json:"status"`
	Reason note.Reason   `json:",embed"` // why it is not the best one
	Found  *Result       `json:"found"`  // what its own search found, where that has ended; else nil
}

// RaceResult is what a race knows, at any time.
type RaceResult struct {
	// Knobs are the best set so far; Best is what is known of its maximum rate, eventually from its final search.
	Knobs       measure.Knobs `json:"knobs"`
	Best        Result        `json:"best"`
	Default     *Result       `json:"default"`       // what the engine's own settings carry; nil if unknown
	Contestants []Contestant  `json:"others"`        // all other sets in the order given
	EngineTime  time.Duration `json:"engine_time_s"` // the engine time of all trials
}

// Result tells what is known so far.
func (r *Race) Result() RaceResult {
	lead := r.lead()
	out := RaceResult{Knobs: lead.prior.Knobs, EngineTime: r.spent}
	if lead.search != nil {
		out.Best = lead.search.Result()
	}
	if r.settled != nil && (len(lead.search.tried) == lead.search.chosen || !(out.Best.Estimate.Value > 0)) {
		why := out.Best.Reason
		if out.Best = *r.settled; r.ended && out.Best.Outcome == Searching {
			out.Best.Outcome, out.Best.Reason = OutOfBudget, why
		}
	}
	if s := r.standard; s != nil && s.search != nil && s.search.outcome != Searching {
		out.Default = new(s.search.Result())
	}
	if r.ended && r.incumbent == nil {
		out.Best.Outcome, out.Best.Reason = r.without(out.Best)
	}
	if r.cfg.OneEngine && r.ended && len(r.searched) == 1 {
		out.Best.Warnings = append(slices.Clip(out.Best.Warnings), note.New(note.OneStart))
	}
	if r.standard == lead {
		out.Default = &out.Best
	}
	others := list.Filter(r.all, func(c *candidate) bool { return c != lead })
	out.Contestants = append(out.Contestants, list.Map(others, func(c *candidate) Contestant { return r.standing(c, lead) })...)
	return out
}

// without is the outcome of a race in which no set met the objective at any rate. That one set never will says nothing of
// sets that the budget left out, unless an idle engine misses the objective already, which no knob makes faster.
func (r *Race) without(seen Result) (Outcome, note.Reason) {
	left := list.Count(r.all, func(c *candidate) bool { return c.status == Skipped })
	switch {
	case seen.Outcome == Searching:
		return OutOfBudget, note.Because(note.BudgetCut)
	case seen.Outcome.hopeless() && left > 0 && seen.Floor == nil:
		return OutOfBudget, note.Because(note.BudgetLeft, left, seen.Reason.Text)
	}
	return seen.Outcome, seen.Reason
}

// lead is the incumbent or, without one, the set whose search tells most; among equals the first, or the default.
func (r *Race) lead() *candidate {
	if r.incumbent != nil {
		return r.incumbent
	}
	all := r.all
	if r.cfg.Strategy == OneAtATime && slices.Contains(all, r.standard) {
		all = slices.Concat([]*candidate{r.standard}, all)
	}
	return slices.MaxFunc(all, func(a, b *candidate) int { return slices.Compare(a.telling(), b.telling()) })
}

// telling ranks how much a candidate's search tells, from most to least: that a rate meets the objective; that an idle
// engine misses it, whatever the knobs; that it may be met; that it is met at no rate; that the engine failed. Among
// equals, the faster idle engine or the higher likely rate tells more.
func (c *candidate) telling() []float64 {
	if c.search == nil {
		return nil
	}
	likely, r := 0.0, c.search.Result()
	if len(c.search.posteriors) > 0 {
		likely = c.search.posteriors.quantile(0.5)
	}
	level := 2.0
	switch {
	case r.Estimate.Value > 0:
		level = 4
	case r.Floor != nil:
		level, likely = 3, -float64(r.Floor.Value)
	case r.Outcome == Infeasible:
		level = 1
	case r.Outcome == Unmeasured:
		level = 0
	}
	return []float64{level, likely}
}

// standing is what became of a set beside the best one.
func (r *Race) standing(c, best *candidate) Contestant {
	s := Contestant{Knobs: c.prior.Knobs, Status: c.status, Reason: c.reason}
	if c.carries.Value > 0 {
		s.Found = new(c.search.Result())
	}
	switch {
	case r.cfg.Strategy != ByPrediction && c.search == nil:
		s.Status, s.Reason = Skipped, note.Because(note.OffTheWay)
	case c.status != Measured || !(c.carries.Value > 0):
	case c.carries.Value > best.carries.Value:
		s.Reason = note.Because(note.CarriesLessBy, c.carries, best.carries, 100*max(best.gain, -c.gain))
	default:
		s.Reason = note.Because(note.CarriesLess, c.carries, best.carries)
	}
	return s
}
