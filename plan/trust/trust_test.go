package trust

import (
	"strings"
	"testing"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// sound are the trials of a server that was measured as it should be.
func sound() []measure.Measurement {
	w := &workload.Workload{Class: "chat", Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 500}, Output: workload.Lengths{Dist: workload.Fixed, Value: 100}}}}
	var out []measure.Measurement
	for i, rate := range []float64{4, 8, 9, 10, 11, 14} {
		state := measure.Met
		if rate > 10 {
			state = measure.Missed
		}
		out = append(out, measure.Measurement{
			Trial: measure.Trial{Number: i + 1, Rate: rate, Warmup: 20 * time.Second, Window: 5 * time.Minute, Seed: uint64(i), Workload: w,
				Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}}},
			Duration: 5 * time.Minute, Tally: measure.Tally{Requests: 3000}, Valid: true, Verdict: &measure.Verdict{State: state},
			Latencies: measure.Latencies{TTFT: measure.Summary{P99: 500 * time.Millisecond, N: 3000}, E2E: measure.Summary{Mean: 5 * time.Second}},
			SendLag:   measure.Summary{P99: time.Millisecond, N: 3000}, Server: measure.Server{Engine: measure.Software{Kind: "vllm", Version: "0.32.0"}},
		})
	}
	return out
}

var subject = Subject{GPU: "H100 SXM", Weights: "fp8", Rate: 10}

func TestSoundDataPasses(t *testing.T) {
	for _, item := range Check(sound(), subject) {
		if item.State != Pass {
			t.Errorf("%+v", item)
		}
	}
}

// TestImportedSamples: the trials of other tools have no objective of their own, and print quantiles
// that few requests give.
func TestImportedSamples(t *testing.T) {
	of := subject
	of.Objective = sound()[0].Trial.Objective
	for requests, want := range map[int]ItemState{3000: Pass, 300: Fail, 0: Unknown} {
		trials := sound()
		for i := range trials {
			trials[i].Trial.Objective, trials[i].Requests = measure.SLO{}, requests
		}
		for _, item := range Check(trials, of) {
			if item.Name == "samples" && item.State != want {
				t.Errorf("%d requests: %+v", requests, item)
			}
		}
	}
}

// TestImportedLengths: of the trials of other tools the mean lengths may be known, and tell one traffic from another.
func TestImportedLengths(t *testing.T) {
	for last, want := range map[float64]ItemState{0: Unknown, 600: Unknown, 700: Unknown, 800: Fail, 300: Fail} {
		trials := sound()
		for i := range trials {
			trials[i].Trial.Workload, trials[i].MeanPrompt, trials[i].MeanOutput = nil, 500, 100
		}
		trials[5].MeanPrompt = last * 5 / 6
		trials[5].MeanOutput = last / 6
		for _, item := range Check(trials, subject) {
			if item.Name == "lengths" && (item.State != want || want == Unknown && last < 700 && !strings.Contains(item.Why, "have 600 tokens")) {
				t.Errorf("%g tokens: %+v", last, item)
			}
		}
	}
}

// TestNothingToCheck: a throughput alone needs no quantile, and one request at a time no checklist.
func TestNothingToCheck(t *testing.T) {
	trials := sound()
	for i := range trials {
		trials[i].Trial.Objective = measure.SLO{Throughput: true}
	}
	for _, item := range Check(trials, subject) {
		if item.Name == "samples" && item.State != Pass {
			t.Errorf("without a bound: %+v", item)
		}
	}
	for i := range trials {
		trials[i].Trial.Concurrency = 1
	}
	if items := Check(trials, subject); items != nil {
		t.Errorf("one request at a time: %+v", items)
	}
}

// TestFaults: each fault of the data is told by its own item, and by no other.
func TestFaults(t *testing.T) {
	each := func(change func(*measure.Measurement)) func([]measure.Measurement) []measure.Measurement {
		return func(all []measure.Measurement) []measure.Measurement {
			for i := range all {
				change(&all[i])
			}
			return all
		}
	}
	for _, f := range []struct {
		item   string
		state  ItemState
		change func([]measure.Measurement) []measure.Measurement
	}{
		{"warm-up", Fail, each(func(m *measure.Measurement) { m.Warnings = note.Notes{note.New(note.NotStationary, 40.0, 20.0)} })},
		{"warm-up", Unknown, each(func(m *measure.Measurement) { m.Trial.Warmup = 0 })},
		{"open loop", Fail, each(func(m *measure.Measurement) { m.Trial.Concurrency = 16 })},
		{"open loop", Fail, each(func(m *measure.Measurement) { m.Warnings = note.Notes{note.New(note.LoopClosedBySlots)} })},
		{"", Pass, func(all []measure.Measurement) []measure.Measurement { // what an idle engine shows asks for no open loop
			all[0].Trial.Concurrency, all[1].Trial.Concurrency, all[2].Trial.Concurrency = 1, 1, 1
			return all
		}},
		{"samples", Fail, each(func(m *measure.Measurement) { m.TTFT.P99 = measure.Unresolved })},
		{"tails", Fail, each(func(m *measure.Measurement) { m.Warnings = note.Notes{note.New(note.OpenLeftOut)} })},
		{"lengths", Fail, each(func(m *measure.Measurement) { m.Warnings = note.Notes{note.New(note.ShorterAnswers, 40.0)} })},
		{"sweep", Fail, func(all []measure.Measurement) []measure.Measurement { return all[:4] }},
		{"sweep", Fail, func(all []measure.Measurement) []measure.Measurement { // the maximum of 10 is not where these end
			for i := range all[2:] {
				all[i+2].Verdict = &measure.Verdict{State: measure.Missed}
			}
			all[2].Trial.Rate = 7.9
			all[1].Trial.Rate = 7
			return all
		}},
		{"sweep", Fail, func(all []measure.Measurement) []measure.Measurement {
			for i := range all {
				all[i].Verdict = &measure.Verdict{State: measure.Met}
			}
			all[5].Verdict = &measure.Verdict{State: measure.Missed}
			all[4].Trial.Rate = 13
			return all
		}},
		{"", Pass, func(all []measure.Measurement) []measure.Measurement { // verdicts by chance on both sides
			all[0].Verdict, all[5].Verdict = &measure.Verdict{State: measure.Missed}, &measure.Verdict{State: measure.Met}
			return all
		}},
		{"sweep", Unknown, each(func(m *measure.Measurement) {
			if m.Verdict.State == measure.Met {
				m.Verdict = &measure.Verdict{State: measure.Unsure}
			}
		})},
		{"duration", Fail, each(func(m *measure.Measurement) { m.Duration = 20 * time.Second })},
		{"duration", Fail, each(func(m *measure.Measurement) { m.E2E.Mean = 2 * time.Minute })},
		{"versions", Fail, func(all []measure.Measurement) []measure.Measurement {
			all[3].Server.Engine.Version = "0.31.0"
			return all
		}},
		{"versions", Unknown, each(func(m *measure.Measurement) { m.Server.Engine.Version = "" })},
		{"repeats", Fail, each(func(m *measure.Measurement) { m.Trial.Seed = 1 })},
		{"client limits", Fail, each(func(m *measure.Measurement) { m.Warnings = note.Notes{note.New(note.ClientBusy, 99.0, 2)} })},
		{"client limits, tails", Unknown, each(func(m *measure.Measurement) { m.SendLag = measure.UnresolvedSummary() })},
	} {
		for _, item := range Check(f.change(sound()), subject) {
			want := Pass
			if strings.Contains(f.item, item.Name) {
				want = f.state
			}
			if item.State != want {
				t.Errorf("data that is wrong in %q: %+v, want %s", f.item, item, want)
			}
		}
	}
	bare := Check([]measure.Measurement{{Trial: measure.Trial{Rate: 1}, Valid: true}}, Subject{})
	if n := list.Count(bare, func(i Item) bool { return i.State == Pass }); n != 0 {
		t.Errorf("of a bare load point %d items pass: %+v", n, bare)
	}
	if got := Failed(Check(sound()[:2], subject)); len(got) == 0 {
		t.Error("two loads are no sweep")
	}
}

// Nothing is said to be near the maximum where no trial is.
func TestTrialsAwayFromTheMaximum(t *testing.T) {
	of := subject
	of.Rate = 100
	told := 0
	for _, item := range Check(sound(), of) {
		if strings.Contains(item.Why, "near the maximum") {
			told++
		}
		if strings.Contains(item.Why, "near the maximum") && !strings.Contains(item.Why, "not near the maximum") {
			t.Errorf("%+v", item)
		}
	}
	if told == 0 {
		t.Error("nobody is told")
	}
}
