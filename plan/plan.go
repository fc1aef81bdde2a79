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
	"time"
)

// Offer is the rate and the cost of one instance of one configuration.
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
	// PromptTokens and OutputTokens are the means per request; 0 means unknown.
	PromptTokens float64 `json:"prompt_tokens,omitempty"`
	OutputTokens float64 `json:"output_tokens,omitempty"`
	// Tail is how long a job's last requests take while the instances empty; 0 without a job.
	Tail time.Duration `json:"tail_s,omitempty"`
	// Unreached says that every measured rate meets the objective: Rate is the highest of them, and the maximum
	// is at least that.
	Unreached bool `json:"unreached,omitempty"`
	// Obstacle says why the configuration carries no rate at all that meets the objective; empty if it does.
	Obstacle note.Reason `json:"-"`
	// Idle is the latency of an idle instance if that misses the objective.
	Idle *IdleLatency `json:"idle,omitempty"`
	// Unknown says why no rate is known although there may be one: a search that was not completed. It matters
	// only if the safe rate gives no fleet that the demand allows and there is no obstacle.
	Unknown string `json:"unknown,omitempty"`
	// Loose says why no fleet is sized by the safe rate: it is so far below the likely rate that more trials,
	// or a measurement, would give a much smaller fleet. Empty if one is.
	Loose note.Reason `json:"-"`
	// Warnings are cautions; in JSON their sentences are added.
	Warnings note.Notes `json:"notes,omitempty"`
}

// IdleLatency is the latency of an idle engine, the smallest limit that can be met at any rate.
type IdleLatency struct {
	Bound    string  `json:"bound"`                      // the limit that is missed
	Stat     string  `json:"statistic"`                  // mean, p50, p90, p95, p99 or p99.9
	Latency  float64 `json:"latency_ms"`                 // of a single request on the server
	Limit    float64 `json:"limit_ms"`                   // the limit asked for
	Feasible float64 `json:"smallest_feasible_limit_ms"` // the least limit that a single request meets
}

// FromCrossing returns an offer's rate if only a table of latencies is known: the crossing, with the spread of
// the forms as its interval and its low end as the safe rate. Its confidence is zero: there is no sampling
// error to state.
func FromCrossing(x *curve.Crossing) search.Estimate {
	return search.Estimate{Value: x.Value, Low: x.Low, High: x.High, Safe: x.Low}
}

// Alternative is an offer sized for the plan's demand.
type Alternative struct {
	Offer    Offer `json:",embed"`
	Feasible bool  `json:"feasible"` // whether its fleet meets everything that was asked
	// Undecided says that the offer may carry a rate, but none is known by which to size a fleet.
	Undecided bool `json:"undecided,omitempty"`
	// Reason says why it was not chosen, or why it cannot be.
	Reason note.Reason `json:",embed"`
	// Fleet and Cost are zero, and null in JSON, if the offer could not be sized.
	Fleet Fleet `json:"fleet"`
	Cost  Cost  `json:"cost"`
}

// Evidence is the evidence for a plan, attached by whoever has it.
type Evidence struct {
	// Roofline is that of the chosen offer's instance.
	Roofline *DataSheet `json:"roofline"`
	// Curve is that of the binding metric with the chosen knobs; its knee and saturation are the plan's. Curves
	// holds those of other metrics.
	Curve  *curve.Curve   `json:"curve"`
	Curves []*curve.Curve `json:"curves,omitempty"`
	// Knee and Saturation are those of Curve, filled in when the plan is written.
	Knee       *float64          `json:"knee_per_s"`
	Saturation *curve.Saturation `json:"saturation_per_s"`
	// Diagnosis lists what is wrong with the server, Trust checks the data against a benchmark checklist.
	Diagnosis []diagnose.Finding `json:"diagnosis"`
	Trust     []trust.Item       `json:"trust"`
	// Power is nil if it is unknown how busy the GPUs are.
	Power *Power `json:"power,omitempty"`
	// Effects are the knobs' effects on the maximum rate, the largest first.
	Effects []effects.Effect `json:"effects"`
	// Crossed are the knob sets that were searched, and those that were dropped early, with rates from short
	// simulated runs.
	Crossed []effects.Setting `json:"crossed"`
}

// AllCurves returns Curve and Curves; none without Curve.
func (e *Evidence) AllCurves() []*curve.Curve {
	if e.Curve == nil {
		return nil
	}
	return append([]*curve.Curve{e.Curve}, e.Curves...)
}

// Comparison compares the engine's own settings with the best found.
type Comparison struct {
	Default Setting `json:",embed"`
	// Tuned is the best set of the search; the same as Default if that is the best.
	Tuned Setting `json:"tuned"`
	// Gain is the ratio of the tuned rate to the default's, minus one: 0.1 is 10 % more. Uncertainty of the
	// engine's constants moves both together, so its interval is narrower than those of the two rates suggest.
	// Nil if either has no rate.
	Gain *search.Estimate `json:"gain"`
}

// Setting is a knob set and the rate of one instance; nil if unknown.
type Setting struct {
	Knobs measure.Knobs    `json:"knobs"`
	Rate  *search.Estimate `json:"max_rate_per_s"` // null if none was found
}

// Plan is the answer: the chosen offer, its fleet and cost, and what else was considered.
type Plan struct {
	// Offer is the chosen offer. Its warnings are among the plan's.
	Offer Offer `json:",embed"`
	// Comparison compares the engine's own settings with the best others on the chosen hardware; nil if they
	// were not tried. The plan's offer is one of the two.
	Comparison *Comparison `json:"default_knobs"`
	Evidence   Evidence    `json:",embed"`
	Fleet      Fleet       `json:"fleet"`
	Cost       Bill        `json:"cost"`
	Handover   Handover    `json:",embed"`
	// Sensitivity is what the chosen instances cost if things turn out other than planned, the largest change
	// first.
	Sensitivity []Change `json:"sensitivity"`
	// Drivers are the assumptions that cause a part of the cost, the largest first.
	Drivers []Driver `json:"cost_drivers,omitempty"`
	// Alternatives are the other offers: the feasible ones by cost per hour or of the job, then by GPUs,
	// followed by the infeasible ones.
	Alternatives []Alternative       `json:"alternatives"`
	Rejected     []measure.Rejection `json:"rejected"`    // the knob sets that cannot run
	Assumptions  []string            `json:"assumptions"` // what was assumed where nothing was said, in words
	Warnings     note.Notes          `json:"notes"`
	Demand       Demand              `json:"demand"`
	Objective    measure.SLO         `json:"slo"`
	// InTime is nil without traffic over time.
	InTime *InTime `json:"static_or_autoscaled,omitempty"`
	// Certificate is for a rate of one instance; nil if none was sought.
	Certificate *search.Certified `json:"certificate,omitempty"`
	// Run is what depends on the clock, the host or a path. In a plan that was read back it is a
	// json.RawMessage.
	Run any `json:"run,omitempty"`
}

// InTime compares the plan's fleet with an autoscaled one for the same traffic over time.
type InTime struct {
	// Static has the plan's instances all the time.
	Static     *fleet.Answer `json:"static"`
	Autoscaled *fleet.Answer `json:"autoscaled"`
	// Note says why there is neither; "" if there are both.
	Note string `json:"note,omitempty"`
	// Warning says that the replayed traffic is not the plan's; "" if it is.
	Warning string `json:"warning,omitempty"`
}
