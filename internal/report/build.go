package report

import (
	"fmt"

	"planner/plan"
	"planner/plan/decide"
	"planner/sweep/design"
	"planner/sweep/measure"
)

// Build makes the report of an answer: a plan or why there is none, a maximum rate,
// a sweep, a comparison, a measurement. server says how an instance with given knobs
// is started, nil where nobody knows; e is what was seen of engines, nil for the
// simulated one.
func Build(answer any, server func(measure.Knobs) Server, e *Engines) (Document, error) {
	beside := func(b decide.Background) Background {
		out := Background{Background: b, Engines: e}
		if server != nil {
			out.Server = server(b.Knobs)
		}
		return out
	}
	switch a := answer.(type) {
	case *decide.Planned:
		return Plan(a.Plan, beside(a.Background)), nil
	case *decide.NoPlan:
		return noPlan(a, beside(a.Background)), nil
	case *decide.FoundRate:
		return Search(a.Knobs, a.Result, beside(a.Background)), nil
	case *design.Swept:
		return Sweep(a, e), nil
	case *design.Compared:
		return Compare(a, e), nil
	case measure.Measurement:
		return MeasurementOn(a, e), nil
	}
	return Document{}, fmt.Errorf("report: nothing is known of answers of type %T", answer)
}

// noPlan builds the report of a decision without a plan.
func noPlan(n *decide.NoPlan, b Background) Document {
	if n.Outcome == "not_measured" {
		return Unmeasured(n.Reasons[0], n.Demand, n.Objective, b)
	}
	switch why := n.Why.(type) {
	case *plan.Infeasible:
		return Infeasible(why, n.Demand, n.Objective, b)
	case *plan.Undecided:
		return UndecidedPlan(why, n.Demand, n.Objective, b)
	}
	return Unmeasured(n.Why.Error(), n.Demand, n.Objective, b)
}
