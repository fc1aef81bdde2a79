package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"planner/sweep/workload"
)

// refusing is a trial of n requests, one every 100 ms, that take 20 ms each;
// every third is refused, in the words of say.
func refusing(n int, say func(i int) string) Measurement {
	var records []Record
	for i := range n {
		at := time.Duration(i) * 100 * time.Millisecond
		r := Record{ID: i, Due: at, Sent: at, First: at + 10*time.Millisecond, Last: at + 20*time.Millisecond, Prompt: 8, Output: 4}
		if i%3 == 0 {
			r.First, r.Last, r.Output, r.Outcome, r.Detail = -1, at+time.Millisecond, 0, HTTPStatus, say(i)
		}
		records = append(records, r)
	}
	window := time.Duration(n) * 100 * time.Millisecond
	slo := SLO{Errors: 0.01, Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: time.Second}}}
	return Reduce(Trial{Rate: 10, Window: window, Objective: slo}, Observation{Records: records, End: window + time.Second})
}

// TestFailuresBind: if requests are refused and the others are fast, the failures decide, and the
// report says what they were.
func TestFailuresBind(t *testing.T) {
	m := refusing(300, func(int) string { return "429: slow down" })
	if m.Verdict.State != Missed || m.Verdict.Binding != ErrorsBound {
		t.Errorf("verdict %+v, want missed by errors", *m.Verdict)
	}
	if !slices.Contains(m.Warnings.Texts(), "100 requests ended with http status: 429: slow down") {
		t.Errorf("warnings %q do not say what was answered", m.Warnings)
	}
}

// TestComplaints: the most frequent come first, few are reported, none twice.
func TestComplaints(t *testing.T) {
	words := []string{"a", "b", "b", "c", "c", "c", "d", "e", "e", "e"}
	m := refusing(300, func(i int) string { return words[i/3%len(words)] })
	var told []string
	for _, w := range m.Warnings.Texts() {
		if strings.Contains(w, "ended with") || strings.Contains(w, "other kinds") {
			told = append(told, w)
		}
	}
	want := []string{"30 requests ended with http status: c", "30 requests ended with http status: e",
		"20 requests ended with http status: b", "2 other kinds of failure are in the records of the requests"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := m.Complaint(); got != "100 requests ended with http status, such as c" {
		t.Errorf("in short %q", got)
	}
}

// A trial whose conversations are still starting meets the objective at less than the offered rate,
// and so not at that rate.
func TestConversationsThatAreStillStarting(t *testing.T) {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	w := &workload.Workload{Arrivals: workload.Poisson, Turns: 10, Think: 10 * time.Second, Shapes: []workload.Shape{{Prompt: one, Output: one}}}
	run := func(warmup time.Duration) Measurement {
		trial := Trial{Workload: w, Rate: 100, Warmup: warmup, Window: 60 * time.Second, Seed: 1,
			Objective: SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: time.Second}}, Errors: -1}}
		var records []Record
		for _, r := range trial.Schedule() {
			end := r.Due + 100*time.Millisecond
			records = append(records, Record{ID: r.ID, Due: r.Due, Sent: r.Due, First: end, Last: end, Prompt: 1, Output: 1, Asked: 1})
		}
		return Reduce(trial, Observation{Records: records, End: warmup + 61*time.Second})
	}
	early, late := run(time.Second), run(100*time.Second)
	if said := early.Warnings.String(); early.Verdict.State != Unsure || !strings.Contains(said, "still starting") || !strings.Contains(said, "100 offered") {
		t.Errorf("without warm-up: %v, %s", early.Verdict.State, said)
	}
	if said := late.Warnings.String(); late.Verdict.State != Met || strings.Contains(said, "offered") {
		t.Errorf("behind the course of a conversation: %v, %s", late.Verdict.State, said)
	}
}
