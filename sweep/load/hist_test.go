package load

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
)

// logOf runs a short trial in a log of its own.
func logOf(t *testing.T, ids ...int) (string, measure.Observation) {
	l := latencyLog{now: newSecond()}
	var past []Interval
	spare := newSecond()
	var obs measure.Observation
	obs.Gaps = newHistogram()
	for i, id := range ids {
		due := time.Duration(id) * 100 * time.Millisecond
		r := measure.Record{ID: id, Due: due, First: due + time.Duration(id+1)*time.Millisecond, Last: due + time.Duration(id+11)*time.Millisecond, Output: 11, Outcome: measure.OK}
		l.add(&r, []uint32{1000, 2000})
		obs.Records = append(obs.Records, r)
		record(obs.Gaps, time.Millisecond)
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
	obs.End = time.Duration(len(ids)) * time.Second
	return b.String(), obs
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
	log, _ := logOf(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
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

// TestMergeHistogramLogs: the merged log of two generators holds what one
// generator of all requests would have logged.
func TestMergeHistogramLogs(t *testing.T) {
	even, a := logOf(t, 0, 2, 4, 6, 8)
	odd, b := logOf(t, 1, 3, 5, 7, 9)
	var merged bytes.Buffer
	if err := MergeHistogramLogs(&merged, strings.NewReader(even), strings.NewReader(odd)); err != nil {
		t.Fatal(err)
	}
	all, _ := logOf(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	got, want := totalsOf(t, merged.String()), totalsOf(t, all)
	for _, tag := range latencyTags {
		if !got[tag].Equals(want[tag]) {
			t.Errorf("%s: %d values, p99 %d; want %d, %d", tag, got[tag].TotalCount(), got[tag].ValueAtPercentile(99), want[tag].TotalCount(), want[tag].ValueAtPercentile(99))
		}
	}
	if n := strings.Count(merged.String(), "Tag="); n != 4 {
		t.Errorf("%d intervals, want one of each latency", n)
	}
	if err := MergeHistogramLogs(&merged, strings.NewReader("# nothing\n")); err == nil {
		t.Error("merged nothing without an error")
	}
	a.Doubts, b.Doubts = []string{"x"}, []string{"y"}
	sum := merge(a, b)
	for i, r := range sum.Records {
		if r.ID != i {
			t.Errorf("record %d is of request %d", i, r.ID)
		}
	}
	if len(sum.Records) != 10 || sum.Gaps.TotalCount() != 10 || fmt.Sprint(sum.Doubts) != "[x y]" || a.Gaps.TotalCount() != 5 {
		t.Errorf("%+v", sum)
	}
	b.Gaps = nil
	if merge(a, b).Gaps != nil {
		t.Error("gaps that one generator did not record are not those of both")
	}
}
