package workload

import (
	"bytes"
	"fmt"

	"planner/internal/wire"
)

// MarshalJSON describes the workload: the rows of a trace and the samples of an
// empirical length stay in their files, and a client that waits forever has null for
// its timeout.
func (w *Workload) MarshalJSON() ([]byte, error) {
	type fields Workload
	v := fields(*w)
	if v.Timeout <= 0 {
		v.Timeout = -1
	}
	return wire.Marshal(v)
}

// UnmarshalJSON reads a description. What comes back names the workload in a
// report; where its draws lie in other files, as those of a trace do, it cannot
// make a schedule.
func (w *Workload) UnmarshalJSON(b []byte) error {
	type fields Workload
	var v fields
	if err := wire.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read workload: %w", err)
	}
	v.Timeout = max(v.Timeout, 0)
	*w = Workload(v)
	return nil
}

// Alike reports whether two workloads are written alike but for what does not make one
// another: its seed, the engine's longest request, and where a trace was read from. The
// rows of a trace and the samples of an empirical length are not compared, as a
// workload that was read back does not hold them. A nil workload is like any other.
func (w *Workload) Alike(other *Workload) bool {
	if w == nil || other == nil {
		return true
	}
	a, b := *w, *other
	a.Seed, a.MaxLen, a.TraceFile = b.Seed, b.MaxLen, b.TraceFile
	x, errX := wire.Marshal(&a)
	y, errY := wire.Marshal(&b)
	return errX != nil || errY != nil || bytes.Equal(x, y)
}
