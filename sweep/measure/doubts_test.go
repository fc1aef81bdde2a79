package measure

import (
	"math"
	"testing"
	"time"

	"planner/internal/note"
)

// A client that was late excuses lateness of its own size, and nothing else.
func TestClientExcusesOnlyWhatItCan(t *testing.T) {
	late := func(first time.Duration) (Trial, Observation) {
		trial, o := even(3000, func(int) time.Duration { return first })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.001}
		for i := range o.Records {
			o.Records[i].Sent = o.Records[i].Due + 20*ms
		}
		return trial, o
	}
	paused := func(by time.Duration) func(o *Observation) {
		return func(o *Observation) {
			o.Pauses, o.Pause = note.Notes{note.New(note.ClientCollecting, by)}, by
			for i := range o.Records {
				o.Records[i].Sent = o.Records[i].Due
			}
		}
	}
	for _, c := range []struct {
		name  string
		first time.Duration
		spoil func(o *Observation)
		valid bool
		want  State
	}{
		{"far within the limit", 100 * ms, nil, true, Met},
		{"late by less than the client", 540 * ms, nil, false, Unsure},
		{"late by far more than the client", 3900 * ms, nil, true, Missed},
		{"late under another load", 3900 * ms, func(o *Observation) {
			o.OtherLoad, o.Doubts = true, note.Notes{note.New(note.ClientOffWindow, 2000, 3000)}
		}, false, Unsure},
		{"one request later than a fifth of the limit", 100 * ms, func(o *Observation) { o.Records[1500].Sent = o.Records[1500].Due + 101*ms }, false, Unsure},
		{"requests that the client dropped", 100 * ms, func(o *Observation) {
			for i := range 300 {
				r := &o.Records[100+i]
				r.Outcome, r.Sent, r.First, r.Last = Dropped, Never, Never, Never
			}
		}, false, Unsure},
		{"a pause that moves no request over the limit", 100 * ms, paused(30 * ms), true, Met},
		{"a pause that may have", 540 * ms, paused(30 * ms), false, Unsure},
		{"a pause of more than a fifth of the limit", 100 * ms, paused(260 * ms), false, Unsure},
		{"late by far more than a pause", 3900 * ms, paused(260 * ms), false, Missed},
		{"failures of the server", 100 * ms, func(o *Observation) {
			for i := range 300 {
				r := &o.Records[100+i]
				r.Outcome, r.First, r.Last = HTTPStatus, Never, Never
			}
		}, true, Missed},
	} {
		trial, o := late(c.first)
		if c.spoil != nil {
			c.spoil(&o)
		}
		m := Reduce(trial, o)
		if m.Valid != c.valid || m.Verdict.State != c.want {
			t.Errorf("%s: valid %v, %v, want %v and %v: %q", c.name, m.Valid, m.Verdict.State, c.valid, c.want, m.Warnings)
		}
		if o.Pause > 0 && !m.Valid && m.Warnings.Of(note.ClientCollecting) == nil {
			t.Errorf("%s: %q does not say what paused", c.name, m.Warnings)
		}
	}
	// No limit tells how long a pause is harmless.
	trial, o := late(100 * ms)
	trial.Objective = SLO{Errors: 0.001, Throughput: true}
	paused(10 * time.Second)(&o)
	if m := Reduce(trial, o); m.Valid {
		t.Errorf("a pause of 10 s without a limit: valid")
	}
}

// A late client excuses a backlog only as far as it held requests back itself, and only if it sent
// all.
func TestClientExcusesNoBacklog(t *testing.T) {
	for _, c := range []struct {
		name  string
		late  time.Duration
		spoil func(r *Record)
		want  State
	}{
		{"later than a fifth of the limit", 200 * ms, nil, Missed},
		{"as late as the backlog is old", 600 * time.Second, nil, Unsure},
		{"one request dropped", 200 * ms, func(r *Record) { r.Outcome, r.Sent, r.First, r.Last = Dropped, Never, Never, Never }, Unsure},
	} {
		trial, o := even(3000, func(int) time.Duration { return 50 * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.001}
		for i := range o.Records {
			o.Records[i].Last += time.Duration(i) * 300 * ms
		}
		o.Records[1500].Sent = o.Records[1500].Due + c.late
		if c.spoil != nil {
			c.spoil(&o.Records[1600])
		}
		if m := Reduce(trial, o); m.Valid || m.Verdict.State != c.want {
			t.Errorf("%s: valid %v, %v, want %v: %q", c.name, m.Valid, m.Verdict.State, c.want, m.Warnings)
		}
	}
}

// Requests that were sent late make a trial invalid only if a bound on the time per token depends
// on what that may have added.
func TestPauseOfTheClient(t *testing.T) {
	for _, c := range []struct {
		metric Metric
		limit  time.Duration
		valid  bool
	}{{TPOT, 50 * ms, true}, {TPOT, 21 * ms, true}, {TPOT, 19 * ms, false}} {
		trial, o := even(300, func(int) time.Duration { return 100 * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: time.Second}, {Metric: c.metric, Quantile: 0.9, Limit: c.limit}}, Errors: 0.1}
		for i := range 6 {
			o.Records[50*i+20].Sent = o.Records[50*i+20].Due + 30*ms
		}
		if m := Reduce(trial, o); m.Valid != c.valid {
			t.Errorf("%v of %v: valid %v: %q", c.metric, c.limit, m.Valid, m.Warnings)
		}
	}
}

// A bound on goodput is missed for its limits, each raised by what the client adds, as in a bound
// of its own.
func TestClientExcusesInGoodput(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  time.Duration
		limits Limits
		want   State
	}{
		{"first token late by less than the client", 540 * ms, Limits{TTFT: 500 * ms, TPOT: 50 * ms}, Unsure},
		{"first token late by far more", 3900 * ms, Limits{TTFT: 500 * ms, TPOT: 50 * ms}, Missed},
		{"end late by less than the client", 350 * ms, Limits{E2E: 500 * ms}, Unsure},
		{"end late by far more", 3900 * ms, Limits{E2E: 500 * ms}, Missed},
		{"slow between tokens by less than the client, over ten", 100 * ms, Limits{TTFT: 500 * ms, TPOT: 15 * ms}, Unsure},
		{"slow between tokens by far more", 100 * ms, Limits{TTFT: 500 * ms, TPOT: 5 * ms}, Missed},
	} {
		trial, o := even(3000, func(int) time.Duration { return c.first })
		trial.Objective = SLO{Bounds: []Bound{{Metric: Goodput, Quantile: 0.99, Limits: c.limits}}, Errors: 0.001}
		for i := range o.Records {
			o.Records[i].Sent = o.Records[i].Due + 20*ms
		}
		if m := Reduce(trial, o); m.Verdict.State != c.want {
			t.Errorf("%s: %v, want %v", c.name, m.Verdict.State, c.want)
		}
	}
}

// Tokens count whether they come one by one, all at once, or in an answer that is not streamed.
func TestTokensInOnePieceCount(t *testing.T) {
	for name, shape := range map[string]func(r *Record){
		"one by one":   func(*Record) {},
		"in one piece": func(r *Record) { r.Last = r.First },
		"not streamed": func(r *Record) { r.First = Never },
	} {
		trial, o := even(2000, func(int) time.Duration { return 50 * ms })
		for i := range o.Records {
			shape(&o.Records[i])
		}
		m := Reduce(trial, o)
		if math.Abs(m.OutputTokens-10) > 0.01 || math.Abs(m.PromptTokens-100) > 0.1 {
			t.Errorf("%s: %g output and %g prompt tokens/s, want 10 and 100", name, m.OutputTokens, m.PromptTokens)
		}
	}
}
