package plan

import (
	"planner/search"
	"planner/sweep/measure"
)

// Offer is what one instance of one configuration gives and costs.
type Offer struct {
	Knobs measure.Knobs
	// GPU names the hardware, GPUs counts it per instance.
	GPU  string
	GPUs int
	// Rate is the maximum rate of one instance under the objective.
	Rate search.Estimate
	// Binding names the bound that limits Rate.
	Binding string
	// PricePerGPUHour is in US dollars; 0 means unknown.
	PricePerGPUHour float64
	// PricedBy says where the price comes from, with its date.
	PricedBy string
	// PromptTokens and OutputTokens are the means of one request.
	PromptTokens, OutputTokens float64
	// Watts is the power of one GPU under load, 0 if unknown.
	Watts    float64
	Warnings []string
}

// Rejected is a configuration that is no offer, and why.
type Rejected struct {
	Knobs  measure.Knobs `json:"knobs"`
	Reason string        `json:"reason"`
}

// Fleet is a number of instances, and where the number comes from.
type Fleet struct {
	Instances       int `json:"instances"`
	GPUsPerInstance int `json:"gpus_per_instance"`
	GPUs            int `json:"gpus"`
	// Needed is the planned rate over the safe rate, rounded up, without
	// headroom and spares.
	Needed   int     `json:"instances_needed"`
	Headroom float64 `json:"headroom"`
	Spare    int     `json:"spare"`
	// PlannedRate is the demand with growth and burst, in requests per second.
	PlannedRate float64 `json:"planned_rate_per_s"`
	// Utilization is the planned rate over what all instances carry safely.
	Utilization float64 `json:"utilization"`
	// DecidedBy names the rule that set the number: spare, availability, zones.
	DecidedBy string `json:"decided_by"`
}

// Cost is in US dollars; a figure that is not known is nil.
type Cost struct {
	PerHour                *float64 `json:"usd_per_hour"`
	PerMillionOutputTokens *float64 `json:"usd_per_million_output_tokens"`
	PerMillionTokens       *float64 `json:"usd_per_million_tokens"`
	PerThousandRequests    *float64 `json:"usd_per_thousand_requests"`
}
