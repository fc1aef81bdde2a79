package fleet

import "planner/sweep/measure"

// Episode is what came of a scenario.
type Episode struct {
	// Records are those of the requests, in the order of the stages. Times count from
	// the beginning of the first stage.
	Records []measure.Record
	// Stages are when each stage began, in seconds; End is when the last of them and the last request had ended.
	Stages []float64
	End    float64
	// Levels are the numbers of replicas, one entry for each change.
	Levels []Level
	// Decisions are the changes that the autoscaler asked for.
	Decisions []Decision
	Tallies
}

// Tallies are what an episode counts on the way.
type Tallies struct {
	// Starts counts replicas that came into service behind the beginning, Failures
	// nodes that were lost, Retries requests that were sent again.
	Starts, Failures, Retries int
	// Dropped says that it was given up.
	Dropped bool
	// Means are those of the metrics of a replica over all that an autoscaler saw.
	Means map[string]float64
}

// Level is how many replicas there are in each state from a time in seconds on.
type Level struct {
	At                                        float64
	Asked, Pending, Starting, Ready, Draining int
	// Replacing of those that do not serve yet stand for others that were lost.
	Replacing int
}

// Decision is a change of what is asked for.
type Decision struct {
	At   float64 `json:"at_s"`
	From int     `json:"from"`
	To   int     `json:"to"`
	Why  string  `json:"why"`
}
