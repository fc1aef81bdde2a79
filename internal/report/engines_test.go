package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/note"
	"planner/plan"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// liveRun is a search on a real engine: three trials on two starts.
func liveRun() (Engines, []measure.Measurement) {
	k := measure.Knobs{GPU: "H100 SXM", TensorParallel: 2, MaxNumSeqs: 64}
	served := sweep.TrialEngine{Kind: "vllm", Command: "vllm serve m --max-num-seqs 64", Cold: 41 * time.Second, Without: []string{"kv_blocks"},
		Stages: []engine.StartStage{{Name: "weights", Took: 30 * time.Second}, {Name: "graphs", Took: 11 * time.Second}},
		Facts: engine.ServerFacts{Version: "0.32.0", KVBlocks: 28388, BlockTokens: 16, Flags: []engine.Flag{{Name: "max_num_seqs", Value: "64"}},
			Changed: []string{"prefix_caching is false, asked for true"}}}
	said := engine.Metrics{PeakKV: 0.5, Counters: engine.Counters{TTFT: 30 * time.Millisecond, Queue: -1, HitRate: math.NaN(), Preemptions: 3, OutputRate: 1200}}
	var seen []sweep.EngineTelemetry
	var trials []measure.Measurement
	for i, rate := range []float64{1, 2, 3} {
		served.Fresh = i != 1
		seen = append(seen, sweep.EngineTelemetry{Trial: i + 1, Knobs: k, EngineTime: 7 * time.Minute, Engine: served, Said: said, Gap: "network",
			ClientTTFT: 50 * time.Millisecond, GPU: &engine.GPUUse{Busy: 0.87, PeakMemory: -1, Watts: -1, ClockMHz: -1}})
		trials = append(trials, measure.Measurement{Trial: measure.Trial{Number: i + 1, Knobs: k, Rate: rate}, Tally: measure.Tally{Requests: 10}})
	}
	seen[2].ClientTTFT, seen[2].Gap = 31*time.Millisecond, ""
	priced := func(name string) (config.GPU, bool) {
		return config.GPU{Pricing: plan.Pricing{PricePerGPUHour: 3}}, name == k.GPU
	}
	start := func(measure.Knobs) StartCommand {
		return StartCommand{Line: "vllm serve m --max-num-seqs 64 --port 8000"}
	}
	return Engines{Start: start, Seen: seen, GPU: priced}, trials
}

// A live run's report tells what it cost, how the engines started and what they
// run with, and puts client and server side by side.
func TestEnginesInReport(t *testing.T) {
	e, trials := liveRun()
	text := string(Text(foundDocument(trials[0].Trial.Knobs, search.Result{Estimate: search.Estimate{Value: 3, Low: 2, High: 4, Confidence: 0.9, Safe: 2.1}}, decide.Background{Trials: trials}, e), 160, false))
	for _, want := range []string{
		"0.70 GPU hours, $2.10 (21.0 min with starts)", "2, 82.0 s in all, on top of what a budget counts, the trials", "vllm serve m --max-num-seqs 64 --port 8000", "max_num_seqs = 64", "kv_blocks: the engine has no option for it",
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
	for i := range e.Seen {
		e.Seen[i].Knobs.GPU = ""
	}
	doc := measurementDocument(trials[0], e)
	if text := string(Text(doc, 120, false)); !strings.Contains(text, "21.0 min of engines; no GPU is named") {
		t.Error(text)
	}
	if text := string(Text(measurementDocument(trials[0], Engines{}), 120, false)); strings.Contains(text, "ENGINES") {
		t.Error(text)
	}
}

// What is spent on several GPUs has no price if one of them has none.
func TestSpentWithoutPrice(t *testing.T) {
	e, _ := liveRun()
	priced := e.GPU
	e.Seen[2].Knobs.GPU = "L40S"
	e.GPU = func(name string) (config.GPU, bool) {
		if name == "L40S" {
			return config.GPU{}, true
		}
		return priced(name)
	}
	if got := e.Spent(); got != "0.70 GPU hours" {
		t.Error(got)
	}
}

// Where nothing could be measured no rate is made up.
func TestSearchWithoutRate(t *testing.T) {
	text := string(Text(foundDocument(measure.Knobs{}, search.Result{Outcome: search.OutOfBudget, Reason: note.Text("3 trials could not be trusted").Reason()}, decide.Background{Trials: nil}, Engines{}), 120, false))
	if !strings.HasPrefix(text, "Undecided: no rate is known: 3 trials could not be trusted") || strings.Contains(text, "one instance") {
		t.Error(text)
	}
}

// A search that ends by itself has no budget that ended it.
func TestSearchEndsByItself(t *testing.T) {
	r := search.Result{Outcome: search.OutOfBudget, Estimate: search.Estimate{Value: 2, Low: 1, High: 3}, Reason: note.Because(note.TrialsSpent, 9)}
	text := string(Text(foundDocument(measure.Knobs{}, r, decide.Background{}, Engines{}), 200, false))
	if strings.Contains(text, "budget ended") || !strings.Contains(text, "with a search.budget") {
		t.Error(text)
	}
}
