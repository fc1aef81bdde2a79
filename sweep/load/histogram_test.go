package load

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// logOf runs a short trial in a log of its own.
func logOf(ids ...int) string {
	l := newHistogramLog(time.Unix(1790000000, 250e6))
	for i, id := range ids {
		due := time.Duration(id) * 100 * time.Millisecond
		r := measure.Record{ID: id, Due: due, First: due + time.Duration(id+1)*time.Millisecond, Last: due + time.Duration(id+11)*time.Millisecond, Output: 11, Outcome: measure.OK}
		l.add(&r, []uint32{1000, 2000})
		if i%5 == 4 {
			l.cut(l.from + time.Second)
		}
	}
	return l.out.String()
}

// totalsOf reads a log back: the sum of its counts and values by latency.
func totalsOf(log string) map[string]*hdrhistogram.Histogram {
	out := map[string]*hdrhistogram.Histogram{}
	r := hdrhistogram.NewHistogramLogReader(strings.NewReader(log))
	for {
		h := must.Get(r.NextIntervalHistogram())
		if h == nil {
			return out
		}
		if out[h.Tag()] == nil {
			out[h.Tag()] = newHistogram()
		}
		out[h.Tag()].Merge(h)
	}
}

func TestHistogramLog(t *testing.T) {
	log := logOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	if !strings.Contains(log, "Tag=ttft,1790000000.250000,1.000000,0.005003,HIST") {
		t.Errorf("log:\n%.300s", log)
	}
	got := totalsOf(log)
	for tag, n := range map[string]int64{"ttft": 10, "tpot": 10, "e2e": 10, "chunk_gap": 20} {
		if got[tag] == nil || got[tag].TotalCount() != n {
			t.Errorf("%s: %v values, want %d", tag, got[tag], n)
		}
	}
	if p := got["ttft"].ValueAtPercentile(50); p != 5000 && p != 5003 {
		t.Errorf("median TTFT %d us, want 5 ms", p)
	}
}

// The latencies of records are logged in the second in which each request ended, and failures not
// at all.
func TestHistogramLogOfRecords(t *testing.T) {
	ms := time.Millisecond
	records := []measure.Record{
		{Due: 0, Sent: 0, First: 2100 * ms, Last: 2600 * ms, Output: 11, Outcome: measure.OK},
		{Due: 0, Sent: 0, First: 100 * ms, Last: 600 * ms, Output: 11, Outcome: measure.OK},
		{Due: 100 * ms, Sent: 100 * ms, First: 200 * ms, Last: 900 * ms, Output: 8, Outcome: measure.OK},
		{Due: 0, Sent: 0, First: -1, Last: 500 * ms, Outcome: measure.Timeout},
	}
	counts := map[int64]int64{}
	log := hdrhistogram.NewHistogramLogReader(bytes.NewReader(HistogramLog(records)))
	for {
		h := must.Get(log.NextIntervalHistogram())
		if h == nil {
			break
		}
		counts[h.StartTimeMs()] += h.TotalCount()
		if h.Tag() == "ttft" && h.StartTimeMs() == 0 && (h.TotalCount() != 2 || h.Max() < 99_000 || h.Max() > 101_000) {
			t.Errorf("TTFT of the first second: %d values up to %d us", h.TotalCount(), h.Max())
		}
	}
	// TTFT, TPOT and E2E of each request.
	if len(counts) != 2 || counts[0] != 6 || counts[2000] != 3 {
		t.Errorf("values by second: %v", counts)
	}
}
