package calibrate

import (
	"bytes"
	"fmt"
	"slices"

	"planner/internal/wire"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Select returns the trials of a run that constants can be fitted to. The configuration supplies traffic and, from its first set, knobs that a trial does not record. Left
// out are trials of a kind of instance that is not configured, that cannot be trusted, that overloaded the
// engine, of which more than mostFailed of the requests failed, or whose traffic is in an unknown file: a fit
// would attribute the client's or the backlog's time to the constants, or count requests that the engine never
// saw as served. skipped names these trials and says why.
func Select(run string, trials []measure.Measurement, w *workload.Workload, configured []measure.Knobs) (points []LoadPoint, skipped []string) {
	for _, m := range trials {
		if !m.Ran() {
			continue
		}
		traffic, known := trafficOf(m.Trial.Workload, w)
		m.Trial.Knobs = m.Trial.Knobs.Or(configured[0])
		kind := m.Trial.Knobs.Kind()
		why := ""
		switch {
		case !m.Valid:
			why = "whose figures cannot be trusted"
		case m.Overloaded:
			why = "which overloaded the engine"
		case float64(m.Failed) > mostFailed*float64(m.Requests):
			why = fmt.Sprintf("of which %d of %d requests failed: %s", m.Failed, m.Requests, m.Complaint())
		case !slices.ContainsFunc(configured, func(k measure.Knobs) bool { return k.Kind() == kind }):
			why = "of " + kind.Describe() + ", which the configuration does not name"
		case !known:
			why = "whose traffic lies in a file that only its own configuration names"
		}
		if why != "" {
			skipped = append(skipped, fmt.Sprintf("trial %d of %s, %s", m.Trial.Number, run, why))
			continue
		}
		m.Trial.Workload = traffic
		points = append(points, LoadPoint{Trial: m.Trial, Measurement: m})
	}
	return points, skipped
}

// mostFailed is the largest share of a trial's requests that may have failed.
const mostFailed = 0.01

// trafficOf returns the traffic of a trial. If it was recorded as the configuration's, that is used, since it
// also holds a trace's rows and empirical lengths; known is false if the record needs those of another
// configuration.
func trafficOf(recorded, configured *workload.Workload) (w *workload.Workload, known bool) {
	if recorded == nil {
		return configured, true
	}
	x, errX := wire.Marshal(recorded)
	y, errY := wire.Marshal(configured)
	if errX == nil && errY == nil && bytes.Equal(x, y) {
		return configured, true
	}
	elsewhere := recorded.Arrivals == workload.Trace || slices.ContainsFunc(recorded.Shapes, func(s workload.Shape) bool {
		return s.Prompt.Dist == workload.Empirical || s.Output.Dist == workload.Empirical
	})
	return recorded, !elsewhere
}
