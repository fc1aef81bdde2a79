package workload

import (
	"bytes"
	"encoding/json"
)

// Alike reports whether two workloads are written alike but for what does not make one
// another: its seed, the engine's longest request, and where a trace was read from. The
// rows of a trace and the samples of an empirical length are not compared, as a
// workload that was read back does not hold them. A nil workload is like any other.
func (w *Workload) Alike(other *Workload) bool {
	if w == nil || other == nil {
		return true
	}
	a, errA := json.Marshal(w.essence())
	b, errB := json.Marshal(other.essence())
	return errA != nil || errB != nil || bytes.Equal(a, b)
}

// essence is the workload without what does not make it another one.
func (w *Workload) essence() *Workload {
	e := *w
	e.Seed, e.MaxLen, e.TraceFile = 0, 0, ""
	return &e
}
