package config

import "time"

// SearchSettings says how far to go in finding a maximum rate.
type SearchSettings struct {
	// Precision is the half-width of the interval on the maximum rate, relative.
	Precision float64
	// Confidence of that interval.
	Confidence float64
	// Warmup is the load before the window of every trial, and Trial that window; Auto
	// leaves either to the search.
	Warmup, Trial time.Duration
	// MinRequests of a trial; 0 means what the quantiles of the objective need.
	MinRequests int
	// Budget is the engine time of all trials together; BudgetGiven says that the
	// user asked for it, without which it does not bound a simulated engine.
	Budget      time.Duration
	BudgetGiven bool
	// Strategy is "race", "one-at-a-time" or "grid".
	Strategy string
	// Certify asks for a test of a rate that needs no curve, behind the search.
	Certify bool
}

// checkWarmUp refuses the search of a maximum rate without warm-up: 0 is no length that
// it could choose.
func (r *reader) checkWarmUp(c *Config) {
	if c.draft.need.Limit && c.draft.need.Engine != NoEngine && c.Search.Warmup == 0 {
		r.at("search.warm_up").refuse(`is "0s", want "auto" or a duration above 0: an engine that is still empty carries more than it can keep up`)
	}
}

// Auto is a duration that is left to the search.
const Auto time.Duration = -1

// usualBudget is the engine time of a search whose user asked for none.
const usualBudget = time.Hour
