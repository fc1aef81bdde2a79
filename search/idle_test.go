package search

import (
	"testing"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// The bound that an idle engine misses is named, and not a latency that exceeds its limit only for failed requests.
func TestBrokenBy(t *testing.T) {
	slo := measure.SLO{Errors: 0.001, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.95, Limit: 500 * time.Millisecond},
		{Metric: measure.TPOT, Quantile: 0.95, Limit: 50 * time.Millisecond},
	}}
	s := NewMaxRate(MaxRateConfig{SLO: slo, Workload: raceWorkload()})
	for name, c := range map[string]struct {
		failed, ttft, tpot int
		want               int
	}{
		"none":                           {0, 0, 0, -1},
		"every request fails":            {10, 10, 10, 2},
		"most fail, the others are good": {8, 8, 8, 2},
		"slow first tokens":              {0, 10, 0, 0},
		"slow tokens":                    {0, 0, 10, 1},
		"both slow":                      {0, 10, 10, 0},
		"some fail, the others are slow": {2, 2, 10, 1},
	} {
		m := measure.Measurement{Valid: true, Counts: []measure.Count{
			{Bound: "ttft.p95", N: 10, K: c.ttft}, {Bound: "tpot.p95", N: 10, K: c.tpot}, {Bound: "errors", N: 10, K: c.failed},
		}}
		m.Requests, m.Failed = 10, c.failed
		if got, _ := s.brokenBy(&m); got != c.want {
			t.Errorf("%s: bound %d, want %d", name, got, c.want)
		}
	}
}

// TestFailsAlone: that an engine refuses requests sent one at a time says nothing of what it could meet, that they take
// too long does, and a rate-limiting server refuses requests that follow each other at once.
func TestFailsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		kind   measure.Outcome
		lowest int // so many of 100 failed at the lowest rate tried
		detail string
		want   Outcome
	}{
		"refuses many":         {measure.HTTPStatus, 60, "500: no", Unmeasured},
		"takes too long":       {measure.Timeout, 60, "", Infeasible},
		"limits rates":         {measure.HTTPStatus, 10, "500: no", Searching},
		"says that it is full": {measure.HTTPStatus, 60, "429: slow down", Searching},
	} {
		s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: measure.SLO{Errors: 0.001, Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.95, Limit: time.Second}}}})
		for rate, failed := range map[float64]int{40: 90, 5: c.lowest} {
			s.tried = append(s.tried, attempt{Measurement: &measure.Measurement{Tally: measure.Tally{Requests: 100, Failed: failed}}, rate: rate})
		}
		s.idle.looks = 1
		m := measure.Measurement{Trial: measure.Trial{Concurrency: 1, Requests: 14}, Counts: []measure.Count{{Bound: measure.ErrorsBound, N: 14, K: 10}}}
		m.Requests, m.Failed, m.Failures = 14, 10, map[string]int{c.kind.String(): 10}
		m.Warnings = note.Notes{note.New(note.FailedWith, 10, "http status", c.detail)}
		s.Observe(m)
		if s.outcome != c.want {
			t.Errorf("%s: %v, %s; want %v", name, s.outcome, s.reason.Text, c.want)
		}
	}
}

// TestRefusesAtAnyRate: that a server refuses requests even at a rate at which they hardly ever meet says nothing of what
// it could meet; that they take too long there does.
func TestRefusesAtAnyRate(t *testing.T) {
	for kind, want := range map[measure.Outcome]Outcome{measure.HTTPStatus: Unmeasured, measure.Timeout: Infeasible} {
		s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective()})
		s.idle, s.missed = idle{looks: 2, service: 100 * time.Millisecond, broken: -1}, 1
		m := measure.Measurement{Verdict: &measure.Verdict{State: measure.Missed, Binding: measure.ErrorsBound},
			Tally: measure.Tally{Requests: 100, Failed: 40, Failures: map[string]int{kind.String(): 40}}}
		s.tried = []attempt{{Measurement: &m, rate: 0.001}}
		if s.finish(); s.outcome != want {
			t.Errorf("%v: %v, want %v", kind, s.outcome, want)
		}
	}
}

// A statistic within its limit is not named as a reason why the limit is missed.
func TestFloorNamesWhatIsBeyond(t *testing.T) {
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: measure.SLO{Errors: -1, Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.9, Limit: time.Second}}}})
	var m measure.Measurement
	m.TTFT.Mean = 600 * time.Millisecond
	if f := s.floorOf(0, &m); f.Value != 0 || f.Bound != "ttft.p90" {
		t.Errorf("a mean within the limit: %+v", f)
	}
	m.TTFT.Mean = 2 * time.Second
	if f := s.floorOf(0, &m); f.Value != m.TTFT.Mean || f.Stat != "mean" {
		t.Errorf("a mean beyond the limit: %+v", f)
	}
}

// A trial has a time limit even if the budget is spent: a limit of 0 would be none.
func TestTrialsHaveALimit(t *testing.T) {
	c := MaxRateConfig{Budget: time.Minute}
	for _, spent := range []time.Duration{0, time.Minute, time.Hour} {
		if got := c.trial(measure.Trial{Concurrency: 1}, 1, spent).Limit; got < 2*leastWarmup || got > time.Minute {
			t.Errorf("a limit of %v where %v of %v are spent", got, spent, c.Budget)
		}
	}
}

// An overloaded trial in which no request ended shows first tokens but no gaps between tokens. The next rate is not just
// below, where as little would be seen of the gaps, but far lower.
func TestOverloadWithoutAnswersGoesDown(t *testing.T) {
	slo := measure.SLO{Errors: 0.01, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.9, Limit: time.Second}, {Metric: measure.TPOT, Quantile: 0.9, Limit: 100 * time.Millisecond}}}
	s := NewMaxRate(MaxRateConfig{SLO: slo, Workload: raceWorkload(), Budget: 5 * time.Minute})
	s.Observe(measure.Measurement{Trial: measure.Trial{Concurrency: 1, Requests: 12}, Valid: true, Duration: 13 * time.Second, Tally: measure.Tally{Requests: 12},
		Counts: []measure.Count{{Bound: "ttft.p90", N: 12}, {Bound: "tpot.p90", N: 12}, {Bound: "errors", N: 12}}})
	s.Observe(measure.Measurement{Trial: measure.Trial{Rate: 3.7, Window: 27 * time.Second, Warmup: 15 * time.Second}, Valid: true, Overloaded: true,
		Counts: []measure.Count{{Bound: "ttft.p90", N: 100, K: 100}, {Bound: "tpot.p90"}, {Bound: "errors"}, {Bound: measure.ThroughputBound}}})
	if next := s.Next()[0]; next.Rate > 3.7/2 || next.Rate < 3.7/16 {
		t.Errorf("%.3g/s behind an overload at 3.7/s: %s", next.Rate, next.Why)
	}
}

// An untrusted trial, because its client was late or its prompts too long, makes no engine infeasible, nor does one whose
// requests find no prefix cached, as few do under load.
func TestDoubtfulIdleProbeCondemnsNothing(t *testing.T) {
	shared := raceWorkload()
	shared.Shapes[0].Prefix = workload.Prefix{Groups: 40, Tokens: 400}
	for _, c := range []struct {
		valid    bool
		workload *workload.Workload
		want     Outcome
	}{{true, raceWorkload(), Infeasible}, {false, raceWorkload(), Searching}, {true, shared, Searching}} {
		s := NewMaxRate(MaxRateConfig{Workload: c.workload, SLO: raceObjective()})
		for n := range 2 {
			s.Observe(measure.Measurement{Trial: measure.Trial{Number: n, Concurrency: 1, Requests: 1200}, Valid: c.valid, Duration: time.Minute,
				Tally: measure.Tally{Requests: 1200}, Counts: []measure.Count{{Bound: "ttft.p99", N: 1200, K: 600}}})
		}
		if s.outcome != c.want {
			t.Errorf("valid %t, prefixes shared %t: %v, want %v", c.valid, c.workload == shared, s.outcome, c.want)
		}
	}
}

// If an idle engine certainly meets the objective, only a clear miss at a rate at which requests hardly overlap shows
// that no rate meets it: a count narrowly beyond what is allowed does not.
func TestNearMissOfLoneRequests(t *testing.T) {
	for _, c := range []struct {
		meets bool
		state measure.State
		want  bool
	}{{true, measure.Unsure, false}, {true, measure.Missed, true}, {false, measure.Unsure, true}} {
		s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective()})
		s.idle = idle{looks: 2, service: 100 * time.Millisecond, broken: -1, meets: c.meets}
		s.tried = []attempt{{Measurement: &measure.Measurement{Verdict: &measure.Verdict{State: c.state}}, rate: 0.001}}
		if got := s.loneRate(); got != c.want {
			t.Errorf("idle engine meets it %t, %v at a lone rate: ends %t, want %t", c.meets, c.state, got, c.want)
		}
	}
}
