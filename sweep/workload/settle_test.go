package workload

import (
	"math"
	"testing"
	"time"
)

func talk(turns int, think time.Duration) *Workload {
	one := Lengths{Dist: Fixed, Value: 1}
	return &Workload{Arrivals: Poisson, Turns: turns, Think: think, Shapes: []Shape{{Prompt: one, Output: one}}}
}

// The share of the offered requests that a window sees must be what schedules
// hold, and 1 from the course of a conversation on.
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
	// Forty texts at 2/s: each comes every 20 s in the mean.
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
