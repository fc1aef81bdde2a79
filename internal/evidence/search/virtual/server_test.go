package virtual_test

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestMaxRate compares the closed forms with published figures.
func TestMaxRate(t *testing.T) {
	test := func(q virtual.Queue, limit time.Duration, p, want float64) {
		t.Helper()
		if got := q.MaxRate(limit, p); math.Abs(got-want) > 0.001 {
			t.Errorf("%+v, limit %v, share %g: %.3f, want %.3f", q, limit, p, got, want)
		}
	}
	mm1 := virtual.Queue{Servers: 1, Rate: 35}
	test(mm1, 500*time.Millisecond, 0.05, 29.009)
	test(mm1, 500*time.Millisecond, 0.01, 25.790)
	test(mm1, 500*time.Millisecond, 0.001, 21.184)
	md1 := virtual.Queue{Servers: 1, Rate: 35, Constant: true}
	test(md1, 250*time.Millisecond, 0.05, 28.914)
	test(md1, 250*time.Millisecond, 0.01, 25.971)
	test(md1, 250*time.Millisecond, 0.001, 22.147)
	mm8 := virtual.Queue{Servers: 8, Rate: 4.4, Waiting: true}
	test(mm8, 500*time.Millisecond, 0.05, 30.246)
	test(mm8, 500*time.Millisecond, 0.01, 27.683)
	test(mm8, 500*time.Millisecond, 0.001, 24.161)
}

// TestQueueMeetsItsClosedForm serves 600,000 requests at the exact maximum
// rate. The dispersion of the count is 25 to 80, so its standard deviation is 6
// to 12 %.
func TestQueueMeetsItsClosedForm(t *testing.T) {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	w := &workload.Workload{Class: "one", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: one, Output: one}}}
	for _, c := range []struct {
		queue virtual.Queue
		limit time.Duration
	}{
		{virtual.Queue{Servers: 1, Rate: 35}, 500 * time.Millisecond},
		{virtual.Queue{Servers: 1, Rate: 35, Constant: true}, 250 * time.Millisecond},
		{virtual.Queue{Servers: 8, Rate: 4.4, Waiting: true}, 500 * time.Millisecond},
	} {
		rate := c.queue.MaxRate(c.limit, 0.01)
		beyond, n := 0, 0
		for _, r := range c.queue.Serve(w.Schedule(rate, time.Duration(600_000/rate)*time.Second, 5), 1, 5) {
			n++
			if v, ok := r.TTFT(); ok && v > c.limit {
				beyond++
			}
		}
		if share := float64(beyond) / float64(n); math.Abs(math.Log(share/0.01)) > 0.3 {
			t.Errorf("%+v at %.3f/s: %.4f beyond the limit, want 0.01", c.queue, rate, share)
		}
	}
}

// TestEngineConserves checks that the engine ends every request, in order of
// arrival at the first token, and never before it can.
func TestEngineConserves(t *testing.T) {
	shape := workload.Shape{Prompt: workload.Lengths{Dist: workload.Uniform, Min: 1, Max: 5000}, Output: workload.Lengths{Dist: workload.Uniform, Min: 1, Max: 300}}
	w := &workload.Workload{Class: "any", Arrivals: workload.Poisson, Shapes: []workload.Shape{shape}}
	e := virtual.Engine{Budget: 1024, Sequences: 16, Base: 5 * time.Millisecond, PerToken: 10 * time.Microsecond, PerSequence: 50 * time.Microsecond}
	records := e.Serve(w.Schedule(6, 200*time.Second, 3), 1, 3)
	last := time.Duration(0)
	for i, r := range records {
		switch {
		case r.Outcome != measure.OK || r.First < last || r.First <= r.Due || r.Last < r.First:
			t.Fatalf("request %d: %+v after a first token at %v", i, r, last)
		case r.Last-r.First < time.Duration(r.Output-1)*(e.Base+e.PerSequence)-time.Microsecond:
			t.Fatalf("request %d: %d tokens in %v", i, r.Output, r.Last-r.First)
		}
		last = r.First
	}
}
