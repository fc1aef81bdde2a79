package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"planner/plan"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Where requests fail by themselves the report says how many and by what, and does not
// ask for faster hardware.
func TestFailingAlone(t *testing.T) {
	lone := measure.Measurement{Trial: measure.Trial{Concurrency: 1, Requests: 240, Workload: &workload.Workload{Timeout: time.Second}}, Valid: true}
	lone.Requests, lone.Failed, lone.Failures = 240, 237, map[string]int{"timeout": 237}
	short := lone
	short.Requests, short.Failed, short.Failures = 10, 10, map[string]int{"timeout": 10}
	r := search.Result{Outcome: search.Infeasible, Floor: &search.Floor{Bound: measure.ErrorsBound}}
	b := decide.Background{Trials: []measure.Measurement{short, lone}, Search: &r}
	const fact = "237 of 240 requests failed, 237 of them by the timeout of 1 s"
	if text := string(Text(foundDocument(settings(), r, decide.Background{Trials: b.Trials}, Engines{}), 200, false)); !strings.Contains(text, fact) {
		t.Errorf("a search without %q:\n%s", fact, text)
	}
	text := string(Text(noPlanDocument(&decide.NoPlan{Why: &plan.Unsolved{}, Demand: demand(), Objective: slo(), Background: b}, Engines{}), 200, false))
	if !strings.Contains(text, fact) || !strings.Contains(text, "workload.timeout") || strings.Contains(text, "faster") {
		t.Errorf("a plan without %q:\n%s", fact, text)
	}
	lone.Failures = map[string]int{"http_status": 237}
	b.Trials = []measure.Measurement{lone}
	if text := string(Text(foundDocument(settings(), r, decide.Background{Trials: b.Trials}, Engines{}), 200, false)); strings.Contains(text, "timeout of") {
		t.Errorf("a timeout is made up:\n%s", text)
	}
}

// What is said to be least of a limit that every rate misses is of a trial that missed it: the few requests of an open
// question may be within it.
func TestLeastSeen(t *testing.T) {
	e2e := measure.Bound{Metric: measure.E2E, Quantile: 0.9, Limit: 3 * time.Second}
	good := measure.Bound{Metric: measure.Goodput, Quantile: 0.9, Limits: measure.Limits{E2E: 3 * time.Second}}
	trial := func(b measure.Bound, rate float64, state measure.State, p90 time.Duration, beyond int) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Rate: rate, Objective: measure.SLO{Bounds: []measure.Bound{b}}}, Valid: true, Verdict: &measure.Verdict{State: state}}
		m.E2E.P90, m.Counts = p90, []measure.Count{{Bound: b.String(), N: 1000, K: beyond}}
		return m
	}
	for _, c := range []struct {
		bound measure.Bound
		want  string
	}{
		{e2e, "p90 E2E 3.41 s at 0.0250 req/s, of at most 3 s"},
		{good, "13 % of the requests beyond the limits at 0.0250 req/s, of at most 10 %"},
	} {
		b := decide.Background{Search: &search.Result{Binding: c.bound.String()}, Trials: []measure.Measurement{
			trial(c.bound, 0.02, measure.Unsure, 2680*time.Millisecond, 83),
			trial(c.bound, 0.025, measure.Missed, 3410*time.Millisecond, 130),
			trial(c.bound, 0.1, measure.Missed, 3450*time.Millisecond, 138),
		}}
		if got := leastSeen(&b); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// Where a single instance breaks a limit of the demand, headroom and spares are not what would help.
func TestLimitBelowAnInstance(t *testing.T) {
	for limit, want := range map[plan.Demand]string{
		{MaxGPUs: 3}: "smaller instances", {MaxGPUs: 4}: "fewer spares",
		{MaxUSDPerHour: 7}: "smaller instances", {MaxUSDPerHour: 9}: "fewer spares",
	} {
		d := demand()
		d.MaxGPUs, d.MaxUSDPerHour = limit.MaxGPUs, limit.MaxUSDPerHour
		_, err := plan.Solve(d, slo(), []plan.Offer{offer("H100 SXM", 2)}, nil)
		why, _ := errors.AsType[*plan.Unsolved](err)
		if got := strings.Join(remedies(why, &d, nil), "; "); !strings.Contains(got, want) {
			t.Errorf("%+v: %s, want %s", limit, got, want)
		}
	}
}
