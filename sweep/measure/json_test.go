package measure

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/workload"
)

// sample is a small trial of a mix with every kind of ending.
func sample() (Trial, Observation) {
	chat, _ := workload.Class("chat")
	code, _ := workload.Class("code")
	chat.Weight, code.Weight = 3, 1
	t := Trial{
		Number: 7, Knobs: Knobs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, GPUMemoryUtilization: 0.9, PrefixCaching: true, TensorParallel: 4, GPU: "H100 SXM"},
		Workload: &workload.Workload{Class: "mix", Shapes: []workload.Shape{chat, code}, Turns: 1, Arrivals: workload.Poisson, Timeout: 30 * time.Minute, Seed: 3},
		Rate:     20, Warmup: 10 * time.Second, Window: 100 * time.Second, Cooldown: 5 * time.Second, Seed: 11,
		Objective: SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}, {Metric: TPOT, Quantile: 0, Limit: 50 * time.Millisecond}, {Metric: ITL, Quantile: 0.99, Limit: 80 * time.Millisecond}}, Errors: 0.001},
		Why:       "near the posterior median",
	}
	o := Observation{
		End: 115 * time.Second, Gaps: NewGaps(0, 0),
		Server: Server{Engine: Software{"simulated", "0.11.0"}, KVBlocks: new(9000), BlockTokens: new(16), Preemptions: new(0), HitRate: new(0.25), PeakKV: new(0.5), Time: &TimeShares{Weights: 0.5, Fixed: 0.5, Binding: "weights"}},
	}
	for i, q := range t.Schedule() {
		r := Record{ID: q.ID, Class: q.Class, Due: q.Due, Sent: q.Due + 50*time.Microsecond, First: q.Due + time.Duration(60+i%40)*time.Millisecond,
			Prompt: q.Prompt, Output: q.Output, Asked: q.Output, Outcome: OK}
		r.Last = r.First + time.Duration(q.Output-1)*(20*time.Millisecond+time.Duration(i%7)*time.Microsecond)
		switch {
		case i == 400:
			r.Outcome, r.First, r.Last, r.Output, r.Detail = HTTPStatus, Never, Never, 0, "503"
		case r.Last > o.End:
			r.Outcome, r.Last, r.Output = InFlight, Never, 1
		}
		_ = o.Gaps.RecordValues(20000, int64(q.Output))
		o.Records = append(o.Records, r)
	}
	return t, o
}

// TestNothingCame: a trial in whose window requests end but none arrives has a line that reads
// back, without a negative count.
func TestNothingCame(t *testing.T) {
	trial := Trial{Number: 1, Workload: &workload.Workload{Turns: 1}, Rate: 0.1, Warmup: 5 * time.Second, Window: 5 * time.Second,
		Objective: SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: 0.001}}
	m := Reduce(trial, Observation{End: 10 * time.Second, Records: []Record{{Due: 4 * time.Second, Sent: 4 * time.Second,
		First: 5 * time.Second, Last: 6 * time.Second, Prompt: 9, Output: 9, Outcome: OK}}})
	var back Measurement
	if err := json.Unmarshal(must.Get(wire.Marshal(m)), &back); err != nil {
		t.Error(err)
	}
}

func TestMeasurementRoundTrip(t *testing.T) {
	trial, o := sample()
	m := Reduce(trial, o)
	line := must.Get(wire.Marshal(m))
	if again, _ := wire.Marshal(Reduce(trial, o)); !bytes.Equal(line, again) {
		t.Error("the same trial gives other bytes")
	}
	var back Measurement
	must.OK(json.Unmarshal(line, &back))
	back.Trial.Workload = trial.Workload
	if !reflect.DeepEqual(m, back) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", back, m)
	}
	if rewritten, _ := wire.Marshal(back); !bytes.Equal(line, rewritten) {
		t.Errorf("written again:\n%s\nwant:\n%s", rewritten, line)
	}
}

func TestMeasurementKeys(t *testing.T) {
	trial, o := sample()
	line := must.Get(wire.Marshal(Reduce(trial, o)))
	var got map[string]any
	must.OK(json.Unmarshal(line, &got))
	for _, key := range strings.Fields(`knobs workload rate_per_s concurrency achieved_per_s sent_per_s duration_s requests failed
		failures ttft_ms tpot_ms itl_ms e2e_ms prompt_tokens_per_s output_tokens_per_s kv_blocks preemptions prefix_hit_rate
		send_lag_ms verdict valid warnings engine seed counts goodput_per_s warm_up_s overloaded classes time_shares slo trial why`) {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
	if got["concurrency"] != nil {
		t.Errorf("an open loop has concurrency %v", got["concurrency"])
	}
	ttft := got["ttft_ms"].(map[string]any)
	for _, key := range strings.Fields("mean p50 p90 p95 p99 p99.9 n p99_interval") {
		if _, ok := ttft[key]; !ok {
			t.Errorf("ttft_ms has no key %q", key)
		}
	}
	if ttft["p99.9"] != nil {
		t.Errorf("p99.9 of 2,000 requests is %v, want null", ttft["p99.9"])
	}
	if n := got["failures"].(map[string]any)["http_status"]; n != 1.0 {
		t.Errorf("failures: %v", got["failures"])
	}
}

// The lines of a journal that an earlier version wrote (an open and a closed loop, on the simulated
// and on a real engine, of a mix, against goodput, and a rejected set of knobs) come back as they
// were, except for the notes that lines have had since.
func TestJournalOfEarlierVersion(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/journal.jsonl"))
	for line := range bytes.Lines(data) {
		var m Measurement
		must.OK(json.Unmarshal(line, &m))
		again, err := wire.Marshal(m)
		again = regexp.MustCompile(`"notes":\[.*\],"warnings"`).ReplaceAll(again, []byte(`"warnings"`))
		if err != nil || !bytes.Equal(append(again, '\n'), line) {
			t.Errorf("%v\n%s\nwritten again:\n%s", err, line, again)
		}
	}
}

func TestRejectedRoundTrip(t *testing.T) {
	m := Measurement{Trial: Trial{Knobs: Knobs{TensorParallel: 2}}, Rejected: note.Text("does not fit").Reason()}
	line, _ := wire.Marshal(m)
	var back Measurement
	if err := json.Unmarshal(line, &back); err != nil || !reflect.DeepEqual(m, back) {
		t.Errorf("%s read as %+v, %v", line, back, err)
	}
	m.Rejected = note.Reason{Text: "does not fit"} // an earlier version wrote the sentence alone
	if err := json.Unmarshal([]byte(`{"knobs":{"tensor_parallel":2},"rejected":"does not fit"}`), &back); err != nil || !reflect.DeepEqual(m, back) {
		t.Errorf("an older line is read as %+v, %v", back, err)
	}
}

func TestAbortedRoundTrip(t *testing.T) {
	trial, o := sample()
	o.Aborted = note.Because(note.ClearlyMissed, "ttft.p99", 30, 400)
	line, err := wire.Marshal(Reduce(trial, o))
	if err != nil || !bytes.Contains(line, []byte(`"aborted":"ttft.p99 is missed: 30 of the last 400 requests beyond the limit"`)) {
		t.Errorf("%s, %v", line, err)
	}
	var back Measurement
	if err := json.Unmarshal(line, &back); err != nil || !reflect.DeepEqual(back.Aborted, o.Aborted) {
		t.Errorf("read as %+v, %v", back.Aborted, err)
	}
}

func FuzzMeasurement(f *testing.F) {
	trial, o := sample()
	line, _ := wire.Marshal(Reduce(trial, o))
	f.Add(line)
	f.Add([]byte(`{"knobs":{},"rejected":"no"}`))
	f.Add([]byte(`{"slo":{"ttft_ms":{"p99":1e300}},"verdict":{"state":"met"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Measurement
		if json.Unmarshal(b, &m) != nil {
			return
		}
		once, err := wire.Marshal(m)
		if err != nil {
			t.Fatalf("cannot write what was read from %q: %v", b, err)
		}
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("cannot read %s: %v", once, err)
		}
		if twice, _ := wire.Marshal(again); !bytes.Equal(once, twice) {
			t.Fatalf("unstable:\n%s\n%s", once, twice)
		}
	})
}
