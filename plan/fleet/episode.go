package fleet

import "planner/sweep/measure"

// Episode is the outcome of a scenario.
type Episode struct {
	// Records are the requests' records, in the order of the stages. Times count from the start of the first
	// stage.
	Records []measure.Record
	// Stages are the stages' start times in seconds; End is when the last stage and request had ended.
	Stages []float64
	End    float64
	// Levels are the numbers of replicas, with one entry per change.
	Levels []Level
	// Decisions are the changes that the autoscaler asked for.
	Decisions []Decision
	Tallies
}

// Tallies are counts and means of an episode.
type Tallies struct {
	// Starts counts replicas that became ready after the start, Failures lost nodes that held replicas, Retries
	// requests sent again.
	Starts, Failures, Retries int
	// Dropped says that the replay was given up.
	Dropped bool
	// Means are the means of the per-replica metrics over all samples that the autoscaler saw.
	Means map[string]float64
}

// Level is the number of replicas in each state from a time, in seconds, on.
type Level struct {
	At                                        float64
	Asked, Pending, Starting, Ready, Draining int
	// Replacing counts those not yet ready that replace lost ones.
	Replacing int
}

// Decision is a change of the number of replicas asked for.
type Decision struct {
	At   float64 `json:"at_s"`
	From int     `json:"from"`
	To   int     `json:"to"`
	Why  string  `json:"why"`
}
