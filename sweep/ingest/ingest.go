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
	"slices"
	"time"

	"planner/internal/input"
	"planner/internal/note"
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
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		at += ": " + p.Field
	}
	return at + ": " + p.What
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

// ordered checks that the resolved quantiles of a summary rise; it names the
// pair that does not.
func ordered(s *measure.Summary) error {
	lower, at := time.Duration(0), 0.0
	for _, q := range measure.Statistics()[1:] {
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

// Results are the load points of one file.
type Results struct {
	File   string `json:"file"`
	Format string `json:"format"` // the name of that which it was read as
	Points int    `json:"points"`
	// Measurements hold one entry a load point. They have no counts beyond a
	// limit: those need every request.
	Measurements []measure.Measurement `json:"-"`
	// Warnings say how the figures differ from what is measured here.
	Warnings note.Notes `json:"-"`
}

func readFile(name string) (*Results, error) {
	data, err := input.ReadFile(name, input.Results)
	if err != nil {
		return nil, err
	}
	return Read(name, data)
}

// Read reads a result file in the format that its content shows. The first problem ends
// the reading, except in a plain CSV, where all are reported.
func Read(name string, data []byte) (*Results, error) {
	f, l, err := detect(name, data)
	if err != nil {
		return nil, err
	}
	p := &pointReader{name: name, layout: l}
	switch {
	case l.refuse != "":
		err = &FileError{File: name, What: l.refuse}
	case l.marks == nil:
		err = p.plainCSV(data)
	default:
		err = p.documents(data)
	}
	if err != nil {
		return nil, err
	}
	if len(p.points) == 0 {
		return nil, &FileError{File: name, What: "holds no load point of " + f.Name}
	}
	r := &Results{File: name, Format: f.Name, Points: len(p.points), Measurements: p.points, Warnings: slices.Concat(note.FromTexts(f.Notes), p.doubts)}
	r.Warnings = append(r.Warnings, note.If(tooFast(r.Measurements), note.TooFast)...)
	return r, nil
}

// tooFast reports whether no request of all load points took as long as the
// fastest server does: a millisecond passes on the network alone.
func tooFast(all []measure.Measurement) bool {
	longest := time.Duration(0)
	for i := range all {
		for _, s := range []*measure.Summary{&all[i].TTFT, &all[i].E2E} {
			longest = max(longest, s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999)
		}
	}
	return longest > 0 && longest < time.Millisecond
}
