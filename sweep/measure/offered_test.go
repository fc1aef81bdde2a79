package measure

import (
	"math"
	"testing"
	"time"

	"planner/sweep/workload"
)

// A trial that saw part of a trace offered the rate of what arrived in it, in the terms of its
// rate; one that saw a lap, and one without a trace, the rate that was asked.
func TestOfferedRate(t *testing.T) {
	trace := &workload.Workload{Arrivals: workload.Trace,
		Rates: &workload.Rates{Of: workload.RateOfBusiestHour, Mean: 0.5, BusiestHour: 2, BusiestMinute: 3}}
	for _, c := range []struct {
		name     string
		workload *workload.Workload
		requests int
		want     float64
	}{
		{"night", trace, 50, 2},
		{"a lap, in nanoseconds", trace, 200, 8},
		{"Poisson", &workload.Workload{Arrivals: workload.Poisson}, 50, 8},
		{"no workload", nil, 50, 8},
		{"nothing seen", trace, 0, 8},
	} {
		m := Measurement{Trial: Trial{Rate: 8, Workload: c.workload}, Duration: 100*time.Second - 1, Tally: Tally{Requests: c.requests}}
		if got := m.Offered(); got < c.want*(1-1e-9) || got > c.want*(1+1e-9) || c.want == 8 && got != 8 {
			t.Errorf("%s: offered %g, want %g", c.name, got, c.want)
		}
	}
}

// A trial of conversations counts at the rate that was sent if it met its bound, and otherwise at
// the rate at which requests would have come.
func TestTrialsCountAtTheRateThatWasSent(t *testing.T) {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	chat := &workload.Workload{Class: "chat", Shapes: []workload.Shape{{Prompt: one, Output: one}}, Arrivals: workload.Poisson, Turns: 20, Think: time.Second}
	tell := func(warmup time.Duration, sentShare float64) *Measurement {
		m := &Measurement{Trial: Trial{Workload: chat, Rate: 50, Warmup: warmup, Window: 10 * time.Second, Seed: 3}, Duration: 10 * time.Second}
		due := 0
		for _, r := range chat.Schedule(50, warmup+m.Duration, 3) {
			if r.Due >= warmup {
				due++
			}
		}
		m.Sent = sentShare * float64(due) / m.Duration.Seconds()
		return m
	}
	steady := chat.Steady(0, 10*time.Second)
	for _, c := range []struct {
		why    string
		warmup time.Duration
		sent   float64
		met    bool
		want   float64
	}{
		{"all was sent", time.Minute, 1, true, 50},
		{"a little is on its way", time.Minute, 0.97, true, 50},
		{"turns waited and all was well", time.Minute, 0.8, true, 40},
		{"turns waited because the server is too slow", time.Minute, 0.8, false, 50},
		{"conversations were starting", 0, 1, true, 50 * steady},
		{"conversations were starting, and that was too much", 0, 0.5, false, 50 * steady},
	} {
		if got := tell(c.warmup, c.sent).Carried(chat, c.met); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: counts at %.4g/s, want %.4g", c.why, got, c.want)
		}
	}
	chat.Turns = 1
	if got := tell(0, 0).Carried(chat, true); got != 50 {
		t.Errorf("single requests count at %g/s, want 50", got)
	}
}

// TestStaggered: the first answers of a loop end one after the other, and are not measured.
func TestStaggered(t *testing.T) {
	fixed := func(n int) workload.Lengths { return workload.Lengths{Dist: workload.Fixed, Value: n} }
	w := &workload.Workload{Arrivals: workload.Constant, Turns: 1, Shapes: []workload.Shape{{Weight: 1, Prompt: fixed(10), Output: fixed(40)}}}
	trial := Trial{Workload: w, Concurrency: 4, Requests: 6, Staggered: true}
	for i, r := range trial.Schedule() {
		want := [...]int{10, 20, 30, 40, 40, 40}[i]
		if measured := trial.Measures(&Record{ID: r.ID}); r.Output != want || measured != (i >= 4) {
			t.Errorf("request %d: %d tokens, measured %t, want %d", i, r.Output, measured, want)
		}
	}
}
