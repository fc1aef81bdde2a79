package config

import (
	"bufio"
	"cmp"
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

// TraceReader reads the rows of a traffic trace in the named format, "" to find
// it out. Errors name the line.
type TraceReader func(r io.Reader, name, format string) ([]workload.Row, error)

var errEmptyTrace = errors.New("the trace holds no request")

// readTraceCSV reads the tool's own trace format: CSV with the columns arrival_s,
// input_tokens and output_tokens in any order, and optionally prefix_id and
// prefix_tokens. input_tokens counts the whole prompt, its prefix included.
func readTraceCSV(r io.Reader, _, format string) ([]workload.Row, error) {
	if format != "" && format != "csv" {
		return nil, fmt.Errorf("unknown format %q; allowed: csv", format)
	}
	lines := bufio.NewScanner(r)
	var columns map[string]int
	var rows []workload.Row
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		cells := strings.Split(text, ",")
		if columns == nil {
			var err error
			if columns, err = traceColumns(cells); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			continue
		}
		row, err := traceRow(columns, cells)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read line %d: %w", len(rows)+1, err)
	}
	slices.SortStableFunc(rows, func(a, b workload.Row) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return rows, nil
}

// traceColumns finds the columns of a header.
func traceColumns(cells []string) (map[string]int, error) {
	columns := map[string]int{}
	for i, name := range cells {
		columns[strings.Trim(strings.TrimSpace(name), `"`)] = i
	}
	for _, need := range []string{"arrival_s", "input_tokens", "output_tokens"} {
		if _, ok := columns[need]; !ok {
			return nil, fmt.Errorf("no column %s; want arrival_s,input_tokens,output_tokens[,prefix_id,prefix_tokens]", need)
		}
	}
	return columns, nil
}

func traceRow(columns map[string]int, cells []string) (workload.Row, error) {
	var row workload.Row
	cell := func(name string) string {
		if i, ok := columns[name]; ok && i < len(cells) {
			return strings.Trim(strings.TrimSpace(cells[i]), `"`)
		}
		return ""
	}
	at, err := strconv.ParseFloat(cell("arrival_s"), 64)
	if err != nil || !(at >= 0 && at <= math.MaxInt64/1e9) {
		return row, fmt.Errorf("arrival_s %q is no time of at least 0", shorten(cell("arrival_s")))
	}
	row.Arrival = time.Duration(at * float64(time.Second))
	if row.Prompt, err = parseSample(cell("input_tokens")); err != nil {
		return row, fmt.Errorf("input_tokens %w", err)
	}
	if row.Output, err = parseSample(cell("output_tokens")); err != nil {
		return row, fmt.Errorf("output_tokens %w", err)
	}
	if id := cell("prefix_id"); id != "" {
		tokens, err := parseSample(cell("prefix_tokens"))
		if err != nil || tokens > row.Prompt {
			return row, fmt.Errorf("prefix_tokens %q is no length of at most input_tokens", shorten(cell("prefix_tokens")))
		}
		row.Shared = []workload.Segment{{Content: workload.TraceContent(hash(id)), Tokens: tokens}}
	}
	return row, nil
}

// hash is FNV-1a of a name.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
