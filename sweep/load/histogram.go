package load

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/internal/list"
	"planner/sweep/measure"
)

// logged are the latencies that are logged, in microseconds: TTFT and E2E from the intended time,
// TPOT once per request, and last the gaps between chunks with tokens.
var logged = [...]struct {
	tag string
	of  func(*measure.Record) (time.Duration, bool)
}{{"ttft", (*measure.Record).TTFT}, {"tpot", (*measure.Record).TPOT}, {"e2e", (*measure.Record).E2E}, {tag: "chunk_gap"}}

// newHistogram covers 1 us to one hour with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, 3_600_000_000, 3)
}

// record adds a duration; one of more than an hour counts as an hour.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	us := min(max(d.Microseconds(), 0), h.HighestTrackableValue())
	if err := h.RecordValue(us); err != nil {
		panic(err) // Unreachable: the value was brought into the range.
	}
}

func percentile(h *hdrhistogram.Histogram, p float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(p)) * time.Microsecond
}

// histogramLog is an HdrHistogram log of version 1.3 of the latencies of requests
// that ended well: one interval a second and latency, in microseconds, with the
// latency as tag. A request counts in the second in which it ended. One goroutine
// may cut while others add.
type histogramLog struct {
	start time.Time
	out   bytes.Buffer
	lines *hdrhistogram.HistogramLogWriter

	mu sync.Mutex
	// from is when the present second began, now holds its latencies; the histograms of spare are
	// empty.
	from       time.Duration
	now, spare *[len(logged)]*hdrhistogram.Histogram
}

func newHistogramLog(start time.Time) *histogramLog {
	l := &histogramLog{start: start, now: new([len(logged)]*hdrhistogram.Histogram), spare: new([len(logged)]*hdrhistogram.Histogram)}
	for i := range logged {
		l.now[i], l.spare[i] = newHistogram(), newHistogram()
	}
	l.lines = hdrhistogram.NewHistogramLogWriter(&l.out)
	_ = errors.Join( // a buffer takes what it is given
		l.lines.OutputComment("[planner: latencies in microseconds, one line a second and latency; Interval_Max in seconds]"),
		l.lines.OutputLogFormatVersion(),
		l.lines.OutputStartTime(start.UnixMilli()),
		l.lines.OutputLegend(),
	)
	return l
}

// add takes the latencies of a request and the microseconds between its chunks.
func (l *histogramLog) add(r *measure.Record, gaps []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(logged) - 1
	for i, latency := range logged[:last] {
		if d, ok := latency.of(r); ok {
			record(l.now[i], d)
		}
	}
	for _, us := range gaps {
		record(l.now[last], time.Duration(us)*time.Microsecond)
	}
}

// cut ends the present second at to and writes it. Encoding takes some milliseconds, but requests
// do not wait for it.
func (l *histogramLog) cut(to time.Duration) {
	l.mu.Lock()
	from, full := l.from, l.now
	l.from, l.now = to, l.spare
	l.mu.Unlock()
	for i, h := range full {
		if h.TotalCount() == 0 {
			continue
		}
		h.SetTag(logged[i].tag)
		h.SetStartTimeMs(l.start.UnixMilli() + from.Milliseconds())
		h.SetEndTimeMs(l.start.UnixMilli() + to.Milliseconds())
		_ = l.lines.OutputIntervalHistogram(h) // fails only for histograms that the library did not make
		h.Reset()
	}
	l.spare = full
}

// HistogramLog makes from records the log that a load test writes while it runs, dated from the
// Unix epoch. Records hold no gaps between tokens, so those are not in it.
func HistogramLog(records []measure.Record) []byte {
	ended := list.Pointers(records, func(r *measure.Record) bool {
		_, ok := r.E2E()
		return ok
	})
	slices.SortStableFunc(ended, func(a, b *measure.Record) int { return cmp.Compare(a.Last, b.Last) })
	log := newHistogramLog(time.Unix(0, 0))
	for _, r := range ended {
		if from := r.Last.Truncate(time.Second); from > log.from {
			log.cut(log.from + time.Second)
			log.from = from
		}
		log.add(r, nil)
	}
	log.cut(log.from + time.Second)
	return log.out.Bytes()
}
