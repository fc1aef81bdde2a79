// Package ingest reads other tools' results and traces into ours.
//
// Results become measurements, request logs become rows of a trace. What a
// format means by its figures differs from tool to tool; where it differs from
// this project's definitions the result carries a warning, and a figure with no
// counterpart is left out rather than renamed.
package ingest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/input"
	"planner/internal/note"
	"planner/sweep/measure"
)

// fileError is one thing wrong with an input file.
type fileError struct {
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field names the column or key; it may be empty.
	Field string
	What  string
}

// Error returns the problem in one line: "file:line: field: what".
func (p *fileError) Error() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		at += ": " + p.Field
	}
	return at + ": " + p.What
}

// newMeasurement returns a measurement of which nothing is known yet: every latency is unresolved,
// every throughput NaN, and the window and prefix caching are unknown.
func newMeasurement() measure.Measurement {
	none := measure.UnresolvedSummary()
	m := measure.Measurement{Valid: true, Duration: measure.Unresolved}
	nan := math.NaN()
	m.Throughput = measure.Throughput{Achieved: nan, Sent: nan, PromptTokens: nan, OutputTokens: nan, Goodput: nan}
	m.Trial.Knobs.PrefixUnknown = true
	m.TTFT, m.TPOT, m.ITL, m.E2E, m.SendLag = none, none, none, none, none
	return m
}

// ordered checks that the resolved quantiles of a summary do not fall; the error names the pair
// that does.
func ordered(s *measure.Summary) error {
	lower, at := time.Duration(0), 0.0
	for _, q := range measure.Statistics[1:] {
		d := s.Stat(q)
		if d < 0 {
			continue
		}
		if d < lower {
			return fmt.Errorf("%s of %v is below %s of %v", measure.StatName(q), d, measure.StatName(at), lower)
		}
		lower, at = d, q
	}
	return nil
}

// longest is the longest time that is accepted: beyond it the unit is wrong.
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
	// Measurements hold one entry per load point. They do not count requests beyond a limit: that
	// takes every request.
	Measurements []measure.Measurement `json:"-"`
	// models are the names of the models served, as far as the file tells.
	models []string
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

// Read reads a result file in the format that its content shows. The first problem ends the
// reading, except in a plain CSV, of which up to mostProblems are reported.
func Read(name string, data []byte) (*Results, error) {
	f, l, err := detect(name, data)
	if err != nil {
		return nil, err
	}
	p := &pointReader{name: name, layout: l}
	if l.refuse != "" {
		return nil, &fileError{File: name, What: l.refuse}
	}
	if err := p.documents(data); err != nil {
		return nil, err
	}
	if len(p.points) == 0 {
		return nil, &fileError{File: name, What: "holds no load point of " + f.Name}
	}
	r := &Results{File: name, Format: f.Name, Points: len(p.points), Measurements: p.points, models: p.models, Warnings: slices.Concat(note.FromTexts(f.Notes), p.doubts)}
	r.Warnings = append(r.Warnings, note.If(tooFast(r.Measurements), note.TooFast)...)
	return r, nil
}

// tooFast reports whether no latency of any load point reaches a millisecond, which the network
// alone takes.
func tooFast(all []measure.Measurement) bool {
	longest := time.Duration(0)
	for i := range all {
		for _, s := range []*measure.Summary{&all[i].TTFT, &all[i].E2E} {
			longest = max(longest, s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999)
		}
	}
	return longest > 0 && longest < time.Millisecond
}

// ResultFormat is the format of a tool's result files.
type ResultFormat struct {
	Name string `json:"name"`
	// Reads says which of the tool's files are read.
	Reads string `json:"reads"`
	// Notes say how the tool's figures differ from what is measured here; every file read carries
	// them as warnings.
	Notes   []string `json:"notes"`
	layouts []layout
}

// layout is one kind of a tool's files, and where in it a load point has which figure. Keys of
// nested objects are joined by dots, and alternatives that releases use separated by |.
type layout struct {
	// marks identify the layout: a file contains all of them. Plain CSV has none.
	marks []string
	// refuse says why such a file holds no load point, and which file does.
	refuse string
	// parse finds the documents of a file, and has each read at its line, 0 for none; nil reads
	// JSON. points is the key of a list of load points; empty if each document is one.
	parse  func(p *pointReader, data []byte)
	points string
	// text says that numbers may be in strings, as in tables.
	text bool
	// stats are the names of [measure.Statistics] for latencies, with | between alternatives.
	latencies []latencyKeys
	stats     []string
	// The keys of counts, and of rates per second. A file without the completed requests is
	// refused, unless the layout has no key for them. The run is in seconds.
	completed, failed, outputTokens, promptTokens, achieved, run string
	// The keys of the mean tokens per request; without them, the token rates are divided by the
	// rate of completed requests.
	prompt, output string
	// The keys of the load: a rate, or a limit on the requests in flight, which takes precedence.
	rate, limit string
	// withFailed says that the count of completed requests includes the failed ones.
	withFailed bool
	// request reads one request, if the documents are the requests of one load point.
	request func(p *pointReader) loggedRequest
	// rest reads what no key holds: the load, the time over which it was measured, and what a tool
	// writes in its own way.
	rest func(p *pointReader, completed int)
}

// as returns the layout of files with the same keys that marks identify and parse reads, nil for
// JSON.
func (l layout) as(parse func(*pointReader, []byte), marks ...string) layout {
	l.parse, l.marks = parse, marks
	return l
}

// latencyKeys are the keys of the statistics of a latency: path with the name of the statistic for
// its *, or without a *, that of the mean. With a unit of 0, the unit is under a key beside them.
type latencyKeys struct {
	metric measure.Metric
	path   string
	unit   time.Duration
}

// serviceTime is true of nearly every tool here: few measure from the intended time.
const serviceTime = "latencies count from the real send: a client that sent late hides its own queue"

// ResultFormats lists the formats of result files that are read, in the order in which they are
// tried.
var ResultFormats = []ResultFormat{
	plainFormat, llmdFormat, inferencePerfFormat, guidellmFormat, aiperfFormat, genaiPerfFormat, llmperfFormat,
	sglangFormat, vllmFormat, mlperfFormat, k6Format, locustFormat,
}

func (l *layout) fits(data []byte) bool {
	if l.marks == nil {
		return isPlain(data)
	}
	return !slices.ContainsFunc(l.marks, func(mark string) bool { return !bytes.Contains(data, []byte(mark)) })
}

// detect finds the format of a result file and its layout. The error lists what is read, and the columns of a table.
func detect(name string, data []byte) (ResultFormat, *layout, error) {
	var known []string
	for _, f := range ResultFormats {
		for i := range f.layouts {
			if f.layouts[i].fits(data) {
				return f, &f.layouts[i], nil
			}
		}
		known = append(known, fmt.Sprintf("%s (%s)", f.Name, f.Reads))
	}
	err := &fileError{File: name, What: unknownResults}
	if header, line := headerOf(data); strings.Contains(header, ",") {
		err.Line, err.What = line, fmt.Sprintf("%s: none of the columns %.200s is known", unknownResults, header)
	}
	err.What += "; read are: " + strings.Join(known, "; ")
	return ResultFormat{}, nil, err
}

// unknownResults begins the error for a file in no format that is read.
const unknownResults = "no known results"
