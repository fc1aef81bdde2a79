package search

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// The default is taken unless the best set is shown to carry more.
func TestPrefersDefault(t *testing.T) {
	at := func(v float64) Estimate {
		return Estimate{Value: v, Low: v - 1, High: v + 1, Safe: v - 1, Confidence: 0.9}
	}
	shown, none := Estimate{Value: 0.3, Low: 0.1, High: 0.5}, Estimate{Value: 0.05, Low: -0.1, High: 0.2}
	vague := Estimate{Value: 10, Low: 5, High: 15, Safe: 5}
	for _, tt := range []struct {
		name           string
		best, of, gain Estimate
		want           bool
	}{
		{"a default without a rate", at(10), Estimate{}, Estimate{}, false},
		{"a best set without a rate", Estimate{}, at(10), Estimate{}, true},
		{"a gain that is shown", at(13), at(10), shown, false},
		{"a gain that may be none", at(10.5), at(10), none, true},
		{"the default is faster", at(10), at(10.4), none, true},
		{"a default that is known much less well", at(10.5), vague, none, false},
		{"a best set that is", vague, at(10), none, true},
	} {
		r := RaceResult{Default: &Result{Estimate: tt.of}, Best: Result{Estimate: tt.best}}
		if got := r.PrefersDefault(tt.best, tt.of, tt.gain); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if (RaceResult{}).PrefersDefault(at(10), Estimate{}, Estimate{}) {
		t.Error("prefers a default that there is not")
	}
}

// A race in which no trial can be trusted ends undecided, after the trials of one
// set, and proposes no trial without a load.
func TestRaceThatLearnsNothingIsUndecided(t *testing.T) {
	_, priors := landscape(6, 0, 1)
	r := NewRace(raceConfig(priors, 1))
	n := 0
	for batch := r.Next(); len(batch) > 0; batch = r.Next() {
		for _, trial := range batch {
			if n++; n > 20 || !(trial.Rate > 0 || trial.Closed()) {
				t.Fatalf("trial %d: %+v", n, trial)
			}
			r.Observe(measure.Measurement{Trial: trial, Warnings: note.Notes{note.Text("the client was late")}})
		}
	}
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

// A set whose trials show nothing does not take the budget of the sets behind it, and none
// says of itself what was seen of another.
func TestFirstSetLeavesBudget(t *testing.T) {
	server, priors := landscape(4, 0.05, 1)
	first := slices.MaxFunc(priors, func(a, b Prior) int { return cmp.Compare(a.Rate, b.Rate) }).Knobs
	cfg := raceConfig(priors, 1)
	cfg.Search.Budget = time.Hour
	spent, n := map[measure.Knobs]time.Duration{}, 0
	r := NewRace(cfg)
	for batch := r.Next(); len(batch) > 0; batch = r.Next() {
		for _, trial := range batch {
			m := server.run(trial)
			if trial.Knobs == first {
				n++
			}
			if trial.Knobs == first && n%3 != 0 {
				m.Valid, m.Verdict, m.Warnings = false, nil, note.Notes{note.New(note.SendLag, 20*time.Millisecond, time.Millisecond)}
			}
			spent[trial.Knobs] += new(MaxRateConfig).cost(&m)
			r.Observe(m)
		}
	}
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
