package ingest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// ReadProfile reads a CSV of times and rates, each of which holds until the next: equal
// steps, without a gap.
func ReadProfile(name string, in io.Reader) (workload.Profile, error) {
	rows := csv.NewReader(in)
	rows.TrimLeadingSpace = true
	line := 0
	wrong := func(format string, a ...any) (workload.Profile, error) {
		return nil, &FileError{File: name, Line: line, What: fmt.Sprintf(format, a...)}
	}
	head, err := rows.Read()
	if err != nil {
		return wrong("holds no rows, want time_s,rate_per_s")
	}
	at, rate := slices.Index(head, "time_s"), slices.Index(head, "rate_per_s")
	if at < 0 || rate < 0 {
		line = 1
		return wrong("the columns are %s, want time_s,rate_per_s", strings.Join(head, ","))
	}
	var p workload.Profile
	var step, last float64
	for row, err := rows.Read(); err != io.EOF; row, err = rows.Read() {
		if at := (*csv.ParseError)(nil); errors.As(err, &at) {
			line = at.Line
		}
		if err != nil {
			return wrong("%v", err)
		}
		line, _ = rows.FieldPos(0)
		t, errT := strconv.ParseFloat(row[at], 64)
		v, errV := strconv.ParseFloat(row[rate], 64)
		switch {
		case errT != nil || !(t >= 0 && t <= 366*86400):
			return wrong("time_s is %q, want seconds from 0 on, of a year at most", row[at])
		case errV != nil || !(v >= 0 && v <= 1e6):
			return wrong("rate_per_s is %q, want requests/s of at least 0", row[rate])
		case len(p) > 0 && t <= last:
			return wrong("time_s is %v behind %v, want times that grow", t, last)
		case len(p) == 1:
			step = t - last
		case len(p) > 1 && math.Abs(t-last-step) > 1e-6*t:
			return wrong("time_s is %v, and %v s behind the row before; want %v s between all rows, without a gap", t, t-last, step)
		}
		p, last = append(p, workload.RateStep{Rate: v}), t
	}
	line = 0
	if len(p) < 2 {
		return wrong("holds %d rows, want at least 2", len(p))
	}
	for i := range p {
		p[i].Length = time.Duration(step * float64(time.Second))
	}
	if p.Peak() == 0 {
		return wrong("has no rate above 0")
	}
	return p, nil
}
