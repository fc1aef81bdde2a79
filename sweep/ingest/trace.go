package ingest

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"planner/sweep/workload"
)

// TraceOptions say how a request log becomes a trace. The zero value finds the
// format out and keeps coarse clocks as they are.
type TraceOptions struct {
	// Format is a name of TraceFormats; empty finds it out.
	Format string
	// Spread draws the arrivals of a clock that only ticks uniformly within the
	// tick, with Seed. A literal replay of such a log sends volleys that no user
	// sent.
	Spread bool
	Seed   uint64
	// Unit is that of times that are bare numbers in a gateway's log, 0 to find
	// it out. AtEnd says that the log's time is the end of a request.
	Unit  time.Duration
	AtEnd bool
}

// Trace is a request log: arrivals, lengths and what prompts share, no text.
type Trace struct {
	// Format is the name it was read as.
	Format string
	// Rows are in order of arrival; their clock starts at the first row.
	Rows []workload.TraceRow
	// Tick is the grain of the log's clock; 0 if it has none that matters.
	// Spread says that arrivals were drawn within it.
	Tick   time.Duration
	Spread bool
	// Skipped counts the rows without a prompt or an output: requests that
	// failed.
	Skipped int
	// Estimated counts the rows whose lengths are estimated from text.
	Estimated int
	Warnings  []string
}

// TraceFormat is a format of request logs.
type TraceFormat struct {
	Name string
	// Reads names the columns or keys, with their units.
	Reads string
	csv   func(header []string) (csvRow, bool)
	json  func(first *jsonRow) bool
	// row turns a line of JSON into a row.
	row func(j *jsonRow) (workload.TraceRow, error)
}

// TraceFormats lists the formats of request logs, most specific first.
func TraceFormats() []TraceFormat {
	return []TraceFormat{
		{Name: "csv", Reads: "CSV: arrival_s,input_tokens,output_tokens[,prefix_id,prefix_tokens]; input_tokens counts the whole prompt", csv: ownCSV},
		{Name: "azure", Reads: "Azure LLM inference traces 2023, 2024 (CSV: TIMESTAMP,ContextTokens,GeneratedTokens; date and time)", csv: azureCSV},
		{Name: "burstgpt", Reads: "BurstGPT (CSV: Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,...; seconds)", csv: burstCSV},
		{Name: "jsonl", Reads: "lines of JSON: arrival_s, input_tokens, output_tokens[, prefix_id, prefix_tokens]", json: isOwnJSON, row: ownJSON},
		{Name: "qwen", Reads: "Qwen/Bailian (lines of JSON: chat_id, timestamp in seconds, input_length, output_length, hash_ids of 16 tokens)", json: isQwen, row: qwenRow},
		{Name: "mooncake", Reads: "Mooncake (lines of JSON: timestamp in milliseconds, input_length, output_length, hash_ids of 512 tokens)", json: isMooncake, row: mooncakeRow},
		{Name: "guidellm", Reads: "GuideLLM traces (lines of JSON: timestamp in seconds, input_length, output_length); only when named, as Mooncake has the same keys in another unit", row: guideRow},
		{Name: gatewayFormat, Reads: "request logs of gateways and proxies (lines of JSON with a time and token counts, nested or not; of texts only the length is taken)"},
	}
}

// ReadTrace reads a request log, compressed with gzip or not. The first problem
// ends the reading; it is a *FileError with the line.
func ReadTrace(name string, r io.Reader, o TraceOptions) (*Trace, error) {
	l, err := newLines(name, r)
	if err != nil {
		return nil, err
	}
	first, ok := l.next()
	if !ok {
		return nil, cmp.Or(l.err(), error(&FileError{File: name, What: "the trace is empty"}))
	}
	t := &Trace{}
	switch {
	case o.Format == gatewayFormat, o.Format == "" && strings.HasPrefix(first, "{") && isGateway(first):
		err = t.readGateway(l, first, o)
	case strings.HasPrefix(first, "{"):
		err = t.readJSON(l, first, o.Format)
	default:
		err = t.readCSV(l, first, o.Format)
	}
	if err == nil {
		err = l.err()
	}
	if err != nil {
		return nil, err
	}
	if len(t.Rows) == 0 {
		return nil, &FileError{File: name, What: fmt.Sprintf("the trace holds no request (%d rows without a prompt or an output)", t.Skipped)}
	}
	t.finish(o)
	return t, nil
}

// finish orders the rows, starts their clock at 0 and deals with its tick.
func (t *Trace) finish(o TraceOptions) {
	byArrival := func(a, b workload.TraceRow) int { return cmp.Compare(a.Arrival, b.Arrival) }
	if !slices.IsSortedFunc(t.Rows, byArrival) {
		t.warn("rows were not in order of arrival; they are now")
		slices.SortStableFunc(t.Rows, byArrival)
	}
	start := t.Rows[0].Arrival
	for i := range t.Rows {
		t.Rows[i].Arrival -= start
	}
	if t.Skipped > 0 {
		t.warn("%d rows without a prompt or an output are left out: requests that failed", t.Skipped)
	}
	share := 0.0
	t.Tick, share = findTick(t.Rows)
	switch {
	case t.Tick == 0:
	case o.Spread:
		spread(t.Rows, t.Tick, o.Seed)
		t.Spread = true
		t.warn("the clock of the log ticks every %v and %.0f %% of the requests share a tick: arrivals are drawn uniformly within it (seed %d)", t.Tick, 100*share, o.Seed)
	default:
		t.warn("the clock of the log ticks every %v and %.0f %% of the requests share a tick: they are sent at the same instant, as no user sent them", t.Tick, 100*share)
	}
}

func (t *Trace) warn(format string, a ...any) {
	t.Warnings = append(t.Warnings, fmt.Sprintf(format, a...))
}

// add keeps a row, or counts it as skipped when it is of a failed request.
func (t *Trace) add(row workload.TraceRow) {
	if row.Prompt <= 0 || row.Output <= 0 {
		t.Skipped++
		return
	}
	t.Rows = append(t.Rows, row)
}

// lines reads a file line by line, without comments and empty lines.
type lines struct {
	name string
	line int
	s    *bufio.Scanner
}

// longestLine bounds the memory that one line takes.
const longestLine = 16 << 20

func newLines(name string, r io.Reader) (*lines, error) {
	buffered := bufio.NewReader(r)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, &FileError{File: name, What: fmt.Sprintf("decompress: %v", err)}
		}
		r = z
	} else {
		r = buffered
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, longestLine)
	return &lines{name: name, s: s}, nil
}

func (l *lines) next() (string, bool) {
	for l.s.Scan() {
		l.line++
		text := strings.TrimSpace(strings.TrimPrefix(l.s.Text(), "\ufeff"))
		if text != "" && !strings.HasPrefix(text, "#") {
			return text, true
		}
	}
	return "", false
}

func (l *lines) err() error {
	switch err := l.s.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, bufio.ErrTooLong):
		return l.problem("", "the line is longer than %d bytes", longestLine)
	default:
		return l.problem("", "%v", err)
	}
}

func (l *lines) problem(field, format string, a ...any) error {
	return &FileError{l.name, l.line, field, fmt.Sprintf(format, a...)}
}

// arrival converts a time in a unit; log clocks may start at any epoch.
func arrival(v float64, unit time.Duration) (time.Duration, error) {
	d := v * float64(unit)
	if math.IsNaN(d) || math.Abs(d) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%g is no time", v)
	}
	return time.Duration(math.Round(d)), nil
}

// mostTokens is the longest prompt or output that is taken for one.
const mostTokens = 1 << 30

func named(name string, formats []TraceFormat) (TraceFormat, error) {
	var names []string
	for _, f := range formats {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return TraceFormat{}, fmt.Errorf("unknown trace format %q; allowed: %s", name, strings.Join(names, ", "))
}
