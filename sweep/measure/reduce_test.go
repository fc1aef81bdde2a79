package measure

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/workload"
)

const ms = time.Millisecond

// even is an open loop of n requests a second apart from second 10 on, request i
// with its first token after first(i) and ten tokens 20 ms apart.
func even(n int, first func(i int) time.Duration) (Trial, Observation) {
	t := Trial{Rate: 1, Warmup: 10 * time.Second, Window: time.Duration(n) * time.Second, Cooldown: 10 * time.Second}
	o := Observation{End: t.Warmup + t.Window + t.Cooldown}
	for i := range n + 20 {
		due := time.Duration(i) * time.Second
		f := due + first(i-10)
		o.Records = append(o.Records, Record{ID: i, Due: due, Sent: due + 100*time.Microsecond, First: f, Last: f + 180*ms, Prompt: 100, Output: 10, Asked: 10, Outcome: OK})
	}
	return t, o
}

func TestCohortIsChosenByArrival(t *testing.T) {
	// One value per request: 1 ms to 2000 ms, shuffled; others outside the window.
	trial, o := even(2000, func(i int) time.Duration {
		if i < 0 || i >= 2000 {
			return 9 * time.Second
		}
		return time.Duration(1+i*7%2000) * ms
	})
	m := Reduce(trial, o)
	want := Summary{Mean: 1000500 * time.Microsecond, P50: 1000 * ms, P90: 1800 * ms, P95: 1900 * ms, P99: 1980 * ms, P999: Unresolved, N: 2000}
	got := m.TTFT
	got.Within = want.Within
	if got != want {
		t.Errorf("TTFT %+v, want %+v", got, want)
	}
	if m.TPOT.Mean != 20*ms || m.TPOT.P99 != 20*ms || m.E2E.P50 != 1180*ms || m.SendLag.P50 != 100*time.Microsecond {
		t.Errorf("TPOT %v, E2E %v, send lag %v", m.TPOT.Mean, m.E2E.P50, m.SendLag.P50)
	}
	if m.Requests != 2000 || m.Failed != 0 || m.Duration != 2000*time.Second || !m.Valid || m.Verdict != nil || !math.IsNaN(m.Goodput) {
		t.Errorf("%d requests, %d failed, %v, valid %v, verdict %v: %v", m.Requests, m.Failed, m.Duration, m.Valid, m.Verdict, m.Warnings)
	}
	if m.Sent != 1 || math.Abs(m.Achieved-1) > 0.01 || math.Abs(m.PromptTokens-100) > 1 || math.Abs(m.OutputTokens-10) > 0.1 {
		t.Errorf("throughput %+v", m.Throughput)
	}
	if !slices.Contains(m.Warnings.Texts(), "2000 values do not resolve ttft.p99.9, tpot.p99.9, e2e.p99.9") {
		t.Errorf("warnings %q", m.Warnings)
	}
}

func TestResolution(t *testing.T) {
	constant := func(int) time.Duration { return 50 * ms }
	for _, c := range []struct {
		n, rows, slots int
		p99            bool
	}{{1199, 0, 0, false}, {1200, 0, 0, true}, {99, 99, 0, false}, {100, 100, 0, true}, {100, 1000, 0, false}, {100, 1000, 4, false}, {100, 100, 4, true}} {
		trial, o := even(c.n, constant)
		trial.Warmup, trial.Cooldown = 0, 0
		o.Records = o.Records[:c.n]
		if c.rows > 0 {
			trial.Rate, trial.Window, trial.Concurrency = 0, 0, c.slots
			trial.Workload = &workload.Workload{Arrivals: workload.Trace, Replay: make([]workload.TraceRow, c.rows)}
		}
		if m := Reduce(trial, o); (m.TTFT.P99 != Unresolved) != c.p99 || m.Requests != c.n {
			t.Errorf("%d requests of a trace of %d rows, %d slots: p99 %v of %d", c.n, c.rows, c.slots, m.TTFT.P99, m.Requests)
		}
	}
}

func TestReplayedTraceDecidesByPlainShare(t *testing.T) {
	for _, c := range []struct {
		beyond int
		want   State
	}{{0, Met}, {3, Met}, {4, Missed}} {
		trial, o := even(300, func(i int) time.Duration {
			if i >= 0 && i < c.beyond {
				return 600 * ms
			}
			return 100 * ms
		})
		trial.Rate, trial.Warmup, trial.Cooldown, trial.Window = 0, 0, 0, 0
		o.Records = o.Records[10:310]
		trial.Workload = &workload.Workload{Arrivals: workload.Trace, Replay: make([]workload.TraceRow, 300)}
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.001}
		if m := Reduce(trial, o); m.Verdict.State != c.want {
			t.Errorf("%d of 300 beyond: %v, %v %v", c.beyond, m.Verdict.State, m.Counts, m.Warnings)
		}
	}
}

// atEnd is when the requests of flying are looked at.
const atEnd = 100 * time.Second

// flying is a request in flight of an age and with a time since its first token, which it has not
// seen if that is below 0.
func flying(age, sinceFirst time.Duration) *Record {
	r := &Record{Due: atEnd - age, Sent: atEnd - age, First: Never, Last: Never, Asked: 101}
	if sinceFirst >= 0 {
		r.First = atEnd - sinceFirst
	}
	return r
}

func TestDecideKnowsAges(t *testing.T) {
	ttft, e2e, tpot := Bound{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}, Bound{Metric: E2E, Quantile: 0.99, Limit: 10 * time.Second}, Bound{Metric: TPOT, Quantile: 0.99, Limit: 50 * ms}
	for _, c := range []struct {
		name          string
		b             Bound
		r             *Record
		known, beyond bool
	}{
		{"young, no token", ttft, flying(499*ms, -1), false, false},
		{"old, no token", ttft, flying(501*ms, -1), true, true},
		{"in flight with a late token", ttft, flying(9*time.Second, time.Second), true, true},
		{"in flight with a token in time", ttft, flying(600*ms, 200*ms), true, false},
		{"young end", e2e, flying(9*time.Second, time.Second), false, false},
		{"old end", e2e, flying(11*time.Second, time.Second), true, true},
		{"slow tokens", tpot, flying(9*time.Second, 5001*ms), true, true},
		{"tokens may still be fast", tpot, flying(9*time.Second, 4999*ms), false, false},
		{"no token yet", tpot, flying(time.Hour, -1), false, false},
		{"refused", tpot, &Record{Outcome: Refused, First: Never, Last: Never}, true, true},
		{"timed out behind a fast first token", ttft, &Record{Outcome: Timeout, First: ms, Last: Never}, true, true},
		{"one token has no time per token", tpot, &Record{Outcome: OK, First: ms, Last: ms, Output: 1}, false, false},
	} {
		if known, beyond := c.b.Decide(c.r, atEnd); known != c.known || beyond != c.beyond {
			t.Errorf("%s: known %v, beyond %v", c.name, known, beyond)
		}
	}
}

func TestFailuresMissEveryBound(t *testing.T) {
	trial, o := even(3000, func(int) time.Duration { return 50 * ms })
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}, {Metric: E2E, Quantile: 0.9, Limit: time.Second}, {Metric: TPOT, Quantile: 0, Limit: 50 * ms}}, Errors: -1}
	for i := 100; i < 1000; i++ {
		r := &o.Records[i]
		r.Outcome, r.First, r.Last, r.Output = Refused, Never, Never, 0
	}
	m := Reduce(trial, o)
	if m.Verdict.State != Missed || m.Failed != 900 || m.Failures["refused"] != 900 || m.TTFT.N != 2100 {
		t.Errorf("verdict %+v, tally %+v, n %d", m.Verdict, m.Tally, m.TTFT.N)
	}
	if c, _ := m.Count("ttft.p99"); c.K != 900 || c.N != 3000 {
		t.Errorf("count %+v", c)
	}
	if math.Abs(m.Goodput-0.7) > 1e-9 {
		t.Errorf("goodput %g, want 0.7", m.Goodput)
	}
	// Bounded errors: the mean is over the rest, and the errors decide.
	trial.Objective.Errors = 0.001
	if m = Reduce(trial, o); m.Verdict.State != Missed || m.Verdict.Slack != -1 {
		t.Errorf("verdict %+v", m.Verdict)
	}
	trial.Objective = SLO{Bounds: []Bound{{Metric: TPOT, Quantile: 0, Limit: 50 * ms}}, Errors: -1}
	if m = Reduce(trial, o); m.Verdict.State != Unsure {
		t.Errorf("a mean over survivors is %v", m.Verdict.State)
	}
}

// Whether the server is at fault is the same for a request as for a count.
func TestBrokenIsOneWord(t *testing.T) {
	for o := Timeout; o <= Rejected; o++ {
		r := Record{Outcome: o}
		count := tally([]*Record{&r})
		if count.Refuses() != r.Broken() {
			t.Errorf("%v: a count of it says %v, the request %v", o, count.Refuses(), r.Broken())
		}
	}
}

func TestMeanBounds(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		want  State
	}{{101 * ms, Unsure}, {200 * ms, Met}, {60 * ms, Missed}} {
		trial, o := even(400, func(i int) time.Duration { return time.Duration(50+(i+10)*37%101) * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0, Limit: c.limit}}, Errors: 0.01}
		if m := Reduce(trial, o); m.Verdict.State != c.want || m.Verdict.Binding != "ttft.mean" {
			t.Errorf("mean 100 ms, limit %v: %+v, %+v", c.limit, m.Verdict, m.Counts[0])
		}
	}
}

func TestGapBounds(t *testing.T) {
	trial, o := even(4000, func(int) time.Duration { return 50 * ms })
	trial.Objective = SLO{Bounds: []Bound{{Metric: ITL, Quantile: 0.99, Limit: 30 * ms}, {Metric: ITL, Quantile: 0, Limit: 30 * ms}}, Errors: 0.01}
	judge := func(slow int64) Measurement {
		o.Gaps = NewGaps(0, 0)
		_ = o.Gaps.RecordValues(20000, 36000-slow)
		_ = o.Gaps.RecordValues(100000, slow)
		return Reduce(trial, o)
	}
	if m := judge(10); m.Verdict.State != Met || m.ITL.N != 36000 {
		t.Errorf("10 slow gaps of 36,000: %+v %v", m.Verdict, m.Counts)
	}
	if m := judge(3600); m.Verdict.State != Missed || m.Verdict.Binding != "itl.p99" {
		t.Errorf("3,600 slow gaps of 36,000: %+v %v", m.Verdict, m.Counts)
	}
	if m := judge(360); m.Verdict.State != Unsure {
		t.Errorf("360 slow gaps of 36,000: %+v %v", m.Verdict, m.Counts)
	}
}

func TestErrorsBound(t *testing.T) {
	for _, c := range []struct {
		failed int
		limit  float64
		want   State
	}{{0, 0.001, Met}, {1, 0.001, Unsure}, {12, 0.001, Missed}, {12, 0.01, Met}, {12, -1, Met}, {0, 0.0001, Met}, {0, 0, Met}, {1, 0, Missed}} {
		trial, o := even(3000, func(int) time.Duration { return 50 * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: 500 * ms}}, Errors: c.limit}
		for i := range c.failed {
			r := &o.Records[100+i*200]
			r.Outcome, r.First, r.Last = HTTPStatus, Never, Never
		}
		if m := Reduce(trial, o); m.Verdict.State != c.want {
			t.Errorf("%d of 3,000 failed, %g allowed: %v, %+v", c.failed, c.limit, m.Verdict.State, m.Counts)
		}
	}
}

// With no failure among fewer requests than would prove the allowed share, the latencies decide,
// and a note says what is not proven.
func TestNoFailureIsMet(t *testing.T) {
	trial, o := even(708, func(int) time.Duration { return 50 * ms })
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: 500 * ms}}, Errors: 0.001}
	m := Reduce(trial, o)
	if m.Verdict.State != Met || m.Warnings.Of(note.ErrorsUnproven) == nil {
		t.Errorf("0 of 708 failed: %+v, %q", m.Verdict, m.Warnings)
	}
}

func TestInvalidIsNeverMet(t *testing.T) {
	base := func() (Trial, Observation) {
		trial, o := even(3000, func(int) time.Duration { return 50 * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.01}
		return trial, o
	}
	if trial, o := base(); Reduce(trial, o).Verdict.State != Met {
		t.Fatalf("the sound trial is not met: %q", Reduce(trial, o).Warnings)
	}
	for name, spoil := range map[string]func(*Trial, *Observation){
		"doubt":   func(_ *Trial, o *Observation) { o.Doubts = note.Notes{note.Text("the client was throttled")} },
		"dropped": func(_ *Trial, o *Observation) { o.Records[50].Outcome = Dropped },
		"unsent": func(_ *Trial, o *Observation) {
			r := &o.Records[50]
			r.Outcome, r.Sent, r.First = InFlight, Never, Never
		},
		"one late":    func(_ *Trial, o *Observation) { o.Records[50].Sent += 200 * ms },
		"all late":    func(t *Trial, o *Observation) { t.Objective.Bounds[0].Limit = 40 * ms; late(o.Records, 6*ms) },
		"too few":     func(t *Trial, _ *Observation) { t.Rate, t.Workload = 2, &workload.Workload{Arrivals: workload.Poisson} },
		"no requests": func(_ *Trial, o *Observation) { o.Records = nil },
		"imbalance":   func(_ *Trial, o *Observation) { o.End = 2 * time.Hour; stall(o.Records) },
	} {
		trial, o := base()
		spoil(&trial, &o)
		m := Reduce(trial, o)
		if m.Valid || m.Verdict.State == Met || len(m.Warnings) == 0 {
			t.Errorf("%s: valid %v, verdict %v, warnings %q", name, m.Valid, m.Verdict.State, m.Warnings)
		}
	}
}

func late(records []Record, by time.Duration) {
	for i := range records {
		records[i].Sent += by
	}
}

// stall holds the ends of the window's last requests back until long after it, so that fewer were
// in flight in it than their latencies would explain.
func stall(records []Record) {
	for i := range records[:len(records)-20] {
		r := &records[i]
		r.Last = r.First + 20*time.Second
		if r.Due > 2900*time.Second {
			r.Last = r.First + 900*time.Second
		}
	}
}

func TestOverloadedIsNeverMet(t *testing.T) {
	trial, o := even(3000, func(int) time.Duration { return 50 * ms })
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.01}
	for i := range o.Records {
		o.Records[i].Last += time.Duration(i) * 100 * ms
	}
	if m := Reduce(trial, o); !m.Overloaded || m.Verdict.State == Met {
		t.Errorf("overloaded %v, verdict %v", m.Overloaded, m.Verdict.State)
	}
}

// TestGoodputIsPartOfWhatWasDone: requests that a slow server has not completed are no goodput, nor
// are those completed too late.
func TestGoodputIsPartOfWhatWasDone(t *testing.T) {
	trial, o := even(100, func(i int) time.Duration { return time.Duration(max(i, 0)) * 500 * ms })
	// A first token every 1.5 s: 67 completed in the window. The first 41 wait for at most 20 s,
	// the first 81 for at most 40 s, of which 14 end after the window.
	for limit, want := range map[time.Duration]float64{20 * time.Second: 0.41, 40 * time.Second: 0.67} {
		trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.9, Limit: limit}}}
		m := Reduce(trial, o)
		if math.Abs(m.Achieved-0.67) > 0.015 || math.Abs(m.Goodput-want) > 0.015 || m.Sent != 1 {
			t.Errorf("within %v: %v sent, %v achieved, %v of them good", limit, m.Sent, m.Achieved, m.Goodput)
		}
	}
}

func TestAbortedTrialKeepsItsShorterWindow(t *testing.T) {
	trial, o := even(3000, func(i int) time.Duration { return 50*ms + time.Duration(max(i, 0))*600*ms })
	o.End, o.Aborted = 110*time.Second, note.Because(note.Overloaded)
	seen := slices.DeleteFunc(slices.Clone(o.Records), func(r Record) bool { return r.Due > o.End })
	for i := range seen {
		if r := &seen[i]; r.First > o.End {
			r.First, r.Last, r.Outcome, r.Output = Never, Never, InFlight, 0
		}
	}
	o.Records = seen
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.01}
	m := Reduce(trial, o)
	if m.Duration != 100*time.Second || m.Requests != 100 || !m.Overloaded || !m.Valid || m.Verdict.State != Missed {
		t.Errorf("%v, %d requests, overloaded %v, valid %v, %+v: %q", m.Duration, m.Requests, m.Overloaded, m.Valid, m.Verdict, m.Warnings)
	}
	if c, _ := m.Count("ttft.p99"); c.N != 100 || c.K != 99 {
		t.Errorf("count %+v, want 99 of 100: one came in time", c)
	}
}

func TestClosedLoopCountsAll(t *testing.T) {
	trial, o := even(100, func(int) time.Duration { return 50 * ms })
	trial.Rate, trial.Concurrency, trial.Requests = 0, 4, 120
	trial.Warmup, trial.Window, trial.Cooldown = 0, 0, 0
	m := Reduce(trial, o)
	if m.Requests != 120 || m.Duration != 119*time.Second+230*ms || math.Abs(m.Achieved*m.Duration.Seconds()-120) > 1e-6 || math.Abs(m.OutputTokens*m.Duration.Seconds()-1200) > 1e-6 {
		t.Errorf("%d requests in %v, %g/s, %g tokens/s", m.Requests, m.Duration, m.Achieved, m.OutputTokens)
	}
}

func TestClassesOfAMix(t *testing.T) {
	trial, o := even(2000, func(i int) time.Duration { return time.Duration(50+100*((i+10)%2)) * ms })
	trial.Workload = &workload.Workload{Class: "mix", Arrivals: workload.Constant, Shapes: []workload.Shape{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}}
	for i := range o.Records {
		o.Records[i].Class = i % 2
	}
	m := Reduce(trial, o)
	if a, b := m.Classes["a"], m.Classes["b"]; a.Requests != 1000 || a.TTFT.P90 != 50*ms || b.TTFT.Mean != 150*ms || b.TTFT.P99 != Unresolved {
		t.Errorf("classes %+v", m.Classes)
	}
}

func TestUnsureSaysHowMuchWouldDecide(t *testing.T) {
	trial, o := even(3000, func(i int) time.Duration { return time.Duration(50+(i+10)*37%101) * ms })
	for i := range 18 {
		o.Records[50+i*150].First += 500 * ms
		o.Records[50+i*150].Last += 500 * ms
	}
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: 0.01}
	m := Reduce(trial, o)
	if m.Verdict.State != Unsure || !strings.Contains(fmt.Sprint(m.Warnings), "requests would decide") {
		t.Errorf("%+v, %+v, %q", m.Verdict, m.Counts, m.Warnings)
	}
}

func TestSLORoundTrip(t *testing.T) {
	s := SLO{Bounds: []Bound{{Metric: E2E, Quantile: 0.999, Limit: 30 * time.Second}, {Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}, {Metric: TTFT, Quantile: 0, Limit: 100 * ms}, {Metric: TPOT, Quantile: 0.95, Limit: 12345 * time.Microsecond}}, Errors: -1}
	b, err := wire.Marshal(s)
	if want := `{"ttft_ms":{"mean":100,"p99":500},"tpot_ms":{"p95":12.345},"e2e_ms":{"p99.9":30000},"errors":null}`; err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	var back SLO
	must.OK(back.UnmarshalJSON(b))
	if s.Sort(); !reflect.DeepEqual(s, back) {
		t.Errorf("%+v read as %+v", s, back)
	}
	for _, bad := range []string{`{"ttft_ms":{"p98":1}}`, `{"ttft_ms":{"p99":-1}}`, `{"ttft_ms":7}`} {
		if err := back.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestSummaryOfCensored(t *testing.T) {
	// A hundred of 1,250 have not ended: the median is known, p99 is not, and neither is the mean.
	trial, o := even(1250, func(i int) time.Duration { return time.Duration(1+(i+10)*37%1000) * ms })
	for i := 1160; i < 1260; i++ {
		o.Records[i].Outcome, o.Records[i].Last = InFlight, Never
	}
	m := Reduce(trial, o)
	if m.E2E.P50 == Unresolved || m.E2E.P99 != Unresolved || m.E2E.Mean != Unresolved || m.TTFT.P99 == Unresolved {
		t.Errorf("E2E %+v", m.E2E)
	}
}

// TestClumpsOfGaps: long gaps that come alone count one by one, but the tokens that a failed
// request owed count as one. If the parts of the window cannot tell gaps from the limit, they say
// nothing of clumps, nor do parts that are shorter than requests.
func TestClumpsOfGaps(t *testing.T) {
	judge := func(slow, failed int) Count {
		trial, o := even(4000, func(int) time.Duration { return 50 * ms })
		trial.Objective = SLO{Bounds: []Bound{{Metric: ITL, Quantile: 0.99, Limit: 50 * ms}}, Errors: -1}
		o.Gaps = NewGaps(trial.Warmup, trial.Warmup+trial.Window)
		for i := range 100_000 {
			gap := 20 * ms
			if i*7919%100_000 < slow {
				gap = 100 * ms
			}
			o.Gaps.Add(trial.Warmup+trial.Window*time.Duration(i)/100_000, gap, 1)
		}
		for i := range failed {
			r := &o.Records[100+i*200]
			r.Outcome, r.First, r.Last, r.Output, r.Asked = HTTPStatus, Never, Never, 0, 1000
		}
		return Reduce(trial, o).Counts[0]
	}
	if n := judge(800, 0); n.High > 0.01 || n.Cluster*n.Phi > 2 {
		t.Errorf("800 long gaps of 100,000, far apart: %+v", n)
	}
	if n := judge(100, 2); n.Low > 0.01 {
		t.Errorf("two requests that failed owe 1000 tokens each: %+v", n)
	}
	g := NewGaps(0, 1000*time.Second)
	for i := range 100_000 {
		gap := 20 * ms
		switch {
		case i < 1200:
			gap = 50_100 * time.Microsecond
		case i%3000 == 0:
			gap = 100 * ms
		}
		g.Add(time.Duration(i)*10*ms, gap, 1)
	}
	if clump := g.clump(50*ms, 51*ms, 0); !math.IsNaN(clump) {
		t.Errorf("1,200 gaps in a row just beyond the limit are in clumps of %g", clump)
	}
	if clump := g.clump(30*ms, 40*ms, 0); clump < 1000 {
		t.Errorf("1,200 gaps in a row beyond the limit are in clumps of %g", clump)
	}
	if clump := g.clump(30*ms, 40*ms, time.Minute); !math.IsNaN(clump) {
		t.Errorf("clumps of %g in parts that are shorter than a request", clump)
	}
}
