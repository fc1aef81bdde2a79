package main

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/measure"
)

// noPlan is the answer of a command that finds no plan.
type noPlan struct {
	doc  report.Document
	view noPlanJSON
	code outcome
}

// without is the answer where a decision ended without a plan; nil where the error
// is another one, or none.
func (d *decision) without(err error) *noPlan {
	var infeasible *plan.Infeasible
	var undecided *plan.Undecided
	switch {
	case errors.As(err, &infeasible) && d.cfg.Engine.Kind == "attach" && rejected(d.trials):
		why := d.trials[len(d.trials)-1].Rejected
		v := noPlanJSON{Outcome: "not_measured", Reasons: []string{why}, Rejected: infeasible.Rejected}
		return &noPlan{report.Unmeasured(why, d.cfg.Demand, d.cfg.Objective, d.background()), v.of(d), exitFailed}
	case errors.As(err, &infeasible):
		v := noPlanJSON{Outcome: "infeasible", Idle: d.idle(), Reasons: infeasible.Reasons(), Rejected: infeasible.Rejected}
		return &noPlan{report.Infeasible(infeasible, d.cfg.Demand, d.cfg.Objective, d.background()), v.of(d), exitInfeasible}
	case errors.As(err, &undecided):
		v := noPlanJSON{Outcome: "undecided", Idle: d.idle(), Reasons: undecided.Reasons(), Rejected: undecided.Rejected}
		return &noPlan{report.UndecidedPlan(undecided, d.cfg.Demand, d.cfg.Objective, d.background()), v.of(d), exitUndecided}
	}
	return nil
}

// refuse reports that no plan was found. The reasons are the answer, so they go to
// standard output.
func (p *program) refuse(c *cli.Context, none *noPlan, folder *sweep.Folder) error {
	if folder != nil {
		if err := writeReport(*folder, none.doc); err != nil {
			return err
		}
	}
	var err error
	if c.Bool("json") {
		err = p.printJSON(none.view)
	} else {
		err = p.print(none.doc)
	}
	return cmp.Or(err, error(none.code))
}

// noPlanJSON is the document of a command that finds no plan.
type noPlanJSON struct {
	// Outcome is infeasible, undecided, or not_measured where a server that planner did
	// not start was gone, which is no word on what it can meet.
	Outcome string `json:"outcome"`
	// Idle is set when an idle engine misses the objective already.
	Idle     *idleJSON           `json:"idle"`
	Reasons  []string            `json:"reasons"`
	Rejected []measure.Rejection `json:"rejected"`
	// Trials counts what was run, Invalid those of them that could not be trusted,
	// and Doubts their reasons, the commonest first.
	Trials  int      `json:"trials"`
	Invalid int      `json:"invalid_trials"`
	Doubts  []string `json:"doubts"`

	Demand    plan.Demand `json:"demand"`
	Objective measure.SLO `json:"slo"`
	// Run is what depends on the clock, the host or a path.
	Run map[string]any `json:"run,omitempty"`
}

// of adds what was asked of a decision, and what it ran.
func (v noPlanJSON) of(d *decision) noPlanJSON {
	v.Demand, v.Objective = d.cfg.Demand, d.cfg.Objective
	s := report.Tally(d.trials)
	v.Trials, v.Invalid, v.Doubts = s.Trials, s.Invalid, append([]string{}, s.Doubts...)
	v.Rejected = append([]measure.Rejection{}, v.Rejected...)
	return v
}

// idleJSON is the latency of an idle engine, which is the smallest limit that
// any rate can meet.
type idleJSON struct {
	Bound    string  `json:"bound"`
	Stat     string  `json:"statistic"`
	Latency  float64 `json:"latency_ms"`
	Limit    float64 `json:"limit_ms"`
	Feasible float64 `json:"smallest_feasible_limit_ms"`
}

// idle is the latency of an idle engine that misses the objective already; nil
// where none does.
func (d *decision) idle() *idleJSON {
	if d.chosen == nil || d.chosen.race == nil {
		return nil
	}
	f := floorOf(d.chosen)
	if f == nil {
		return nil
	}
	ms := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
	return &idleJSON{f.Bound, f.Stat, ms(f.Value), ms(f.Limit), math.Ceil(ms(f.Value))}
}
