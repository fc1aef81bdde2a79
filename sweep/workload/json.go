package workload

import (
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

// MarshalText writes the process's name, nothing for the zero value.
func (p Process) MarshalText() ([]byte, error) { return textOf(p) }

// UnmarshalText reads a process's name.
func (p *Process) UnmarshalText(b []byte) error { return readText(p, b, ParseProcess) }

// MarshalText writes the family's name, nothing for the zero value.
func (d Dist) MarshalText() ([]byte, error) { return textOf(d) }

// UnmarshalText reads a family's name.
func (d *Dist) UnmarshalText(b []byte) error { return readText(d, b, ParseDist) }

// textOf is the name of a value, nothing for the zero value.
func textOf[T interface {
	comparable
	fmt.Stringer
}](v T) ([]byte, error) {
	var zero T
	if v == zero {
		return nil, nil
	}
	return []byte(v.String()), nil
}

// readText is the inverse of textOf.
func readText[T any](v *T, b []byte, parse func(string) (T, error)) (err error) {
	if len(b) == 0 {
		var zero T
		*v = zero
		return nil
	}
	*v, err = parse(string(b))
	return err
}
