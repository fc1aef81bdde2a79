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

// MarshalText writes the process's name, nothing for the zero value.
func (p Process) MarshalText() ([]byte, error) { return textOf(p.String(), p == 0) }

// UnmarshalText reads a process's name.
func (p *Process) UnmarshalText(b []byte) error { return readText(p, b, ParseProcess) }

// MarshalText writes the family's name, nothing for the zero value.
func (d Dist) MarshalText() ([]byte, error) { return textOf(d.String(), d == 0) }

// UnmarshalText reads a family's name.
func (d *Dist) UnmarshalText(b []byte) error { return readText(d, b, ParseDist) }

// textOf is the text of a name, empty for the zero value.
func textOf(name string, zero bool) ([]byte, error) {
	if zero {
		return nil, nil
	}
	return []byte(name), nil
}

// readText is the inverse of textOf.
func readText[T ~int](v *T, b []byte, parse func(string) (T, error)) (err error) {
	if len(b) == 0 {
		*v = 0
		return nil
	}
	*v, err = parse(string(b))
	return err
}
