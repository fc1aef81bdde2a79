package plan

import (
	"planner/internal/note"
	"planner/model/curve"
	"planner/plan/diagnose"
	"planner/plan/effects"
	"planner/plan/fleet"
	"planner/plan/trust"
	"planner/search"
	"planner/sweep/measure"
)

// Offer is what one instance of one configuration gives and costs.
type Offer struct {
	Knobs measure.Knobs `json:"knobs"`
	// GPU names the hardware, GPUs counts it per instance.
	GPU  string `json:"gpu"`
	GPUs int    `json:"gpus_per_instance"`
	// Rate is the maximum rate of one instance under the objective.
	Rate search.Estimate `json:"max_rate_per_s"`
	// Binding names the bound that limits Rate.
	Binding string `json:"binding"`
	// Pricing is what one GPU costs and draws.
	Pricing
	// PromptTokens and OutputTokens are the means of one request; 0 means
	// unknown.
	PromptTokens float64 `json:"prompt_tokens,omitempty"`
	OutputTokens float64 `json:"output_tokens,omitempty"`
	// Unreached says that every rate measured is within the objective: Rate is the
	// highest of them, and the maximum is not below it.
	Unreached bool `json:"unreached,omitempty"`
	// Obstacle says why the configuration serves no rate at all under the
	// objective; empty if it does.
	Obstacle note.Reason `json:"-"`
	// Idle is the latency of an idle instance where that misses the objective already.
	Idle *IdleLatency `json:"idle,omitempty"`
	// Unknown says why no rate is known where there may be one: a search that did not
	// come to its end. It counts only where the safe rate gives no fleet that the demand
	// allows, and without an obstacle.
	Unknown string `json:"unknown,omitempty"`
	// Loose says why no fleet is sized by the safe rate, far below the likely one as it is: more trials, or a
	// measurement, would give a much smaller one. Empty where one is.
	Loose note.Reason `json:"-"`
	// Warnings are what to be careful with; a file has their sentences as well.
	Warnings note.Notes `json:"notes,omitempty"`
}

// IdleLatency is the latency of an idle engine, which is the smallest limit that
// any rate can meet.
type IdleLatency struct {
	Bound    string  `json:"bound"`                      // the limit that is missed
	Stat     string  `json:"statistic"`                  // mean, p50, p90, p95, p99 or p99.9
	Latency  float64 `json:"latency_ms"`                 // that of a request alone on the server
	Limit    float64 `json:"limit_ms"`                   // what was asked
	Feasible float64 `json:"smallest_feasible_limit_ms"` // the least limit that a request alone meets
}

// FromCrossing is the offer's rate where nothing but a table of latencies is
// known: the crossing, with the spread of the forms as its interval, and the low end
// of that as the safe rate. Its confidence is zero: there is no sampling error to state.
func FromCrossing(x *curve.Crossing) search.Estimate {
	return search.Estimate{Value: x.Value, Low: x.Low, High: x.High, Safe: x.Low}
}

// Alternative is an offer sized for the same demand as the plan.
type Alternative struct {
	Offer    Offer `json:",embed"`
	Feasible bool  `json:"feasible"` // whether a fleet of it meets everything that was asked
	// Undecided says that no rate is known of the offer by which to size a fleet, though
	// it may carry one.
	Undecided bool `json:"undecided,omitempty"`
	// Reason says why it was not chosen, or why it cannot be.
	Reason note.Reason `json:",embed"`
	// Fleet and Cost are zero, and null in JSON, where the offer could not be sized.
	Fleet Fleet `json:"fleet"`
	Cost  Cost  `json:"cost"`
}

// Evidence is what a plan can show for itself; whoever has it attaches it.
type Evidence struct {
	// Roofline is that of the chosen offer's instance.
	Roofline *DataSheet `json:"roofline"`
	// Curve is that of the binding metric under the chosen knobs; its knee and
	// saturation are the plan's. Curves holds those of other metrics.
	Curve  *curve.Curve   `json:"curve"`
	Curves []*curve.Curve `json:"curves,omitempty"`
	// Knee and Saturation are those of Curve, filled in when the plan is written.
	Knee       *float64          `json:"knee_per_s"`
	Saturation *curve.Saturation `json:"saturation_per_s"`
	// Diagnosis is what of the server is not as it should be, Trust the data held against
	// the checklist of a benchmark.
	Diagnosis []diagnose.Finding `json:"diagnosis"`
	Trust     []trust.Item       `json:"trust"`
	// Power is nil where nothing is known of how busy GPUs are.
	Power *Power `json:"power,omitempty"`
	// Effects are what the knobs do to the maximum rate, the largest first.
	Effects []effects.Effect `json:"effects"`
	// Crossed are the knob sets that had a search of their own, and those that were dropped early, placed by short
	// simulated runs.
	Crossed []effects.Setting `json:"crossed"`
}

// AllCurves are Curve and Curves; none where there is no Curve.
func (e *Evidence) AllCurves() []*curve.Curve {
	if e.Curve == nil {
		return nil
	}
	return append([]*curve.Curve{e.Curve}, e.Curves...)
}

// Comparison is the engine's own settings beside the best that was found.
type Comparison struct {
	Default Setting `json:",embed"`
	// Tuned is the best set of the search; the same as Default where that is it.
	Tuned Setting `json:"tuned"`
	// Gain is the ratio of the tuned rate to the default's, less one: 0.1 is 10 % more. What is
	// not known of the engine moves both together, so that the interval is narrower than theirs
	// would have it. Nil where one of the two has no rate.
	Gain *search.Estimate `json:"gain"`
}

// Setting is a knob set and the rate of one instance; nil if none is known.
type Setting struct {
	Knobs measure.Knobs    `json:"knobs"`
	Rate  *search.Estimate `json:"max_rate_per_s"` // null where none was found
}

// Plan is the answer: the chosen offer, its fleet and cost, and what else was
// looked at.
type Plan struct {
	// Offer is the chosen one. Its warnings are among the plan's.
	Offer Offer `json:",embed"`
	// Comparison sets the engine's own settings beside the best others on the chosen
	// hardware; nil when they were not tried. The plan's offer is one of the two.
	Comparison *Comparison `json:"default_knobs"`
	Evidence   Evidence    `json:",embed"`
	Fleet      Fleet       `json:"fleet"`
	Cost       Bill        `json:"cost"`
	Handover   Handover    `json:",embed"`
	// Sensitivity is what the chosen instances would cost if things turn out other than
	// planned, the largest change first.
	Sensitivity []Change `json:"sensitivity"`
	// Drivers are the assumptions that carry a part of the cost, the largest first.
	Drivers []Driver `json:"cost_drivers,omitempty"`
	// Alternatives are the other offers: the feasible ones by cost per hour,
	// then GPUs, and behind them the infeasible ones.
	Alternatives []Alternative       `json:"alternatives"`
	Rejected     []measure.Rejection `json:"rejected"`    // the knob sets that cannot run
	Assumptions  []string            `json:"assumptions"` // what was assumed where nothing was said, in words
	Warnings     note.Notes          `json:"notes"`
	Demand       Demand              `json:"demand"`
	Objective    measure.SLO         `json:"slo"`
	// InTime is nil where no traffic in time is given.
	InTime *InTime `json:"static_or_autoscaled,omitempty"`
	// Certificate is that of a rate of one instance; nil if none was sought.
	Certificate *search.Certified `json:"certificate,omitempty"`
	// Run is what depends on the clock, the host or a path. A plan that was read
	// back holds it as json.RawMessage.
	Run any `json:"run,omitempty"`
}

// InTime are the plan's fleet and an autoscaled one under the same traffic in time.
type InTime struct {
	// Static has the plan's instances at all times.
	Static     *fleet.Answer `json:"static"`
	Autoscaled *fleet.Answer `json:"autoscaled"`
	// Note says why there is neither; "" where there are both.
	Note string `json:"note,omitempty"`
	// Warning says that the replayed traffic is not that of the plan; "" where it is.
	Warning string `json:"warning,omitempty"`
}
