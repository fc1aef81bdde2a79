package measure

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/wire"
)

var jointLimits = Limits{TTFT: 500 * ms, TPOT: 50 * ms, E2E: 10 * time.Second}

func TestGoodputIsDecidedByAllLimits(t *testing.T) {
	b := Bound{Metric: Goodput, Quantile: 0.95, Limits: jointLimits}
	done := func(ttft, tpot time.Duration, tokens int) *Record {
		return &Record{First: ttft, Last: ttft + tpot*time.Duration(tokens-1), Output: tokens, Asked: tokens, Outcome: OK}
	}
	for _, c := range []struct {
		name          string
		r             *Record
		known, beyond bool
	}{
		{"within all", done(500*ms, 50*ms, 100), true, false},
		{"late first token", done(501*ms, 10*ms, 10), true, true},
		{"slow tokens", done(100*ms, 51*ms, 10), true, true},
		{"long in all", done(500*ms, 50*ms, 192), true, true},
		{"one token, which has no time per token", done(100*ms, 0, 1), true, false},
		{"one late token", done(600*ms, 0, 1), true, true},
		{"failed", &Record{First: Never, Last: Never, Outcome: Timeout}, true, true},
		{"young, no token", flying(400*ms, -1), false, false},
		{"old, no token", flying(600*ms, -1), true, true},
		{"first token in time, tokens may still be", flying(2*time.Second, 1900*ms), false, false},
		{"first token late", flying(2*time.Second, 1400*ms), true, true},
		{"100 tokens can no longer come in time", flying(5500*ms, 5001*ms), true, true},
	} {
		if known, beyond := b.Decide(c.r, atEnd); known != c.known || beyond != c.beyond {
			t.Errorf("%s: known %v, beyond %v, want %v, %v", c.name, known, beyond, c.known, c.beyond)
		}
	}
}

// spread is an open loop whose requests break one limit or the other, none or both, at random.
func spread(n int, late, slow float64, seed uint64) (Trial, Observation) {
	rng := rand.New(rand.NewPCG(seed, 1))
	t, o := even(n, func(int) time.Duration { return 100 * ms })
	for i := range o.Records {
		r := &o.Records[i]
		if rng.Float64() < late {
			r.First = r.Due + 600*ms
		}
		r.Last = r.First + 9*20*ms
		if rng.Float64() < slow {
			r.Last = r.First + 9*60*ms
		}
	}
	return t, o
}

// A bound on goodput counts each request once, however many limits it breaks; with one limit it is
// the same as the bound on that quantile.
func TestGoodputCounts(t *testing.T) {
	trial, o := spread(4000, 0.015, 0.015, 1)
	trial.Objective = SLO{Errors: -1, Bounds: []Bound{
		{Metric: TTFT, Quantile: 0.95, Limit: 500 * ms},
		{Metric: TPOT, Quantile: 0.95, Limit: 50 * ms},
		{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms, TPOT: 50 * ms}},
		{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms}},
	}}
	m := Reduce(trial, o)
	either := 0
	for _, r := range o.Records[10:4010] {
		if r.First-r.Due > 500*ms || r.Last-r.First > 9*50*ms {
			either++
		}
	}
	late, slow, both, alone := m.Counts[0], m.Counts[1], m.Counts[2], m.Counts[3]
	if both.N != 4000 || both.K != either || both.K >= late.K+slow.K || both.K <= max(late.K, slow.K) {
		t.Errorf("%d of %d break a limit, want %d; %d are late and %d slow", both.K, both.N, either, late.K, slow.K)
	}
	alone.Bound = late.Bound
	if alone != late {
		t.Errorf("with one limit %+v, want that of the quantile %+v", alone, late)
	}
	if both.Bound != "goodput" || m.Verdict.State != Met {
		t.Errorf("%+v: %+v, want met", both, m.Verdict)
	}
	if want := float64(4000-either) / 4000; m.Goodput != want {
		t.Errorf("goodput %v/s, want %v", m.Goodput, want)
	}
}

// Each limit may be met by enough requests, but not both together.
func TestGoodputIsMissedWhereEachLimitIsMet(t *testing.T) {
	trial, o := spread(8000, 0.035, 0.035, 2)
	trial.Objective = SLO{Errors: -1, Bounds: []Bound{
		{Metric: TTFT, Quantile: 0.95, Limit: 500 * ms},
		{Metric: TPOT, Quantile: 0.95, Limit: 50 * ms},
		{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms, TPOT: 50 * ms}},
	}}
	m := Reduce(trial, o)
	if v := m.Verdict; v.Binding != "goodput" || v.State == Met || v.Slack >= 0 {
		t.Errorf("%+v %+v", v, m.Counts)
	}
	if m.Counts[0].Value > 0.05 || m.Counts[1].Value > 0.05 || m.Counts[2].Value < 0.06 {
		t.Errorf("%+v", m.Counts)
	}
}

func TestGoodputEndsAHopelessTrial(t *testing.T) {
	trial, o := spread(4000, 0.4, 0.4, 3)
	trial.Objective = SLO{Errors: -1, Bounds: []Bound{{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms, TPOT: 50 * ms}}}}
	if why := Hopeless(&trial, o.Records, 3010*time.Second); !strings.HasPrefix(why.Text, "goodput is missed") {
		t.Errorf("goes on: %q", why)
	}
	trial, o = spread(4000, 0.01, 0.01, 3)
	trial.Objective = SLO{Errors: -1, Bounds: []Bound{{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms, TPOT: 50 * ms}}}}
	if why := Hopeless(&trial, o.Records, 3010*time.Second); why.Text != "" {
		t.Errorf("ends: %q", why)
	}
}

func TestGoodputInFiles(t *testing.T) {
	slo := SLO{Errors: 0.001, Bounds: []Bound{
		{Metric: TTFT, Quantile: 0.99, Limit: time.Second},
		{Metric: Goodput, Quantile: 0.95, Limits: Limits{TTFT: 500 * ms, E2E: 10 * time.Second}},
	}}
	data, err := wire.Marshal(slo)
	if want := `{"ttft_ms":{"p99":1000},"errors":0.001,"goodput":{"share":0.95,"ttft_ms":500,"e2e_ms":10000}}`; err != nil || string(data) != want {
		t.Fatalf("%s, %v, want %s", data, err, want)
	}
	var back SLO
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, slo) {
		t.Errorf("reads back as %+v, %v", back, err)
	}
	for _, bad := range []string{`{"goodput":{"share":1,"ttft_ms":5}}`, `{"goodput":{"ttft_ms":5}}`, `{"goodput":{"share":0.9}}`, `{"goodput":{"share":0.9,"tpot_ms":-5}}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is read as %+v", bad, back)
		}
	}
	if got := slo.Metrics(); !slices.Equal(got, []Metric{TTFT, E2E}) || slo.tightest(false) != 500*ms {
		t.Errorf("metrics %v, tightest %v", got, slo.tightest(false))
	}
	if h := slo.Horizon(100); h != 10*time.Second {
		t.Errorf("horizon %v", h)
	}
}

// A client may be late by a hundredth of the tightest latency that includes the delay; limits per
// token allow a quarter of theirs.
func TestClientLag(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		bounds []Bound
		want   time.Duration
	}{
		{[]Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}, {Metric: TPOT, Quantile: 0.99, Limit: 40 * ms}}, 5 * ms},
		{[]Bound{{Metric: TTFT, Quantile: 0.99, Limit: 20 * ms}}, ms},
		{[]Bound{{Metric: TPOT, Quantile: 0.99, Limit: 40 * ms}}, 10 * ms},
		{[]Bound{{Metric: Goodput, Quantile: 0.9, Limits: Limits{TPOT: 20 * ms}}}, 5 * ms},
		{nil, ms},
	} {
		if got := (SLO{Bounds: c.bounds}).ClientLag(); got != c.want {
			t.Errorf("%v: %v, want %v", c.bounds, got, c.want)
		}
	}
}
