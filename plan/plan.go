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
	// Undecided says that no rate is known of the offer, though it may carry one.
	Undecided bool
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

// Comparison is the engine's own settings beside the best that was found.
type Comparison struct {
	Default Setting
	// Tuned is the best set of the search; the same as Default where that is it.
	Tuned Setting
	// Gain is nil where one of the two has no rate.
	Gain *Gain
}

// Setting is a knob set and the rate of one instance; nil if none is known.
type Setting struct {
	Knobs measure.Knobs    `json:"knobs"`
	Rate  *search.Estimate `json:"max_rate_per_s"`
}

// Gain is a ratio of two maximum rates less one, with its interval. What is not
// known of the engine moves both rates together, so the interval is narrower than
// the two rates' own would have it.
type Gain struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// Shown reports whether the gain is one: its interval lies above zero.
func (g *Gain) Shown() bool { return g.Low > 0 }

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
	// Comparison sets the engine's own settings beside the best others on the chosen
	// hardware; nil when they were not tried. The plan's offer is one of the two.
	Comparison *Comparison
	Evidence   Evidence
	// Alternatives are the other offers: the feasible ones by cost per hour,
	// then GPUs, and behind them the infeasible ones.
	Alternatives []Alternative
	Rejected     []measure.Rejection
	Assumptions  []string
	Warnings     []string
	// Run is what depends on the clock, the host or a path. A plan that was read
	// back holds it as json.RawMessage.
	Run any
}
