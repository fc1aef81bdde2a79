package report

import (
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
	text := string(Text(noPlanDocument(&decide.NoPlan{Why: &plan.Infeasible{}, Demand: demand(), Objective: slo(), Background: b}, Engines{}), 200, false))
	if !strings.Contains(text, fact) || !strings.Contains(text, "workload.timeout") || strings.Contains(text, "faster") {
		t.Errorf("a plan without %q:\n%s", fact, text)
	}
	lone.Failures = map[string]int{"http_status": 237}
	b.Trials = []measure.Measurement{lone}
	if text := string(Text(foundDocument(settings(), r, decide.Background{Trials: b.Trials}, Engines{}), 200, false)); strings.Contains(text, "timeout of") {
		t.Errorf("a timeout is made up:\n%s", text)
	}
}
