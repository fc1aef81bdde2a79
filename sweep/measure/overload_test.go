package measure_test

import (
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// wanderer is a batching engine whose requests stay for ten seconds and slow each other down, so
// that the number in flight fluctuates slowly and widely; wandererRate is the largest rate at which
// no more than 1 % of its requests take more than 50 ms a token, by bisection over long runs.
var wanderer = virtual.Engine{Budget: 2048, Sequences: 512, Base: 8 * time.Millisecond, PerToken: 40 * time.Microsecond, PerSequence: 60 * time.Microsecond}

const wandererRate = 17.086

func chat() *workload.Workload {
	return &workload.Workload{Class: "chat", Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Lognormal, Median: 500, Sigma: 0.8, Min: 50, Max: 4000},
		Output: workload.Lengths{Dist: workload.Lognormal, Median: 200, Sigma: 0.8, Min: 10, Max: 2000},
	}}}
}

// trials runs trials of 180 s of the wanderer under one bound.
func trials(share float64, b measure.Bound, runs int) []measure.Measurement {
	out := make([]measure.Measurement, runs)
	for i := range out {
		out[i] = virtual.Bench{Server: wanderer}.Run(measure.Trial{
			Workload: chat(), Rate: share * wandererRate, Warmup: 30 * time.Second, Window: 180 * time.Second, Cooldown: time.Second,
			Seed: uint64(7000 + i), Objective: measure.SLO{Bounds: []measure.Bound{b}, Errors: -1},
		})
	}
	return out
}

func count(all []measure.Measurement, is func(*measure.Measurement) bool) int {
	n := 0
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

func aborted(m *measure.Measurement) bool    { return m.Aborted.Text != "" }
func overloaded(m *measure.Measurement) bool { return m.Overloaded }

// TestHopelessEngine ends trials of an engine with long answers: at the maximum rate one in a
// hundred at most, which would fail here for one in sixteen draws of the seeds, and well above it
// within half a minute.
func TestHopelessEngine(t *testing.T) {
	tpot := measure.Bound{Metric: measure.TPOT, Quantile: 0.99, Limit: 50 * time.Millisecond}
	if n := count(trials(1, tpot, 40), aborted); n > 1 {
		t.Errorf("%d of 40 trials at the maximum rate are given up", n)
	}
	over := trials(1.4, tpot, 40)
	var after []time.Duration
	for i := range over {
		if !aborted(&over[i]) {
			t.Fatal("a trial at 1.4 of the maximum rate goes on to its end")
		}
		after = append(after, over[i].Duration)
	}
	slices.Sort(after)
	if after[20] > 15*time.Second || after[37] > 30*time.Second {
		t.Errorf("trials at 1.4 of the maximum rate end after %v in the median, %v at p95", after[20], after[37])
	}
}

// TestDrainingBacklogIsNoMiss has requests that are all late because the warm-up left a backlog.
// While it shrinks the trial goes on; one whose backlog stays is given up.
func TestDrainingBacklogIsNoMiss(t *testing.T) {
	trial := measure.Trial{Workload: chat(), Rate: 10, Warmup: 30 * time.Second, Window: 300 * time.Second,
		Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: -1}}
	const now = 90 * time.Second
	late := func(perSecond float64) note.Reason {
		var records []measure.Record
		for i := range 900 {
			r := measure.Record{Due: time.Duration(i) * 100 * time.Millisecond, Outcome: measure.OK, Output: 1, Prompt: 10}
			r.Sent = r.Due
			r.Last = 30*time.Second + time.Duration(float64(i+1)/perSecond*float64(time.Second))
			if r.First = r.Last; r.Last > now {
				r.Outcome, r.First, r.Last = measure.InFlight, -1, -1
			}
			records = append(records, r)
		}
		return measure.Hopeless(&trial, records, now)
	}
	if why := late(14); why.Text != "" {
		t.Errorf("a trial whose backlog shrinks by four a second is given up: %v", why)
	}
	if why := late(10); why.Text == "" {
		t.Error("a trial with a backlog of 30 s that stays goes on")
	}
}

// TestMissedTrialShowsIt has requests that never end, in the warm-up as well. A trial is not given
// up before a request of its window is late, as only these count: it would tell a search nothing.
func TestMissedTrialShowsIt(t *testing.T) {
	trial := measure.Trial{Workload: chat(), Rate: 10, Warmup: 300 * time.Second, Window: 300 * time.Second,
		Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.E2E, Quantile: 0.95, Limit: 20 * time.Second}}, Errors: -1}}
	at := func(now time.Duration) (note.Reason, measure.Measurement) {
		var records []measure.Record
		for due := time.Duration(0); due < now; due += 100 * time.Millisecond {
			records = append(records, measure.Record{Due: due, Sent: due, First: due + time.Second, Last: -1, Outcome: measure.InFlight, Prompt: 10})
		}
		why := measure.Hopeless(&trial, records, now)
		return why, measure.Reduce(trial, measure.Observation{Records: records, End: now, Aborted: why})
	}
	if why, _ := at(trial.Warmup + 15*time.Second); why.Text != "" {
		t.Errorf("given up 15 s into the window, where no request of its own is 20 s old: %v", why)
	}
	if why, m := at(trial.Warmup + 25*time.Second); why.Text == "" || m.Counts[0].K == 0 || m.Counts[0].K < m.Counts[0].N {
		t.Errorf("25 s into the window %q, %+v", why.Text, m.Counts[0])
	}
}

// TestWanderingIsNoBacklog leaves only the backlog to decide: a limit on the mean never ends a
// trial by its count.
func TestWanderingIsNoBacklog(t *testing.T) {
	mean := measure.Bound{Metric: measure.TPOT, Limit: time.Hour}
	at := trials(1, mean, 40)
	if n, m := count(at, aborted), count(at, overloaded); n > 1 || m > 1 {
		t.Errorf("in 40 trials that just meet a limit, %d are given up and %d marked overloaded", n, m)
	}
	over := trials(1.4, mean, 20)
	if n := count(over, overloaded); n < 15 {
		t.Errorf("of 20 trials at 1.4 of that rate %d are marked overloaded", n)
	}
}

// TestBurstOfATraceIsNoOverload replays a trace that comes in bursts of ten seconds, in which a
// queue grows that is worked off in the silence after them. A trial goes on, and one over the whole
// trace is not marked overloaded; at a rate that the server cannot carry in the long run it is.
func TestBurstOfATraceIsNoOverload(t *testing.T) {
	w := &workload.Workload{Class: "trace", Arrivals: workload.Trace}
	for burst := range 20 {
		for i := range 100 {
			at := time.Duration(burst)*50*time.Second + time.Duration(i)*100*time.Millisecond
			w.Replay = append(w.Replay, workload.TraceRow{Arrival: at, Prompt: 1, Output: 1})
		}
	}
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.5, Limit: 5 * time.Second}}, Errors: -1}
	run := func(perSecond float64, window time.Duration) measure.Measurement {
		trial := measure.Trial{Workload: w, Rate: 2, Window: window, Objective: slo, Seed: 1}
		return virtual.Bench{Server: virtual.Queue{Servers: 1, Rate: perSecond, Constant: true}}.Run(trial)
	}
	if m := run(4, 40*time.Second); m.Aborted.Text != "" || m.Overloaded {
		t.Errorf("a burst: %q, overloaded %v", m.Aborted.Text, m.Overloaded)
	}
	if m := run(4, 1000*time.Second); m.Aborted.Text != "" || m.Overloaded {
		t.Errorf("a lap: %q, overloaded %v", m.Aborted.Text, m.Overloaded)
	}
	if m := run(1, 1000*time.Second); !m.Overloaded {
		t.Errorf("half of the requests of a lap cannot be served: %d of %d late", m.Counts[0].K, m.Counts[0].N)
	}
}
