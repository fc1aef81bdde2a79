// Package ingest reads other tools' results and traces into ours.
//
// Results become measurements, request logs become rows of a trace. What a
// format means by its figures differs from tool to tool; where it differs from
// this project's definitions the result carries a warning, and a figure with no
// counterpart is left out rather than renamed.
package ingest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"planner/sweep/measure"
)

// FileError is one thing wrong with an input file.
type FileError struct {
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field names the column or key; it may be empty.
	Field string
	What  string
}

// Error is the problem in one line: "file:line: field: what".
func (p *FileError) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Field != "" {
		fmt.Fprintf(&b, ": %s", p.Field)
	}
	fmt.Fprintf(&b, ": %s", p.What)
	return b.String()
}

// newMeasurement is a measurement of which nothing is known yet: every latency
// is unresolved, every throughput NaN, the window is not known, and neither the engine nor its flags say anything.
func newMeasurement() measure.Measurement {
	none := measure.UnresolvedSummary()
	m := measure.Measurement{Valid: true, Duration: measure.Unresolved}
	nan := math.NaN()
	m.Throughput = measure.Throughput{Achieved: nan, Sent: nan, PromptTokens: nan, OutputTokens: nan, Goodput: nan}
	m.Trial.Knobs.PrefixUnknown = true
	m.TTFT, m.TPOT, m.ITL, m.E2E, m.SendLag = none, none, none, none, none
	return m
}

// statistics are those of a summary by quantile, 0 for the mean; quantiles those without
// the mean.
var (
	statistics = []float64{0, 0.50, 0.90, 0.95, 0.99, 0.999}
	quantiles  = statistics[1:]
)

// ordered checks that the resolved quantiles of a summary rise; it names the
// pair that does not.
func ordered(s *measure.Summary) error {
	lower, at := time.Duration(0), 0.0
	for _, q := range quantiles {
		d := s.Stat(q)
		if d < 0 {
			continue
		}
		if d < lower {
			name := func(q float64) string { return measure.Bound{Quantile: q}.Stat() }
			return fmt.Errorf("%s of %v is below %s of %v", name(q), d, name(at), lower)
		}
		lower, at = d, q
	}
	return nil
}

// longest is the longest time that is taken for one: beyond it a unit is wrong.
const longest = 30 * 24 * time.Hour

func duration(v float64, unit time.Duration) (time.Duration, bool) {
	d := v * float64(unit)
	if math.IsNaN(d) || d < 0 || d > float64(longest) {
		return 0, false
	}
	return time.Duration(math.Round(d)), true
}
