package plan

import "planner/plan/fleet"

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
