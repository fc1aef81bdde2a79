package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
)

// liveRun is a search on a real engine: three trials on two starts.
func liveRun() (*Engines, []measure.Measurement) {
	usd := 2.1
	k := measure.Knobs{GPU: "H100 SXM", TensorParallel: 2, MaxNumSeqs: 64}
	start := EngineStart{Engine: "vllm 0.32.0", Command: "vllm serve m --max-num-seqs 64", Cold: 41 * time.Second, KVTokens: 454208,
		Stages:    []EngineStage{{"weights", 30 * time.Second}, {"graphs", 11 * time.Second}},
		Effective: []string{"max_num_seqs = 64"}, Changed: []string{"prefix_caching is false, asked for true"}, Without: []string{"kv_blocks"}}
	e := &Engines{Spent: Spent{Engine: 21 * time.Minute, GPUHours: 0.7, USD: &usd}}
	var trials []measure.Measurement
	for i, rate := range []float64{1, 2, 3} {
		t := EngineTrial{Trial: i + 1, Knobs: k, ClientTTFT: 50 * time.Millisecond, ServerTTFT: 30 * time.Millisecond, Queue: -1, Gap: "network",
			PeakKV: 0.5, HitRate: math.NaN(), Preemptions: 3, Output: 1200, GPU: "87 % busy"}
		if i != 1 {
			t.Start = &start
		}
		e.Trials = append(e.Trials, t)
		trials = append(trials, measure.Measurement{Trial: measure.Trial{Number: i + 1, Knobs: k, Rate: rate}, Tally: measure.Tally{Requests: 10}})
	}
	e.Trials[2].ClientTTFT, e.Trials[2].Gap = 31*time.Millisecond, ""
	return e, trials
}

// A live run's report tells what it cost, how the engines started and what they
// run with, and puts client and server side by side.
func TestEnginesInReport(t *testing.T) {
	e, trials := liveRun()
	text := string(Text(Search(trials[0].Trial.Knobs, search.Result{Estimate: search.Estimate{Value: 3, Low: 2, High: 4, Confidence: 0.9, Safe: 2.1}},
		Background{Background: decide.Background{Trials: trials}, Server: Server{Command: "vllm serve m --max-num-seqs 64 --port 8000"}, Engines: e}), 160, false))
	for _, want := range []string{
		"0.70 GPU hours, $2.10 (21.0 min with starts)", "vllm serve m --max-num-seqs 64 --port 8000", "max_num_seqs = 64", "kv_blocks: the engine has no option for it",
		"weights", "41.0 s", "454,208", "prefix_caching is false, asked for true", "network", "none", "87 % busy", "so far: the search has not ended",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the report:\n%s", want, text)
		}
	}
	if strings.Contains(text, "queued") || strings.Contains(text, "cache hits") {
		t.Errorf("a column of which nothing is known:\n%s", text)
	}
}

// Without a GPU nothing is priced, and on the simulated engine nothing is said.
func TestEnginesWithoutGPU(t *testing.T) {
	e, trials := liveRun()
	e.Spent = Spent{Engine: 90 * time.Second}
	doc := MeasurementOn(trials[0], e)
	if text := string(Text(doc, 120, false)); !strings.Contains(text, "90.0 s of engines; no GPU is named") {
		t.Error(text)
	}
	if text := string(Text(MeasurementOn(trials[0], nil), 120, false)); strings.Contains(text, "ENGINES") {
		t.Error(text)
	}
	one := 1.0
	if sum := (Spent{GPUHours: 1, USD: &one}).Plus(Spent{GPUHours: 2}); sum.USD != nil || sum.GPUHours != 3 {
		t.Errorf("a sum with a part that has no price: %+v", sum)
	}
}

// Where nothing could be measured no rate is made up.
func TestSearchWithoutRate(t *testing.T) {
	text := string(Text(Search(measure.Knobs{}, search.Result{Outcome: search.OutOfBudget, Reason: "3 trials could not be trusted"}, Background{}), 120, false))
	if !strings.HasPrefix(text, "Undecided: no rate is known: 3 trials could not be trusted") || strings.Contains(text, "one instance") {
		t.Error(text)
	}
}
