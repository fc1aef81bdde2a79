package search

import (
	"time"

	"planner/sweep/measure"
)

// Prior is what a simulator, or arithmetic, says of one configuration before
// anything is measured. It comes in as data: this package never simulates.
type Prior struct {
	Knobs measure.Knobs
	// Rate is the predicted maximum rate in requests per second; 0 means that
	// nothing is known.
	Rate float64
	// Spread is the standard deviation of ln Rate; 0 takes the default.
	Spread float64
	// Latency is how long the slowest requests are predicted to take from end to
	// end at Rate; it sizes the warm-up of the first trial. 0 means unknown.
	Latency time.Duration
	// Kappa is the predicted steepness d ln(-ln(1-p)) / d ln rate at Rate, Phi the
	// predicted dispersion of exceedance counts at the objective's share; 0
	// takes the default of either.
	Kappa, Phi float64
	// Gamma is how the dispersion grows with the share p of exceedances:
	// phi(p) = Phi (p/p0)^Gamma; 0 takes the default.
	Gamma float64
	// Binding names the bound that Rate, Kappa and Phi are about, as
	// measure.Bound.String does; empty when that is not known.
	Binding string
}
