package ingest

import (
	"slices"
	"time"

	"planner/internal/input"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Results are the load points of one file.
type Results struct {
	// Format is the name of the format the file was read as.
	Format string
	// Measurements hold one entry a load point. They have no counts beyond a
	// limit: those need every request.
	Measurements []measure.Measurement
	// Warnings say how the figures differ from what is measured here.
	Warnings note.Notes
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
	r := &Results{Format: f.Name, Measurements: p.points, Warnings: slices.Concat(note.FromTexts(f.Notes), p.doubts)}
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
