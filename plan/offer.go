package plan

import (
	"planner/internal/note"
	"planner/model/curve"
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
	// PricePerGPUHour is in US dollars; 0 means unknown.
	PricePerGPUHour float64 `json:"usd_per_gpu_hour,omitempty"`
	// PricedBy says where the price comes from, with its date.
	PricedBy string `json:"priced_by,omitempty"`
	// PromptTokens and OutputTokens are the means of one request; 0 means
	// unknown.
	PromptTokens float64 `json:"prompt_tokens,omitempty"`
	OutputTokens float64 `json:"output_tokens,omitempty"`
	// Watts is the power of one GPU under load, 0 if unknown; PowerPrice is in US
	// dollars per kWh, 0 if unknown.
	Watts      float64 `json:"watts_per_gpu,omitempty"`
	PowerPrice float64 `json:"usd_per_kwh,omitempty"`
	// Unreached says that every rate measured is within the objective: Rate is the
	// highest of them, and the maximum is not below it.
	Unreached bool `json:"unreached,omitempty"`
	// Obstacle says why the configuration serves no rate at all under the
	// objective; empty if it does.
	Obstacle string `json:"obstacle,omitempty"`
	// Unknown says why no rate is known where there may be one: a search that did not
	// come to its end. It counts only without a safe rate and without an obstacle.
	Unknown string `json:"unknown,omitempty"`
	// Warnings are what to be careful with; a file has their sentences as well.
	Warnings note.Notes `json:"notes,omitempty"`
}

// FromCrossing is the offer's rate where nothing but a table of latencies is
// known: the crossing itself, with the spread of the forms as its interval. Its
// confidence is zero: there is no sampling error to state.
func FromCrossing(x *curve.Crossing) search.Estimate {
	return search.Estimate{Value: x.Value, Low: x.Low, High: x.High, Safe: x.Value}
}
