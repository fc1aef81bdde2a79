package config

import (
	"fmt"
	"io"

	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// TraceReader reads the rows of a traffic trace in the named format, "" to find
// it out. Errors name the file and the line.
type TraceReader func(r io.Reader, name, format string) ([]workload.TraceRow, error)

// traceFormats lists what workload.trace_format may say; "" finds the format out.
func traceFormats() []string {
	var names []string
	for _, f := range ingest.TraceFormats() {
		names = append(names, f.Name)
	}
	return append(names, "")
}

// readTrace reads the rows of the trace.
func (r *reader) readTrace(l *load) []workload.TraceRow {
	n := r.at("workload.trace")
	f, ok := n.open(l.trace, "a trace")
	if !ok {
		return nil
	}
	defer f.Close()
	rows, err := r.rows(f, l)
	if err != nil {
		n.refuse("%v", err)
		return nil
	}
	return rows
}

// rows reads with the loader's reader, or with the one that knows every format and
// what to doubt in a log.
func (r *reader) rows(f io.Reader, l *load) ([]workload.TraceRow, error) {
	if r.trace == nil {
		t, err := ingest.ReadTrace(l.trace, f, ingest.TraceOptions{Format: l.format})
		if err != nil {
			return nil, err
		}
		for _, w := range t.Warnings {
			r.warn("workload: %s: %s", l.trace, w)
		}
		return t.Rows, nil
	}
	rows, err := r.trace(f, l.trace, l.format)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: the trace holds no request", l.trace)
	}
	return rows, err
}
