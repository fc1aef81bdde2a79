package report

import (
	"fmt"

	"planner/plan/decide"
	"planner/plan/fleet"
	"planner/sweep/design"
	"planner/sweep/measure"
)

// Build makes the report of an answer: a plan or why there is none, a maximum rate,
// a sweep, a comparison, a fleet in time, a measurement.
func Build(answer any, e Engines) (Document, error) {
	switch a := answer.(type) {
	case *decide.Planned:
		return planDocument(a.Plan, a.Background, e), nil
	case *decide.PoolsPlanned:
		return poolsDocument(a, e), nil
	case *decide.NoPlan:
		return noPlanDocument(a, e), nil
	case *decide.FoundRate:
		return searchDocument(a.Knobs, a.Result, a.Background, e), nil
	case *design.Swept:
		return sweepDocument(a, e), nil
	case *design.Probed:
		return probeDocument(a, e), nil
	case *design.Compared:
		return comparisonDocument(a, e), nil
	case *fleet.Answer:
		return fleetDocument(a), nil
	case measure.Measurement:
		return measurementDocument(a, e), nil
	}
	return Document{}, fmt.Errorf("report: nothing is known of answers of type %T", answer)
}
