package ingest

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// csvRow turns the cells of a line into a row.
type csvRow struct {
	// ignored are columns that are not read.
	ignored []string
	row     func(cells []string) (workload.TraceRow, *cellError)
}

// cellError is a problem with one column.
type cellError struct{ column, what string }

// readCSV reads a log whose first line is a header.
func (t *Trace) readCSV(l *lines, first, format string) error {
	header, err := splitCSV(first)
	if err != nil {
		return l.problem("", "%v", err)
	}
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	reader, err := t.chooseCSV(header, format)
	if err != nil {
		return l.problem("", "%v", err)
	}
	if len(reader.ignored) > 0 {
		t.warn("columns that are not read: %s", strings.Join(reader.ignored, ", "))
	}
	for {
		line, ok := l.next()
		if !ok {
			return nil
		}
		cells, err := splitCSV(line)
		if err != nil {
			return l.problem("", "%v", err)
		}
		if len(cells) != len(header) {
			return l.problem("", "%d cells, the header has %d", len(cells), len(header))
		}
		row, problem := reader.row(cells)
		if problem != nil {
			return l.problem(problem.column, "%s", problem.what)
		}
		t.add(row)
	}
}

func (t *Trace) chooseCSV(header []string, format string) (csvRow, error) {
	formats := TraceFormats()
	if format != "" {
		f, err := named(format, formats)
		if err != nil {
			return csvRow{}, err
		}
		formats = []TraceFormat{f}
	}
	for _, f := range formats {
		if f.csv == nil {
			continue
		}
		if reader, ok := f.csv(header); ok {
			t.Format = f.Name
			return reader, nil
		}
	}
	if format != "" {
		return csvRow{}, fmt.Errorf("the columns %s are not those of %s: %s", strings.Join(header, ","), format, formats[0].Reads)
	}
	return csvRow{}, fmt.Errorf("no known trace has the columns %s; our own are arrival_s,input_tokens,output_tokens[,prefix_id,prefix_tokens]", strings.Join(header, ","))
}

// splitCSV splits one line; only a line with quotes needs the rules of RFC 4180.
func splitCSV(line string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), nil
	}
	return csv.NewReader(strings.NewReader(line)).Read()
}

// columns finds names in a header, -1 for one that is not there, and lists the
// other columns.
func columns(header []string, names ...string) (at []int, others []string) {
	for _, n := range names {
		at = append(at, slices.Index(header, n))
	}
	for _, h := range header {
		if !slices.Contains(names, h) {
			others = append(others, h)
		}
	}
	return at, others
}

// tokens reads a number of tokens.
func tokens(column, cell string) (int, *cellError) {
	n, err := strconv.Atoi(strings.TrimSpace(cell))
	if err != nil || n < 0 || n > mostTokens {
		return 0, &cellError{column, fmt.Sprintf("%q is no number of tokens", shorten(cell))}
	}
	return n, nil
}

// shorten keeps an error on one line.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// fill reads the lengths of a row.
func fill(row *workload.TraceRow, input, in, output, out string) *cellError {
	var problem *cellError
	if row.Prompt, problem = tokens(input, in); problem != nil {
		return problem
	}
	row.Output, problem = tokens(output, out)
	return problem
}

func ownCSV(header []string) (csvRow, bool) {
	at, others := columns(header, "arrival_s", "input_tokens", "output_tokens", "prefix_id", "prefix_tokens")
	if at[0] < 0 || at[1] < 0 || at[2] < 0 || (at[3] < 0) != (at[4] < 0) {
		return csvRow{}, false
	}
	return csvRow{others, func(cells []string) (workload.TraceRow, *cellError) {
		var row workload.TraceRow
		var problem *cellError
		if row.Arrival, problem = secondsCell("arrival_s", cells[at[0]]); problem != nil {
			return row, problem
		}
		if problem = fill(&row, "input_tokens", cells[at[1]], "output_tokens", cells[at[2]]); problem != nil {
			return row, problem
		}
		if at[3] < 0 || strings.TrimSpace(cells[at[3]]) == "" {
			return row, nil
		}
		row.Shared, problem = prefixParts(cells[at[3]], cells[at[4]], row.Prompt)
		return row, problem
	}}, true
}

// prefixParts reads the shared beginning of a prompt: an id and its tokens, or as
// many ids as tokens, with spaces between.
func prefixParts(ids, lengths string, prompt int) ([]workload.Segment, *cellError) {
	names, counts := strings.Fields(ids), strings.Fields(lengths)
	if len(counts) <= 1 {
		names, counts = []string{strings.TrimSpace(ids)}, []string{lengths}
	}
	if len(names) != len(counts) {
		return nil, &cellError{"prefix_tokens", fmt.Sprintf("%d lengths for %d ids", len(counts), len(names))}
	}
	var parts []workload.Segment
	sum := 0
	for i, name := range names {
		n, problem := tokens("prefix_tokens", counts[i])
		if problem != nil {
			return nil, problem
		}
		if sum += n; sum > prompt {
			return nil, &cellError{"prefix_tokens", fmt.Sprintf("%d are more than the %d of the whole prompt", sum, prompt)}
		}
		if n > 0 {
			parts = append(parts, workload.Segment{Content: workload.TraceContent(hashName(name)), Tokens: n})
		}
	}
	return parts, nil
}

func secondsCell(column, cell string) (time.Duration, *cellError) {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil {
		return 0, &cellError{column, fmt.Sprintf("%q is no time in seconds", shorten(cell))}
	}
	d, err := arrival(v, time.Second)
	if err != nil {
		return 0, &cellError{column, err.Error()}
	}
	return d, nil
}

// hashName is FNV-1a over the name of a shared prefix.
func hashName(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func azureCSV(header []string) (csvRow, bool) {
	at, others := columns(header, "TIMESTAMP", "ContextTokens", "GeneratedTokens")
	if slices.Contains(at, -1) {
		return csvRow{}, false
	}
	return csvRow{others, func(cells []string) (workload.TraceRow, *cellError) {
		var row workload.TraceRow
		when, err := azureTime(strings.TrimSpace(cells[at[0]]))
		if err != nil {
			return row, &cellError{"TIMESTAMP", err.Error()}
		}
		row.Arrival = when.Sub(azureEpoch)
		return row, fill(&row, "ContextTokens", cells[at[1]], "GeneratedTokens", cells[at[2]])
	}}, true
}

// azureEpoch is before every Azure trace; arrivals count from the first row in
// the end.
var azureEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// azureTime reads the timestamps of the Azure traces: with or without a
// fraction, with or without a zone, differently from row to row. Without a zone
// they are taken as UTC.
func azureTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.Year() < 2000 || t.Year() > 2200 {
				break
			}
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date and time", shorten(s))
}

func burstCSV(header []string) (csvRow, bool) {
	at, others := columns(header, "Timestamp", "Request tokens", "Response tokens")
	if slices.Contains(at, -1) {
		return csvRow{}, false
	}
	others = slices.DeleteFunc(others, func(c string) bool { return c == "Total tokens" })
	return csvRow{others, func(cells []string) (workload.TraceRow, *cellError) {
		var row workload.TraceRow
		var problem *cellError
		if row.Arrival, problem = secondsCell("Timestamp", cells[at[0]]); problem != nil {
			return row, problem
		}
		return row, fill(&row, "Request tokens", cells[at[1]], "Response tokens", cells[at[2]])
	}}, true
}
