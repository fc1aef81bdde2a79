package plan

import (
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
	Alternatives []Alternative
	Rejected     []Rejected
	Assumptions  []string
	Warnings     []string
}
