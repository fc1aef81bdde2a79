package load

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
)

// logOf runs a short trial in a log of its own.
func logOf(t *testing.T, ids ...int) string {
	l := latencyLog{now: newSecond()}
	var past []Interval
	spare := newSecond()
	for i, id := range ids {
		due := time.Duration(id) * 100 * time.Millisecond
		r := measure.Record{ID: id, Due: due, First: due + time.Duration(id+1)*time.Millisecond, Last: due + time.Duration(id+11)*time.Millisecond, Output: 11, Outcome: measure.OK}
		l.add(&r, []uint32{1000, 2000})
		if i%5 == 4 {
			to := l.from + time.Second
			full, from := l.swap(spare, to)
			past = append(past, full.encode(from, to)...)
			spare = full
		}
	}
	var b bytes.Buffer
	if err := WriteHistogramLog(&b, time.Unix(1790000000, 250e6), past); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// totalsOf reads a log back: the sum of its counts and values by latency.
func totalsOf(t *testing.T, log string) map[string]*hdrhistogram.Histogram {
	t.Helper()
	out := map[string]*hdrhistogram.Histogram{}
	r := hdrhistogram.NewHistogramLogReader(strings.NewReader(log))
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
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
	log := logOf(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	if !strings.Contains(log, "Tag=ttft,1790000000.250000,1.000000,0.005003,HIST") {
		t.Errorf("log:\n%.300s", log)
	}
	got := totalsOf(t, log)
	for tag, n := range map[string]int64{"ttft": 10, "tpot": 10, "e2e": 10, "chunk_gap": 20} {
		if got[tag] == nil || got[tag].TotalCount() != n {
			t.Errorf("%s: %v values, want %d", tag, got[tag], n)
		}
	}
	if p := got["ttft"].ValueAtPercentile(50); p != 5000 && p != 5003 {
		t.Errorf("median TTFT %d us, want 5 ms", p)
	}
}
