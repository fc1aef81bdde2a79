package main

import (
	"bytes"
	"encoding/json"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// otherTraffic reports whether two runs say of themselves that their first trials
// were of different workloads.
func otherTraffic(a, b []measure.Measurement) bool {
	if len(a) == 0 || len(b) == 0 || a[0].Trial.Workload == nil || b[0].Trial.Workload == nil {
		return false
	}
	x, errX := json.Marshal(essence(a[0].Trial.Workload))
	y, errY := json.Marshal(essence(b[0].Trial.Workload))
	return errX == nil && errY == nil && !bytes.Equal(x, y)
}

// essence is a workload without what does not make it another one: its seed, the
// engine's longest request, and where a trace was read from.
func essence(w *workload.Workload) *workload.Workload {
	e := *w
	e.Seed, e.MaxLen, e.TraceFile = 0, 0, ""
	return &e
}
