package workload

import (
	"encoding/json"
	"fmt"
	"time"

	"planner/internal/units"
)

// wireWorkload is a Workload in a file. It describes: the rows of a trace and
// the samples of an empirical length stay in their files.
type wireWorkload struct {
	Class      string   `json:"class"`
	Shapes     []Shape  `json:"shapes,omitempty"`
	Turns      int      `json:"turns,omitempty"`
	Think      float64  `json:"think_s,omitempty"`
	Arrivals   Process  `json:"arrivals"`
	Burstiness float64  `json:"burstiness,omitempty"`
	Trace      string   `json:"trace,omitempty"`
	AnyRow     bool     `json:"any_row,omitempty"`
	Timeout    *float64 `json:"timeout_s"`
	MaxLen     int      `json:"max_len_tokens,omitempty"`
	Seed       uint64   `json:"seed"`
}

// MarshalJSON describes the workload, without the rows of a trace.
func (w *Workload) MarshalJSON() ([]byte, error) {
	v := wireWorkload{
		Class: w.Class, Shapes: w.Shapes, Turns: w.Turns, Think: w.Think.Seconds(),
		Arrivals: w.Arrivals, Burstiness: w.Burstiness, Trace: w.TraceFile, AnyRow: w.AnyRow, MaxLen: w.MaxLen, Seed: w.Seed,
	}
	if w.Timeout > 0 {
		s := w.Timeout.Seconds()
		v.Timeout = &s
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads a description. What comes back names the workload in a
// report; where its draws lie in other files, as those of a trace do, it cannot
// make a schedule.
func (w *Workload) UnmarshalJSON(b []byte) error {
	var v wireWorkload
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read workload: %w", err)
	}
	*w = Workload{
		Class: v.Class, Shapes: v.Shapes, Turns: v.Turns, Think: units.Duration(v.Think, time.Second),
		Arrivals: v.Arrivals, Burstiness: v.Burstiness, TraceFile: v.Trace, AnyRow: v.AnyRow, MaxLen: v.MaxLen, Seed: v.Seed,
	}
	if v.Timeout != nil {
		w.Timeout = units.Duration(*v.Timeout, time.Second)
	}
	return nil
}

// MarshalText writes the process's name, nothing for the zero value.
func (p Process) MarshalText() ([]byte, error) {
	if p == 0 {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads a process's name.
func (p *Process) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*p = 0
		return nil
	}
	*p, err = ParseProcess(string(b))
	return err
}

// wireLengths is a Lengths in a file, under the configuration's keys.
type wireLengths struct {
	Dist   string   `json:"dist"`
	Value  int      `json:"value,omitempty"`
	Median *float64 `json:"median,omitempty"`
	Sigma  *float64 `json:"sigma,omitempty"`
	Mean   *float64 `json:"mean,omitempty"`
	StdDev *float64 `json:"stddev,omitempty"`
	Min    int      `json:"min,omitempty"`
	Max    int      `json:"max,omitempty"`
	File   string   `json:"file,omitempty"`
}

// MarshalJSON writes only what the family uses, under the configuration's keys.
func (l Lengths) MarshalJSON() ([]byte, error) {
	v := wireLengths{Dist: l.Dist.String(), Value: l.Value, Min: l.Min, Max: l.Max}
	switch l.Dist {
	case 0:
		v.Dist = ""
	case Lognormal:
		v.Median, v.Sigma = &l.Median, &l.Sigma
	case Normal:
		v.Mean, v.StdDev = &l.Mean, &l.StdDev
	case Empirical:
		v.File = l.File
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes; the samples of an empirical
// distribution stay in their file.
func (l *Lengths) UnmarshalJSON(b []byte) error {
	var v wireLengths
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read lengths: %w", err)
	}
	*l = Lengths{Value: v.Value, Min: v.Min, Max: v.Max}
	if v.Dist == "" {
		return nil
	}
	d, err := ParseDist(v.Dist)
	if err != nil {
		return fmt.Errorf("read lengths: %w", err)
	}
	l.Dist = d
	switch {
	case d == Lognormal && v.Median != nil && v.Sigma != nil:
		l.Median, l.Sigma = *v.Median, *v.Sigma
	case d == Normal && v.Mean != nil && v.StdDev != nil:
		l.Mean, l.StdDev = *v.Mean, *v.StdDev
	case d == Empirical:
		l.File = v.File
	}
	return nil
}
