package measure

import (
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/wire"
	"planner/sweep/workload"
)

// TestClassesAreHeldToTheirOwnLimits is worked by hand: of 4,000 requests every fourth is of the
// class batch and takes two seconds to its first token. The others take 100 ms, except one in every
// hundred requests, which takes 700 ms.
func TestClassesAreHeldToTheirOwnLimits(t *testing.T) {
	const n = 4000
	first := func(i int) time.Duration {
		switch {
		case i%4 == 0:
			return 2 * time.Second
		case i%100 == 1:
			return 700 * ms
		}
		return 100 * ms
	}
	trial, o := even(n, first)
	trial.Workload = &workload.Workload{Class: "mix", Shapes: []workload.Shape{{Name: "chat", Weight: 3}, {Name: "batch", Weight: 1}}}
	for i := range o.Records {
		if (i-10)%4 == 0 {
			o.Records[i].Class = 1
		}
	}
	limit := func(class string, q float64, d time.Duration) Bound {
		return Bound{Metric: TTFT, Class: class, Quantile: q, Limit: d}
	}
	trial.Objective = SLO{Errors: -1, Bounds: []Bound{
		limit("", 0.50, time.Second), limit("batch", 0.90, 3*time.Second), limit("chat", 0.90, 500*ms), limit("chat", 0.50, 50*ms),
	}}
	trial.Objective.Sort()
	m := Reduce(trial, o)
	for _, want := range []Count{
		{Bound: "ttft.p50", N: n, K: n / 4},         // all requests: the batch is beyond a second
		{Bound: "ttft.p90 of batch", N: n / 4},      // none of a thousand beyond three seconds
		{Bound: "ttft.p90 of chat", N: 3000, K: 40}, // 4,000 / 100
		{Bound: "ttft.p50 of chat", N: 3000, K: 3000},
	} {
		if got, ok := m.Count(want.Bound); !ok || got.N != want.N || got.K != want.K {
			t.Errorf("%s: %d of %d, want %d of %d", want.Bound, got.K, got.N, want.K, want.N)
		}
	}
	if v := m.Verdict; v.State != Missed || v.Binding != "ttft.p50 of chat" {
		t.Errorf("verdict %v by %s", v.State, v.Binding)
	}
	if sum := m.Classes["chat"].Requests + m.Classes["batch"].Requests; sum != m.Requests {
		t.Errorf("%d requests in classes, %d in all", sum, m.Requests)
	}
	batch := trial.Objective.Bounds[1]
	if got := m.Bounded(batch); got != 2*time.Second {
		t.Errorf("%s is %v, want 2s", batch, got)
	}
	if !trial.Bounds(batch, &Record{Class: 1}) || trial.Bounds(batch, &Record{}) {
		t.Error("a bound on the batch binds other requests")
	}
	if goodput := m.Goodput * float64(n); goodput != 0 {
		t.Errorf("%g requests met limits that no chat meets", goodput)
	}
}

func TestObjectiveOfClassesRoundTrip(t *testing.T) {
	of := SLO{Errors: 0.01, Bounds: []Bound{
		{Metric: ITL, Quantile: 0.99, Limit: 80 * ms},
		{Metric: TTFT, Class: "chat", Quantile: 0.99, Limit: 500 * ms},
		{Metric: Goodput, Class: "rag and more", Quantile: 0.95, Limits: Limits{E2E: 20 * time.Second}},
	}}
	text := must.Get(wire.Marshal(of))
	const want = `{"itl_ms":{"p99":80},"errors":0.01,"classes":{"chat":{"ttft_ms":{"p99":500}},"rag and more":{"goodput":{"share":0.95,"e2e_ms":20000}}}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var back SLO
	must.OK(wire.Unmarshal(text, &back))
	again, err := wire.Marshal(back)
	if err != nil || string(again) != want {
		t.Errorf("read back: %s, %v", again, err)
	}
}
