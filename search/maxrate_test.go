package search_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/note"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func tokens(n int) workload.Lengths { return workload.Lengths{Dist: workload.Fixed, Value: n} }

func poisson() *workload.Workload {
	return &workload.Workload{Class: "one", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: tokens(1), Output: tokens(1)}}}
}

func ttft(limit time.Duration, q float64) measure.SLO {
	return measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: q, Limit: limit}}, Errors: 0.001}
}

// single is M/M/1 with a p99 of 500 ms, whose maximum rate is 25.790/s.
var single = virtual.Queue{Servers: 1, Rate: 35}

const half = 500 * time.Millisecond

// config is a search on a queue with a fixed budget.
func config(prior search.Prior, seed uint64) search.MaxRateConfig {
	return search.MaxRateConfig{Prior: prior, Workload: poisson(), SLO: ttft(half, 0.99), Seed: seed,
		Budget: 1355 * time.Second, Overhead: 6 * time.Second, Precision: 1e-9}
}

// searched is what a search finds on a server.
func searched(cfg search.MaxRateConfig, server virtual.Server) search.Result {
	s := search.NewMaxRate(cfg)
	virtual.Drive(s, virtual.Bench{Server: server}.Run)
	return s.Result()
}

// TestCoverage searches three queues 6 times each. If the safe rate were right with probability 0.95, fewer than 15 of
// 18 would be right with probability 0.01. The median has to fall below that, or the test could not fail.
func TestCoverage(t *testing.T) {
	queues := []struct {
		queue virtual.Queue
		limit time.Duration
		phi   float64
	}{
		{single, half, 44},
		{virtual.Queue{Servers: 1, Rate: 35, Constant: true}, 250 * time.Millisecond, 25},
		{virtual.Queue{Servers: 8, Rate: 4.4, Waiting: true}, half, 62},
	}
	const seeds, least = 6, 15
	safe, median, square, bias := 0, 0, 0.0, 0.0
	for _, q := range queues {
		truth := q.queue.MaxRate(q.limit, 0.01)
		for seed := range uint64(seeds) {
			prior := search.Prior{Rate: truth * math.Exp(0.25*math.Sin(float64(3*seed))*math.Sqrt2), Phi: q.phi}
			cfg := config(prior, seed+1)
			cfg.SLO = ttft(q.limit, 0.99)
			s := search.NewMaxRate(cfg)
			virtual.Drive(s, virtual.Bench{Server: q.queue, NoAbort: true}.Run)
			e := s.Result().Estimate
			if e.Safe <= truth {
				safe++
			}
			if e.Value <= truth {
				median++
			}
			d := math.Log(e.Value / truth)
			square += d * d / (3 * seeds)
			bias += d / (3 * seeds)
		}
	}
	rmse := math.Sqrt(square)
	t.Logf("safe rate right in %d of 18, RMSE %.4f, bias %+.4f", safe, rmse, bias)
	if safe < least || rmse > 0.032 || math.Abs(bias) > 0.015 {
		t.Errorf("safe rate right in %d of 18, RMSE %.4f, bias %+.4f; want >= %d, <= 0.032, <= 0.015", safe, rmse, bias, least)
	}
	if median >= least {
		t.Errorf("the median is at most the largest rate in %d of 18: the test does not see what it is for", median)
	}
}

// TestWrongAndNoPrior searches with predictions that are far off. Safe rates that are right with probability 0.95 are
// right in fewer than 4 of 5 searches with probability 0.02.
func TestWrongAndNoPrior(t *testing.T) {
	truth, safe := single.MaxRate(half, 0.01), 0
	for _, rate := range []float64{0, truth / 2, 2 * truth, truth / 20, truth * 1000} {
		r := searched(config(search.Prior{Rate: rate}, 1), single)
		if d := math.Log(r.Estimate.Value / truth); math.Abs(d) > 0.12 {
			t.Errorf("prior %.3g/s: %v, want %.2f within 12 %%", rate, r.Estimate, truth)
		}
		if r.Estimate.Safe <= truth {
			safe++
		}
	}
	if safe < 4 {
		t.Errorf("safe rate right in %d of 5", safe)
	}
}

// TestAnyRate searches servers that carry from one request in three hours to 10,000/s, without a prior.
func TestAnyRate(t *testing.T) {
	for _, scale := range []float64{4e-6, 2e-3, 1, 400} {
		q := virtual.Queue{Servers: 1, Rate: 35 * scale}
		limit := time.Duration(float64(half) / scale)
		cfg := config(search.Prior{}, 1)
		cfg.SLO, cfg.Budget, cfg.Precision = ttft(limit, 0.99), 0, 0.10
		r := searched(cfg, q)
		truth := q.MaxRate(limit, 0.01)
		if r.Outcome != search.Found || math.Abs(math.Log(r.Estimate.Value/truth)) > 0.15 {
			t.Errorf("true rate %.4g/s: %v after %d trials (%v)", truth, r.Estimate, r.Trials, r.Outcome)
		}
	}
}

// TestReplay gives a search the measurements of another and compares the trials that both propose, and gives them to a
// third that is never asked for a proposal.
func TestReplay(t *testing.T) {
	for _, prior := range []search.Prior{{}, {Rate: 20}} {
		first := search.NewMaxRate(config(prior, 3))
		var told []measure.Measurement
		virtual.Drive(first, func(trial measure.Trial) measure.Measurement {
			told = append(told, virtual.Bench{Server: single}.Run(trial))
			return told[len(told)-1]
		})
		again, silent := search.NewMaxRate(config(prior, 3)), search.NewMaxRate(config(prior, 3))
		for i, m := range told {
			next := again.Next()
			if len(next) != 1 || !reflect.DeepEqual(next[0], m.Trial) || !reflect.DeepEqual(again.Next(), next) {
				t.Fatalf("trial %d: %+v, was %+v", i+1, next, m.Trial)
			}
			again.Observe(m)
			silent.Observe(m)
		}
		if again.Next() != nil || silent.Next() != nil {
			t.Fatalf("prior %v: a replayed search goes on", prior)
		}
		if !reflect.DeepEqual(first.Result(), again.Result()) || !reflect.DeepEqual(first.Result(), silent.Result()) {
			t.Errorf("prior %v: a replayed search gives %+v, was %+v", prior, again.Result(), first.Result())
		}
	}
}

func TestInfeasible(t *testing.T) {
	// A service of 1/35 s = 28.6 ms against a limit of 20 ms.
	q := virtual.Queue{Servers: 1, Rate: 35, Constant: true}
	for _, rate := range []float64{0, 20} {
		cfg := config(search.Prior{Rate: rate}, 1)
		cfg.SLO, cfg.Budget = ttft(20*time.Millisecond, 0.99), 0
		r := searched(cfg, q)
		if r.Outcome != search.Infeasible || r.Estimate.Value != 0 || r.Floor == nil {
			t.Fatalf("prior %g: %+v, want infeasible with the idle latency", rate, r)
		}
		if f := *r.Floor; f.Stat != "p99" || f.Value.Round(time.Millisecond) != 29*time.Millisecond || f.Limit != 20*time.Millisecond {
			t.Errorf("prior %g: %+v, want p99 of 28.6 ms", rate, f)
		}
	}
}

// TestInfeasibleThoughAborted: a trial ended early, as it clearly missed a limit, may have too few requests in its
// window to show the miss. Its rate does not count as met, or the search would look below it for ever.
func TestInfeasibleThoughAborted(t *testing.T) {
	bench := virtual.Bench{Server: virtual.Queue{Servers: 1, Rate: 35, Constant: true}}
	cfg := config(search.Prior{Rate: 20}, 1)
	cfg.SLO, cfg.Budget = ttft(20*time.Millisecond, 0.99), 0
	s, trials := search.NewMaxRate(cfg), 0
	virtual.Drive(s, func(trial measure.Trial) measure.Measurement {
		m := bench.Run(trial)
		if trials++; trials == 1 {
			m.Aborted, m.Overloaded, m.Counts = note.Because(note.ClearlyMissed, cfg.SLO.Bounds[0], 300.0, 300.0), false, nil
			m.Valid, m.Warnings, m.Verdict = true, nil, &measure.Verdict{State: measure.Unsure}
		}
		if trials > 30 {
			t.Fatalf("still at %.3g/s after 30 trials", trial.Rate)
		}
		return m
	})
	if r := s.Result(); r.Outcome != search.Infeasible || r.Floor == nil {
		t.Errorf("%+v, want infeasible with the idle latency", r)
	}
}

// TestUndecidedAtALoneRate: a trial cut off before its verdict, as it was slow, does not show that no rate meets the
// objective.
func TestUndecidedAtALoneRate(t *testing.T) {
	bench := virtual.Bench{Server: virtual.Queue{Servers: 1, Rate: 35, Constant: true}}
	cfg := config(search.Prior{}, 1)
	cfg.SLO, cfg.Budget = ttft(60*time.Millisecond, 0.99), 10*time.Hour
	s := search.NewMaxRate(cfg)
	virtual.Drive(s, func(trial measure.Trial) measure.Measurement {
		m := bench.Run(trial)
		if trial.Concurrency == 0 {
			m.Aborted, m.Valid, m.Warnings, m.Verdict = note.Because(note.TrialLimit, trial.Limit), true, nil, &measure.Verdict{State: measure.Unsure}
		}
		return m
	})
	if r := s.Result(); r.Outcome != search.OutOfBudget {
		t.Errorf("%+v, want undecided", r)
	}
}

// TestFreeSpendEnds: a search that may simulate no more requests has found its rate if the interval is narrow enough.
func TestFreeSpendEnds(t *testing.T) {
	bench := virtual.Bench{Server: single}
	cfg := config(search.Prior{}, 1)
	cfg.Budget, cfg.Precision = 0, 0.2
	s := search.NewMaxRate(cfg)
	virtual.Drive(s, func(trial measure.Trial) measure.Measurement {
		m := bench.Run(trial)
		m.Requests *= 6 // as if they were of long conversations
		return m
	})
	if r := s.Result(); r.Outcome != search.Found {
		t.Errorf("%v after %d trials: %v, want a rate found", r.Outcome, r.Trials, r.Estimate)
	}
}

func TestNotReached(t *testing.T) {
	cfg := config(search.Prior{}, 1)
	cfg.Limit, cfg.Budget = 10, 0
	if r := searched(cfg, single); r.Outcome != search.NotReached || r.Estimate.Value != 10 || r.Estimate.Safe > 10 {
		t.Errorf("%+v, want not reached at 10/s", r)
	}
}

func TestRejected(t *testing.T) {
	s := search.NewMaxRate(config(search.Prior{Rate: 10}, 1))
	s.Observe(measure.Measurement{Trial: s.Next()[0], Rejected: note.Text("weights need 140 GB, 80 are there").Reason()})
	if r := s.Result(); r.Outcome != search.Infeasible || !strings.Contains(r.Reason.Text, "140 GB") || s.Next() != nil {
		t.Errorf("%+v, want infeasible", r)
	}
}

func TestSeveralLimits(t *testing.T) {
	// The waiting time of M/M/8 against a limit that binds, and one forty times as long that does not.
	q := virtual.Queue{Servers: 8, Rate: 4.4, Waiting: true}
	cfg := config(search.Prior{}, 1)
	cfg.SLO = measure.SLO{Errors: 0.001, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.99, Limit: half},
		{Metric: measure.E2E, Quantile: 0.99, Limit: 20 * time.Second},
	}}
	r := searched(cfg, q)
	truth := q.MaxRate(half, 0.01)
	if r.Binding != "ttft.p99" || math.Abs(math.Log(r.Estimate.Value/truth)) > 0.08 || len(r.Bounds) != 4 || r.Bounds[0].Probability < 0.9 {
		t.Errorf("%+v, want ttft.p99 to bind near %.2f/s", r, truth)
	}
}

func TestUntrustedTrialIsNoEvidence(t *testing.T) {
	s := search.NewMaxRate(config(search.Prior{Rate: 20}, 1))
	before := s.Next()[0]
	m := virtual.Bench{Server: single}.Run(before)
	m.Valid = false
	s.Observe(m)
	after := s.Next()[0]
	if after.Rate != before.Rate || after.Seed == before.Seed || after.Window != 2*before.Window {
		t.Errorf("after a trial that is not valid: %+v, want the same rate with other requests for twice as long", after)
	}
}
