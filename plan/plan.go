package plan

import (
	"planner/model"
	"planner/model/curve"
	"planner/search"
	"planner/sweep/measure"
)

// Alternative is an offer sized for the same demand as the plan.
type Alternative struct {
	Offer Offer
	Fleet Fleet
	Cost  Cost
	// Reason says why it was not chosen, or why it cannot be.
	Reason   string
	Feasible bool
}

// Evidence is what a plan can show for itself; whoever has it attaches it.
type Evidence struct {
	// Roofline is that of the chosen offer's instance.
	Roofline *model.Bounds
	// Curve is that of the binding metric under the chosen knobs; its knee and
	// saturation are the plan's. Curves holds those of other metrics.
	Curve  *curve.Curve
	Curves []*curve.Curve
	// Certificate is that of a rate of one instance; nil if none was sought.
	Certificate *search.Certified
}

// Plan is the answer: the chosen offer, its fleet and cost, and what else was
// looked at.
type Plan struct {
	Demand    Demand
	Objective measure.SLO
	Offer     Offer
	Fleet     Fleet
	// Cost is that of all instances at the planned rate, AtCapacity at what they
	// carry safely, AtMean at the mean rate (nil when that is not known).
	Cost       Cost
	AtCapacity Cost
	AtMean     *Cost
	// DefaultKnobs and DefaultRate are the engine's own settings and what they
	// give on the chosen hardware; nil when they were not tried.
	DefaultKnobs *measure.Knobs
	DefaultRate  *search.Estimate
	Evidence     Evidence
	// Alternatives are the other offers: the feasible ones by cost per hour,
	// then GPUs, and behind them the infeasible ones.
	Alternatives []Alternative
	Rejected     []Rejected
	Assumptions  []string
	Warnings     []string
	// Run is what depends on the clock, the host or a path. A plan that was read
	// back holds it as json.RawMessage.
	Run any
}
