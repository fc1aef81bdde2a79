package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// However small or large a rate is, a trial has a length.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		requests, rate float64
		want           time.Duration
	}{
		{1500, 1000, time.Minute}, {1500, 1, 1500 * time.Second}, {4000, 1e-9, longestWindow}, {4000, 5e-324, longestWindow}, {4000, 4e-6, 1_000_000_000 * time.Second},
	} {
		if got := Window(c.requests, c.rate); got != c.want {
			t.Errorf("%g requests at %g/s: %v, want %v", c.requests, c.rate, got, c.want)
		}
	}
	if got := WholeWindow(100, 1.3); got != 77*time.Second {
		t.Errorf("%v is no number of whole seconds", got)
	}
}

func talk(turns int, think time.Duration) *Workload {
	one := Lengths{Dist: Fixed, Value: 1}
	return &Workload{Arrivals: Poisson, Turns: turns, Think: think, Shapes: []Shape{{Prompt: one, Output: one}}}
}

// The share of the offered requests that a window sees must be what schedules hold, and 1 from the
// course of a conversation on.
func TestSteadyIsWhatSchedulesHold(t *testing.T) {
	w := talk(20, time.Second)
	const rate, seeds = 200, 40
	for _, window := range [][2]time.Duration{{0, 10 * time.Second}, {5 * time.Second, 9500 * time.Millisecond}, {15 * time.Second, 40 * time.Second}, {30 * time.Second, 60 * time.Second}} {
		from, to := window[0], window[1]
		n := 0
		for seed := range uint64(seeds) {
			for _, r := range w.Schedule(rate, to, seed) {
				if r.Due >= from {
					n++
				}
			}
		}
		offered := rate * seeds * (to - from).Seconds()
		got, want := float64(n)/offered, w.Steady(from, to)
		if sd := math.Sqrt(20 / offered); math.Abs(got-want) > 4*sd {
			t.Errorf("%v to %v: schedules hold %.4f of the offered requests, want %.4f +- %.4f", from, to, got, want, sd)
		}
	}
	if got := w.Steady(w.Course(0), time.Hour); got != 1 {
		t.Errorf("behind the course of a conversation %g of the requests come, want all", got)
	}
	if got := talk(1, time.Second).Steady(0, time.Second); got != 1 {
		t.Errorf("single requests: %g of them come, want all", got)
	}
}

func TestSettling(t *testing.T) {
	if got := talk(1, 0).Settling(5, time.Second); got != 0 {
		t.Errorf("single requests settle in %v, want at once", got)
	}
	// Four waits of 5 s + 1 s and a last answer; then one more turn.
	if got := talk(5, 5*time.Second).Settling(5, time.Second); got != 31*time.Second {
		t.Errorf("conversations settle in %v, want 31 s", got)
	}
	w := talk(1, 0)
	w.Shapes[0].Prefix = Prefix{Groups: 10, Tokens: 100, Prompts: 4}
	// Forty texts at 2/s: each comes every 20 s on average.
	if got := w.Settling(2, time.Second); got != 100*time.Second {
		t.Errorf("shared prompts settle in %v, want 100 s", got)
	}
	if tokens, texts := w.SharedText(); tokens != 101 || texts != 40 {
		t.Errorf("%g texts of %g tokens are shared, want 40 of 101", texts, tokens)
	}
	if got := talk(1<<30, 1<<50).Course(1 << 50); got <= 0 {
		t.Errorf("an endless conversation lasts %v", got)
	}
}

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

// The burst of gamma gaps is known; that of a trace of Poisson arrivals is 1, except that it is the
// largest of five estimates, and that of one with bursts of 100 rows is near 100.
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

// A schedule from any row holds the trace once per lap, in its order and with its gaps, wherever it
// begins; other seeds begin elsewhere.
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
