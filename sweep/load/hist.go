package load

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
)

// Latency names one of the latencies of a histogram log.
type Latency int

// The latencies that are logged, in microseconds: TTFT and E2E from the
// intended time, TPOT one a request, and the gaps between chunks with tokens.
const (
	logTTFT Latency = iota
	logTPOT
	logE2E
	logGap
	logged
)

var latencyTags = [logged]string{"ttft", "tpot", "e2e", "chunk_gap"}

// newHistogram covers 1 us to one hour with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, 3_600_000_000, 3)
}

// record adds a duration; what is beyond the hour counts as one.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	us := min(max(d.Microseconds(), 0), h.HighestTrackableValue())
	if err := h.RecordValue(us); err != nil {
		panic(err) // Unreachable: the value was brought into the range.
	}
}

// Interval is one latency over one second of a trial, encoded as HdrHistogram's
// compressed V2 format.
type Interval struct {
	Tag           string
	Start, Length time.Duration
	Payload       []byte
}

// latencyLog collects the latencies of requests that ended well, second by
// second. A request counts in the second in which it ended.
type latencyLog struct {
	from time.Duration
	now  *second
}

// second holds the histograms of one interval.
type second [logged]*hdrhistogram.Histogram

func newSecond() *second {
	var s second
	for i := range s {
		s[i] = newHistogram()
	}
	return &s
}

func (l *latencyLog) add(r *measure.Record, gaps []uint32) {
	if d, ok := r.TTFT(); ok {
		record(l.now[logTTFT], d)
	}
	if d, ok := r.TPOT(); ok && r.First >= 0 {
		record(l.now[logTPOT], d)
	}
	if d, ok := r.E2E(); ok {
		record(l.now[logE2E], d)
	}
	for _, us := range gaps {
		record(l.now[logGap], time.Duration(us)*time.Microsecond)
	}
}

// swap ends the present interval at to, puts the histograms of spare, which must
// be empty, in the place of its own and returns those with their start.
func (l *latencyLog) swap(spare *second, to time.Duration) (*second, time.Duration) {
	full, from := l.now, l.from
	l.now, l.from = spare, to
	return full, from
}

// encode makes intervals of the histograms and empties them. It takes some
// milliseconds, which no request should wait for.
func (s *second) encode(from, to time.Duration) []Interval {
	var out []Interval
	for i, h := range s {
		if h.TotalCount() == 0 {
			continue
		}
		b, err := h.EncodeV2()
		if err != nil {
			continue // The library fails here only for histograms it did not make.
		}
		out = append(out, Interval{Tag: latencyTags[i], Start: from, Length: to - from, Payload: b})
		h.Reset()
	}
	return out
}

// WriteHistogramLog writes intervals as an HdrHistogram log of version 1.3, in
// microseconds, with the latency as tag and the trial's start as the base of
// its times.
func WriteHistogramLog(w io.Writer, start time.Time, intervals []Interval) error {
	all := make([]*hdrhistogram.Histogram, len(intervals))
	for i, v := range intervals {
		h, err := hdrhistogram.Decode(v.Payload)
		if err != nil {
			return fmt.Errorf("decode interval %d: %w", i, err)
		}
		h.SetTag(v.Tag)
		h.SetStartTimeMs(start.UnixMilli() + v.Start.Milliseconds())
		h.SetEndTimeMs(start.UnixMilli() + (v.Start + v.Length).Milliseconds())
		all[i] = h
	}
	lw := hdrhistogram.NewHistogramLogWriter(w)
	err := errors.Join(
		lw.OutputComment("[planner: latencies in microseconds, one line a second and latency; Interval_Max in seconds]"),
		lw.OutputLogFormatVersion(),
		lw.OutputStartTime(start.UnixMilli()),
		lw.OutputLegend(),
	)
	for _, h := range all {
		err = errors.Join(err, lw.OutputIntervalHistogram(h))
	}
	if err != nil {
		return fmt.Errorf("write histogram log: %w", err)
	}
	return nil
}

func sumOf(all ...*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	sum := newHistogram()
	for _, h := range all {
		sum.Merge(h)
	}
	return sum
}
