// Package search chooses the next trial.
package search

import "fmt"

// Estimate is a rate with its uncertainty, in requests per second.
type Estimate struct {
	// Value is the best single figure (the posterior median), Low and High
	// enclose it with probability Confidence.
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
	// Safe is the rate at which the objective holds with 95 % confidence
	// (one-sided). Fleets are sized by it.
	Safe float64 `json:"safe"`
}

// String is the estimate with its interval, in requests per second.
func (e Estimate) String() string {
	return fmt.Sprintf("%.3g requests/s (%.3g to %.3g)", e.Value, e.Low, e.High)
}
