package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/sweep/measure"
)

// ResultFormat is the result files of a tool.
type ResultFormat struct {
	Name string `json:"name"`
	// Reads says which files of the tool are read.
	Reads string `json:"reads"`
	// Notes say how the tool's figures differ from what is measured here; every
	// file read carries them as warnings.
	Notes   []string `json:"notes"`
	layouts []layout
}

// layout is one kind of the files of a tool, and where in it a load point has what. Keys
// of objects within objects have dots between, and those that releases write in each
// other's place a |.
type layout struct {
	// marks tell the layout: a file holds all of them. Plain CSV has none.
	marks []string
	// refuse says why such a file holds no load point, and what does.
	refuse string
	// parse makes documents of the text; nil reads JSON. points is the key of a list of
	// load points; empty where each document is one.
	parse  parser
	points string
	// text says that numbers may stand in strings, as in tables.
	text bool
	// stats are the names of the statistics of latencies, with | between two of one.
	latencies []latencyKeys
	stats     []string
	// The keys of counts, and of what there was in a second. A file without the completed
	// requests is refused, unless the layout has no key for them. The run is in seconds.
	completed, failed, outputTokens, promptTokens, achieved, run string
	// The keys of the mean tokens of a request. Without them these are what there was in a second, over the
	// requests that were completed in it.
	prompt, output string
	// The keys of the load: a rate, or a limit on the requests in flight, which goes first.
	rate, limit string
	// withFailed says that the completed requests are counted with the failed ones.
	withFailed bool
	// request reads one request, where the documents are the requests of one load point.
	request func(p *pointReader) loggedRequest
	// rest reads what no key tells: the load, over which time it was measured, and
	// what a tool writes in a way of its own.
	rest func(p *pointReader, completed int)
}

// latencyKeys are the keys of the statistics of a latency: path with the name of the
// statistic for its *, or that of the mean, without one. A unit of 0 stands beside them.
type latencyKeys struct {
	metric measure.Metric
	path   string
	unit   time.Duration
}

// serviceTime is true of nearly every tool here: few count from the intended time.
const serviceTime = "latencies count from the real send: a client that sent late hides its own queue"

// ResultFormats lists the formats of result files that are read, in the order in
// which they are tried.
func ResultFormats() []ResultFormat {
	return []ResultFormat{
		plainFormat(), llmdFormat(), inferencePerfFormat(), guidellmFormat(), aiperfFormat(), genaiPerfFormat(), llmperfFormat(),
		sglangFormat(), vllmFormat(), mlperfFormat(), k6Format(), locustFormat(),
	}
}

func (l *layout) fits(data []byte) bool {
	if l.marks == nil {
		return isPlain(data)
	}
	return !slices.ContainsFunc(l.marks, func(mark string) bool { return !bytes.Contains(data, []byte(mark)) })
}

// detect finds the format of a result file and its layout. The error lists what is read.
func detect(name string, data []byte) (ResultFormat, *layout, error) {
	var known []string
	for _, f := range ResultFormats() {
		for i := range f.layouts {
			if f.layouts[i].fits(data) {
				return f, &f.layouts[i], nil
			}
		}
		known = append(known, fmt.Sprintf("%s (%s)", f.Name, f.Reads))
	}
	return ResultFormat{}, nil, &FileError{File: name, What: unknownResults + "; read are: " + strings.Join(known, "; ")}
}

// unknownResults begins what is said of a file in no format that is read.
const unknownResults = "no known results"
