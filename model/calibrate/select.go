package calibrate

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"planner/internal/wire"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Select takes those trials of a run that constants can be fitted to, with the
// configuration's traffic and first knobs where the trials do not tell theirs, and the
// release of the engine that they name. Trials of a kind of instance that is not configured,
// that cannot be trusted, that overloaded the engine or of which requests failed are left
// out: a fit to them would put the client's or the backlog's time into the constants, or
// take the load of requests that the engine never saw for carried. skipped says which those
// are, and why.
func Select(run string, trials []measure.Measurement, w *workload.Workload, configured []measure.Knobs) (points []LoadPoint, release string, skipped []string) {
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
		release = cmp.Or(release, m.Server.Engine.Version)
		points = append(points, LoadPoint{Trial: m.Trial, Measurement: m})
	}
	return points, release, skipped
}

// mostFailed is the share of the requests of a trial that may have failed.
const mostFailed = 0.01

// trafficOf is the traffic of a trial as it was recorded. Where that is the
// configuration's, the latter is taken, since it holds the rows of a trace and the
// samples of lengths too; known is false where the record needs those of another one.
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
