package ingest

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"planner/internal/input"
	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/workload"
)

// TraceOptions say how a request log becomes a trace. The zero value detects the format and keeps
// coarse clocks as they are.
type TraceOptions struct {
	// Format is a name of TraceFormats; empty detects it. Map instead says which keys hold what,
	// such as "arrival=ts:ms,prompt=usage.prompt_tokens,output=usage.completion_tokens".
	Format, Map string
	// Spread draws the arrivals of a coarse clock uniformly within each of its steps, with Seed. A
	// literal replay of such a log sends bursts that no user sent.
	Spread bool
	Seed   uint64
}

// Trace is a request log: arrivals, lengths and what prompts share, no text.
type Trace struct {
	// Format is the name of the format that it was read as.
	Format string `json:"format"`
	// Rows are in order of arrival; their clock starts at the first row.
	Rows []workload.TraceRow `json:"-"`
	// Resolution is that of the log's clock; -1 if it is too fine to matter. Spread says that
	// arrivals were drawn within it.
	Resolution time.Duration `json:"tick_s"`
	Spread     bool          `json:"spread"`
	// Skipped counts the requests that failed: those that the log says failed, and those without a
	// prompt or an output. Estimated counts the rows with lengths estimated from text.
	Skipped   int `json:"skipped"`
	Estimated int `json:"estimated"`
	// Changed says how the trace was thinned and scaled.
	Changed []string `json:"changed"`
	note.Warnings
	// Traffic describes the rows, if that was asked for.
	Traffic workload.Description `json:"traffic"`

	// others counts the lines of a mapped log that are no requests, parts the shared parts of all
	// rows.
	others, parts int
}

// mostRows bounds the memory of a trace: the sum of its rows and the shared parts of their prompts.
const mostRows = 3_500_000

// ReadTrace reads a request log, plain or compressed with gzip or Zstandard. The first problem ends
// the reading, and is given with its line.
func ReadTrace(name string, r io.Reader, o TraceOptions) (*Trace, error) {
	l, err := newLines(name, r)
	if err != nil {
		return nil, err
	}
	t := &Trace{Resolution: -1}
	m, err := t.read(l, o)
	if err != nil {
		return nil, err
	}
	if len(t.Rows) == 0 {
		return nil, &fileError{File: name, What: fmt.Sprintf("the trace holds no request (%d rows without a prompt or an output)", t.Skipped)}
	}
	t.sort()
	t.Warnings.Add(note.If(t.Skipped > 0, note.RowsLeftOut, t.Skipped)...)
	t.Warnings.Add(note.If(t.others > 0, note.LinesLeftOut, t.others)...)
	t.Warnings.Add(note.If(t.Estimated > 0, note.RequestsEstimated, t.Estimated, len(t.Rows), float64(charsPerToken))...)
	t.Warnings.Add(note.If(m["arrival"].names == nil, note.ArrivalsFromEnds)...)
	t.spread(o)
	return t, nil
}

func (t *Trace) read(l *lines, o TraceOptions) (mapping, error) {
	line, ok := l.next()
	if !ok {
		return nil, cmp.Or(l.err(), error(&fileError{File: l.name, What: "the trace is empty"}))
	}
	e := &logEntry{}
	err := e.begin(line)
	if err != nil {
		return nil, l.problem("", "%v", err)
	}
	var m mapping
	if t.Format, m, err = chooseMapping(e, o); err != nil {
		return nil, l.problem("", "%v", err)
	}
	if e.columns != nil {
		t.remarkUnread(m, e.columns)
		line, ok = l.next()
	}
	for ; ok; line, ok = l.next() {
		if problem := t.add(line, e, m); problem != nil {
			return nil, l.problem(problem.Field, "%s", problem.What)
		}
	}
	if t.others > 0 && len(t.Rows) == 0 && t.Skipped == 0 {
		return nil, l.problem("", "no line has all that the map names; this one has %s", e.describe())
	}
	return m, l.err()
}

func (t *Trace) remarkUnread(m mapping, columns []string) {
	var read []string
	for _, k := range m {
		read = append(read, k.names...)
	}
	unread := list.Filter(columns, func(c string) bool { return !slices.Contains(read, c) })
	t.Warnings.Add(note.If(len(unread) > 0, note.ColumnsIgnored, strings.Join(unread, ", "))...)
}

// add keeps the request of a line, or counts it as failed. A log that the user maps may have other
// lines in between.
func (t *Trace) add(line string, e *logEntry, m mapping) *fileError {
	if t.Format == mapped && e.columns == nil && !strings.HasPrefix(line, "{") {
		t.others++
		return nil
	}
	err := e.read(line)
	switch {
	case err != nil:
		return &fileError{What: err.Error()}
	case e.failed(m):
		t.Skipped++
		return nil
	case t.Format == mapped && !e.has(m.needed()...):
		t.others++
		return nil
	}
	row := e.row(m)
	switch {
	case e.problem != nil:
	case row.Prompt <= 0 || row.Output <= 0:
		t.Skipped++
	case t.parts+len(t.Rows)+len(row.Shared) >= mostRows:
		return &fileError{What: fmt.Sprintf("longer than the %d requests and shared parts that are read of one: cut it", mostRows)}
	default:
		t.parts += len(row.Shared)
		t.Rows = append(t.Rows, row)
		if e.estimated {
			t.Estimated++
		}
	}
	return e.problem
}

func (t *Trace) sort() {
	byArrival := func(a, b workload.TraceRow) int { return cmp.Compare(a.Arrival, b.Arrival) }
	if !slices.IsSortedFunc(t.Rows, byArrival) {
		t.Warnings.Add(note.New(note.RowsReordered))
		slices.SortStableFunc(t.Rows, byArrival)
	}
	start := t.Rows[0].Arrival
	for i := range t.Rows {
		t.Rows[i].Arrival -= start
	}
}

// spread records the resolution of a coarse clock, and spreads the arrivals if asked to.
func (t *Trace) spread(o TraceOptions) {
	step, share := clockResolution(t.Rows)
	if step == 0 {
		return
	}
	t.Resolution = step
	if o.Spread {
		spread(t.Rows, step, o.Seed)
		t.Spread = true
		t.Warnings.Add(note.New(note.ClockSpread, step, 100*share, o.Seed))
		return
	}
	t.Warnings.Add(note.New(note.ClockTicks, step, 100*share))
}

// Thin keeps each request with the probability share, drawn with seed.
func (t *Trace) Thin(share float64, seed uint64) {
	if share >= 1 {
		return
	}
	before := len(t.Rows)
	t.Rows = workload.Thin(t.Rows, share, seed)
	t.Changed = append(t.Changed, fmt.Sprintf("thinned to %g of the requests, %d of %d (seed %d)", share, len(t.Rows), before, seed))
}

// UpTo removes the requests whose prompt and output together exceed a number of tokens, as a server
// with that context length refuses them.
func (t *Trace) UpTo(tokens int) {
	before := len(t.Rows)
	t.Rows = slices.DeleteFunc(t.Rows, func(r workload.TraceRow) bool { return r.Prompt+r.Output > tokens })
	t.Changed = append(t.Changed, fmt.Sprintf("requests of up to %d tokens kept, %d of %d", tokens, len(t.Rows), before))
}

// AtRate stretches or compresses the clock to a mean rate.
func (t *Trace) AtRate(rate float64) {
	before := workload.Describe(t.Rows).Rate
	t.Rows = workload.AtRate(t.Rows, rate)
	t.Changed = append(t.Changed, fmt.Sprintf("clock scaled from %.4g to %g requests/s", before, rate))
}

// lines reads a file line by line, without comments and empty lines.
type lines struct {
	name string
	line int
	s    *bufio.Scanner
}

// longestLine bounds the bytes of one line.
const longestLine = 16 << 20

func newLines(name string, r io.Reader) (*lines, error) {
	r, err := input.Unpack(r)
	if err != nil {
		return nil, &fileError{File: name, What: fmt.Sprintf("decompress: %v", err)}
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
	return &fileError{l.name, l.line, field, fmt.Sprintf(format, a...)}
}

// streamSpread is the random number stream that spreads arrivals.
const streamSpread uint64 = 11

// A clock is coarse if at least coincidentShare of the arrivals coincide, more than by chance, and
// the gaps between distinct arrivals are multiples of a step: at least stepAgreement of the gaps of
// up to stepMultiples steps, within stepTolerance of a step. A step below finestStep does not
// matter for latencies.
const (
	finestStep      = 10 * time.Millisecond
	coincidentShare = 0.02
	stepTolerance   = 0.1
	stepAgreement   = 0.95
	stepMultiples   = 5
)

// clockResolution returns the step of the clock of sorted rows, 0 if there is none that matters,
// and the share of the rows that coincide with another.
func clockResolution(rows []workload.TraceRow) (time.Duration, float64) {
	var gaps []time.Duration
	together := 0
	for i := range rows {
		same := func(j int) bool { return j >= 0 && j < len(rows) && rows[j].Arrival == rows[i].Arrival }
		if same(i-1) || same(i+1) {
			together++
		}
		if i > 0 && !same(i-1) {
			gaps = append(gaps, rows[i].Arrival-rows[i-1].Arrival)
		}
	}
	share := float64(together) / float64(len(rows))
	if len(gaps) < 2 || share < coincidentShare {
		return 0, share
	}
	step := shortestGap(gaps)
	if step < finestStep {
		return 0, share
	}
	near, few := 0, 0
	for _, g := range gaps {
		k := math.Round(float64(g) / float64(step))
		if k > stepMultiples {
			continue // the error of the step accumulates
		}
		few++
		if math.Abs(float64(g)-k*float64(step)) <= stepTolerance*float64(step) {
			near++
		}
	}
	if float64(near) < stepAgreement*float64(few) {
		return 0, share
	}
	return step, share
}

// shortestGap returns the mean of the gaps below 1.5 times the shortest: a step that is no whole
// number of the log's unit shows as two lengths.
func shortestGap(gaps []time.Duration) time.Duration {
	least := slices.Min(gaps)
	sum, n := 0.0, 0
	for _, g := range gaps {
		if float64(g) < 1.5*float64(least) {
			sum += float64(g)
			n++
		}
	}
	return time.Duration(math.Round(sum / float64(n)))
}

// spread draws the arrivals of each step of the clock uniformly within it, and keeps the order of
// the rows.
func spread(rows []workload.TraceRow, step time.Duration, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, streamSpread))
	for i := 0; i < len(rows); {
		at, end := rows[i].Arrival, i
		for end < len(rows) && rows[end].Arrival == at {
			end++
		}
		width := step
		if end < len(rows) {
			width = min(width, rows[end].Arrival-at)
		}
		draws := list.Times(end-i, func(int) time.Duration { return at + time.Duration(rng.Int64N(int64(width))) })
		slices.Sort(draws)
		for k, d := range draws {
			rows[i+k].Arrival = d
		}
		i = end
	}
}
