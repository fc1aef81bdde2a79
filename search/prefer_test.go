package search

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// A race in which no trial can be trusted ends undecided, after the trials of one set, and proposes no trial without a
// load.
func TestRaceThatLearnsNothingIsUndecided(t *testing.T) {
	_, priors := landscape(6, 0, 1)
	r := NewRace(raceConfig(priors, 1))
	n := 0
	virtual.Drive(r, func(trial measure.Trial) measure.Measurement {
		if n++; n > 20 || !(trial.Rate > 0 || trial.Closed()) {
			t.Fatalf("trial %d: %+v", n, trial)
		}
		return measure.Measurement{Trial: trial, Warnings: note.Notes{note.Text("the client was late")}}
	})
	got := r.Result()
	if got.Best.Outcome != OutOfBudget || got.Best.Estimate.Value != 0 || !strings.Contains(got.Best.Reason.Text, "could not be trusted") {
		t.Errorf("%+v", got.Best)
	}
	for _, c := range got.Contestants {
		if c.Status != Skipped || c.Reason.Text == "" {
			t.Errorf("%+v", c)
		}
	}
}

// A set whose trials show nothing does not use up the budget of the next sets, and no set's reason repeats what was seen
// of another.
func TestFirstSetLeavesBudget(t *testing.T) {
	server, priors := landscape(4, 0.05, 1)
	first := slices.MaxFunc(priors, func(a, b Prior) int { return cmp.Compare(a.Rate, b.Rate) }).Knobs
	cfg := raceConfig(priors, 1)
	cfg.Search.Budget = time.Hour
	spent, n := map[measure.Knobs]time.Duration{}, 0
	r := NewRace(cfg)
	virtual.Drive(r, func(trial measure.Trial) measure.Measurement {
		m := server.run(trial)
		if trial.Knobs == first {
			n++
		}
		if trial.Knobs == first && n%3 != 0 {
			m.Valid, m.Verdict, m.Warnings = false, nil, note.Notes{note.New(note.SendLag, 20*time.Millisecond, time.Millisecond)}
		}
		spent[trial.Knobs] += m.EngineTime(0)
		return m
	})
	got := r.Result()
	if got.Knobs == first || !(got.Best.Estimate.Value > 0) || spent[first] > cfg.Search.Budget/2 {
		t.Errorf("%v of %v for the set without a valid trial: %v of %+v", spent[first], cfg.Search.Budget, got.Best.Estimate, got.Knobs)
	}
	for _, c := range got.Contestants {
		if c.Knobs == first && !strings.Contains(c.Reason.Text, "p99 of the send lag 20ms") || c.Knobs != first && strings.Contains(c.Reason.Text, "send lag") {
			t.Errorf("%+v: %s", c.Knobs, c.Reason.Text)
		}
	}
}

// Of sets that miss the objective even when idle, the fastest leads: it tells what limit could be met.
func TestLeadOfIdleMisses(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.9, Limit: 100 * time.Millisecond}}, Errors: -1}
	miss := func(latency time.Duration) *candidate {
		s := NewMaxRate(MaxRateConfig{Workload: &workload.Workload{}, SLO: slo})
		s.outcome, s.idle = Infeasible, idle{floor: Floor{Value: latency}}
		return &candidate{search: s}
	}
	slow, fast := miss(800*time.Millisecond), miss(550*time.Millisecond)
	for _, all := range [][]*candidate{{slow, fast}, {fast, slow}} {
		if r := (&Race{all: all}); r.lead() != fast {
			t.Error("the slower set leads")
		}
	}
}
