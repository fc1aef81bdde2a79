package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// bursts is a trace that is silent for a minute after each of ten bursts of 100 rows
// in ten seconds.
func bursts() *Workload {
	w := &Workload{Class: "bursts", Arrivals: Trace}
	for b := range 10 {
		for i := range 100 {
			at := time.Duration(b)*70*time.Second + time.Duration(i)*100*time.Millisecond
			w.Replay = append(w.Replay, TraceRow{Arrival: at, Prompt: b + 1, Output: i + 1})
		}
	}
	return w
}

// The burst of gamma gaps is known; that of a trace of Poisson arrivals is 1 but for
// the largest of five estimates, and that of one with bursts of 100 rows near 100.
func TestBurst(t *testing.T) {
	if got := plain(Gamma).Burst(); got != 4 {
		t.Errorf("gamma of shape 1/4: %g", got)
	}
	if a, b := plain(Poisson).Burst(), plain(Constant).Burst(); a != 1 || b != 0 {
		t.Errorf("Poisson %g, constant %g", a, b)
	}
	even := &Workload{Arrivals: Trace}
	for _, r := range plain(Poisson).Schedule(10, 1000*time.Second, 3) {
		even.Replay = append(even.Replay, TraceRow{Arrival: r.Due})
	}
	if got := even.Burst(); got < 0.9 || got > 2.2 {
		t.Errorf("a trace of Poisson arrivals: %g", got)
	}
	if got := bursts().Burst(); got < 50 || got > 110 {
		t.Errorf("a trace of bursts: %g", got)
	}
}

// A schedule from any row holds the trace once a lap, in its order and with its gaps,
// wherever it begins; other seeds begin elsewhere.
func TestScheduleFromAnyRow(t *testing.T) {
	w := bursts()
	first := w.Schedule(2, 500*time.Second, 1)
	w.AnyRow = true
	seen := map[int]bool{}
	for seed := range uint64(5) {
		rs := w.Schedule(2, 500*time.Second, seed)
		if len(rs) < 999 || len(rs) > 1001 {
			t.Fatalf("seed %d: %d requests in a lap of 1000", seed, len(rs))
		}
		start := (rs[0].Prompt-1)*100 + rs[0].Output - 1
		seen[start] = true
		for i, r := range rs[1:min(len(rs), 1000)] {
			row := (start + i + 1) % 1000
			if r.Prompt != row/100+1 || r.Output != row%100+1 {
				t.Fatalf("seed %d: request %d is %d/%d, want row %d", seed, i+1, r.Prompt, r.Output, row)
			}
			if row > 0 {
				gap, want := r.Due-rs[i].Due, first[row].Due-first[row-1].Due
				if math.Abs(float64(gap-want)) > 1000 {
					t.Fatalf("seed %d: gap of %v before row %d, want %v", seed, gap, row, want)
				}
			}
		}
		if !slices.IsSortedFunc(rs, func(a, b Request) int { return int(a.Due - b.Due) }) {
			t.Errorf("seed %d: not in order", seed)
		}
	}
	if len(seen) < 4 {
		t.Errorf("five seeds begin at %v", seen)
	}
}
