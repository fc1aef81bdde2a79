package report

import (
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/plan"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
)

// What decided nothing says so, with what was seen and the commonest doubt.
func TestUndecidedPlan(t *testing.T) {
	unsure := trials()[0]
	unsure.Verdict = &measure.Verdict{State: measure.Unsure}
	all := []measure.Measurement{unsure}
	late := func(lag time.Duration) note.Note { return note.New(note.SendLag, lag, time.Millisecond) }
	for _, w := range []note.Note{note.Text("the client ran out of sockets"), late(12 * time.Millisecond), late(15 * time.Millisecond)} {
		m := trials()[0]
		m.Valid, m.Verdict, m.Warnings = false, nil, note.Notes{w, note.Text("ttft.p99 is not resolved")}
		all = append(all, m)
	}
	o := offer("H100 SXM", 2.99)
	o.Rate, o.Unknown = search.Estimate{}, "3 trials in a row could not be trusted"
	_, err := plan.Solve(demand(), slo(), []plan.Offer{o}, nil)
	text := string(Text(noPlanDocument(&decide.NoPlan{Why: err.(*plan.Unsolved), Demand: demand(), Objective: slo(), Background: decide.Background{Trials: all}}, Engines{}), 160, false))
	for _, want := range []string{
		"Undecided: no rate is known yet", "3 trials in a row could not be trusted", "4 trials, 1 unsure, 3 not valid, mostly as the client was late: p99 of the send lag 12ms",
		"WHAT TO DO", "planner doctor",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "No feasible plan") {
		t.Error("undecided is told as infeasible")
	}
	if s := seenText(measure.OverviewOf(nil)); s != "no trial was run" {
		t.Error(s)
	}
}

// A trial within all limits that cannot be trusted is told with its doubt, and with no bound.
func TestDoubtedTrial(t *testing.T) {
	m := trials()[0]
	m.Valid, m.Warnings = false, note.Notes{note.New(note.LargestSendLag, 30*time.Millisecond, 10*time.Millisecond)}
	for slack, want := range map[float64]string{1: "; the client was late: largest send lag 30ms, 10ms allowed", -0.1: "; failed requests are worst"} {
		m.Verdict = &measure.Verdict{State: measure.Unsure, Binding: measure.ErrorsBound, Slack: slack}
		if got := outcomeOf(&m); !strings.HasPrefix(got, "Not valid") || !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A trial that is missed for requests that failed is told with how they did.
func TestFailedTrialSaysHow(t *testing.T) {
	m := trials()[0]
	m.Requests, m.Failed, m.Failures = 144, 122, map[string]int{"http_status": 122}
	m.Warnings = append(m.Warnings, note.New(note.FailedWith, 122, "http status", "401: token expired"))
	m.Verdict = &measure.Verdict{State: measure.Missed, Binding: measure.ErrorsBound, Slack: -1}
	if got, want := outcomeOf(&m), "; failed requests decide: 122 requests ended with http status: 401: token expired"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The choice between default and tuned settings is told with its reason.
func TestChoice(t *testing.T) {
	base := solved()
	tuned, standard := base.Comparison.Tuned, base.Comparison.Default
	rated := func(s plan.Setting, v float64) plan.Setting {
		s.Rate = &search.Estimate{Value: v, Low: v - 1, High: v + 1, Safe: v - 1, Confidence: 0.9}
		return s
	}
	unknown := func(s plan.Setting) plan.Setting { s.Rate = nil; return s }
	for _, tt := range []struct {
		chosen          plan.Setting
		standard, tuned plan.Setting
		gain            *search.Estimate
		want            string
	}{
		{tuned, rated(standard, 10), rated(tuned, 14), &search.Estimate{Value: 0.4, Low: 0.2, High: 0.6}, "their gain is shown"},
		{standard, rated(standard, 12), rated(tuned, 11), &search.Estimate{Value: -0.08, Low: -0.2, High: 0.1}, "its safe rate is no lower"},
		{standard, rated(standard, 11), rated(tuned, 12), &search.Estimate{Value: 0.09, Low: -0.01, High: 0.2}, "no gain is shown"},
		{standard, rated(standard, 11), unknown(tuned), nil, "no rate is known of the tuned"},
		{tuned, unknown(standard), rated(tuned, 12), nil, "no rate is known of the default"},
		{tuned, rated(standard, 11), rated(tuned, 15), &search.Estimate{Value: 0.4, Low: -0.1, High: 0.9}, "no gain is shown, but the safe rate of the default is 28.6 % lower"},
		{tuned, rated(standard, 11), rated(tuned, 12), &search.Estimate{Value: 0.09, Low: -0.1, High: 0.3}, "though no gain is shown: the default's values are not among those to choose from"},
		{tuned, rated(standard, 12), rated(tuned, 11), &search.Estimate{Value: -0.08, Low: -0.2, High: 0.1}, "though the safe rate of the default is no lower"},
	} {
		p := *base
		p.Offer.Knobs = tt.chosen.Knobs
		p.Comparison = &plan.Comparison{Default: tt.standard, Tuned: tt.tuned, Gain: tt.gain}
		if got := choice(&p); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q in it", got, tt.want)
		}
		var d Document
		addDefault(&d, &p)
		if text := string(Text(d, 400, false)); strings.Count(text, "; chosen") != 1 {
			t.Errorf("not one of the two is named chosen:\n%s", text)
		}
	}
}
