package design

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep"
	"planner/sweep/measure"
)

func TestParseRates(t *testing.T) {
	for text, want := range map[string][]float64{
		"1,2,5": {1, 2, 5}, "0.5": {0.5}, " 3 , 1": {3, 1}, "1:16:5": {1, 2, 4, 8, 16}, "0.1:10:3": {0.1, 1, 10},
	} {
		got, err := ParseRates(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", text, got, err)
			continue
		}
		for i := range want {
			if math.Abs(got[i]/want[i]-1) > 1e-9 {
				t.Errorf("%s: %v, want %v", text, got, want)
			}
		}
	}
	for _, text := range []string{"", "0", "-1", "a", "1,,2", "1,1", "NaN", "Inf", "1:2", "2:1:3", "1:2:1", "1:2:x", "1:Inf:3", "1:2:9999999"} {
		if got, err := ParseRates(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

func FuzzParseRates(f *testing.F) {
	f.Add("1,2,5")
	f.Add("1:20:5")
	f.Fuzz(func(t *testing.T, text string) {
		rates, err := ParseRates(text)
		if err == nil && (len(rates) == 0 || slices.ContainsFunc(rates, func(r float64) bool { return !(r > 0) || math.IsInf(r, 0) })) {
			t.Fatalf("%q gives %v", text, rates)
		}
	})
}

func TestOneAtATimeSets(t *testing.T) {
	var sets []measure.Knobs
	for _, seqs := range []int{32, 64, 128} {
		for _, tokens := range []int{2048, 8192} {
			for _, tp := range []int{1, 2} {
				sets = append(sets, measure.Knobs{MaxNumSeqs: seqs, MaxNumBatchedTokens: tokens, TensorParallel: tp})
			}
		}
	}
	got := oneAtATime(sets)
	if len(got) != 1+2+1+1 || got[0] != sets[0] {
		t.Errorf("%d sets: %+v", len(got), got)
	}
}

// sweepConfig is a configuration of a sweep from further keys and values.
func sweepConfig(more ...string) *config.Config {
	return configtest.Load("sweep", append([]string{"model.name", "llama-3.1-8b", "hardware.gpu", "L40S", "knobs.max_num_seqs", "[32, 64]"}, more...)...)
}

// All knobs meet the same requests at one rate, repeats meet others, and the
// trials of one set of knobs stand together.
func TestGridTrials(t *testing.T) {
	cfg := sweepConfig("workload.prefix", "{ groups = 5, tokens = 100 }")
	sets, _ := cfg.Candidates()
	trials := must.Get(gridTrials(cfg, Grid{Rates: []float64{1, 4}, Repeats: 2}, sets))
	if len(trials) != 2*2*2*2 {
		t.Fatalf("%d trials, want 2 sets, cold and warm, 2 rates, 2 repeats", len(trials))
	}
	seeds := map[float64][]uint64{}
	changes := 0
	for i, x := range trials {
		if i > 0 && x.Knobs != trials[i-1].Knobs {
			changes++
		}
		if !slices.Contains(seeds[x.Rate], x.Seed) {
			seeds[x.Rate] = append(seeds[x.Rate], x.Seed)
		}
		if cold := x.Why == coldCache; cold != (x.Warmup == 0) {
			t.Errorf("%s has a warm-up of %v", x.Why, x.Warmup)
		}
		if n := x.Rate * x.Window.Seconds(); n < enoughForP99 {
			t.Errorf("%g/s for %v is %.0f requests", x.Rate, x.Window, n)
		}
	}
	if changes != 1 || len(seeds[1]) != 2 || len(seeds[4]) != 2 || seeds[1][0] == seeds[4][0] {
		t.Errorf("%d changes of knobs, seeds %v", changes, seeds)
	}
	plainTrials := must.Get(gridTrials(sweepConfig(), Grid{Rates: []float64{1}, Repeats: 1}, sets))
	if len(plainTrials) != 2 || plainTrials[0].Why != "" {
		t.Errorf("%d trials where no prefix is shared", len(plainTrials))
	}
	if many, err := gridTrials(cfg, Grid{Rates: []float64{1, 4}, Repeats: mostTrials}, sets); err == nil {
		t.Errorf("%d trials, whose journal cannot be read", len(many))
	}
}

// A set of knobs that turned out not to run is not tried again.
func TestGridSourceLeavesOutFailed(t *testing.T) {
	bad, good := measure.Knobs{MaxNumSeqs: 1}, measure.Knobs{MaxNumSeqs: 2}
	g := &sweep.List{Trials: []measure.Trial{{Knobs: bad}, {Knobs: bad}, {Knobs: good}, {Knobs: good}}}
	seen := 0
	for batch := g.Next(); len(batch) > 0; batch = g.Next() {
		seen++
		m := measure.Measurement{Trial: batch[0]}
		if batch[0].Knobs == bad {
			m.Rejected = note.Text("does not fit").Reason()
		}
		g.Observe(m)
	}
	if seen != 3 {
		t.Errorf("%d trials, want one of the bad set and two of the good", seen)
	}
}

// Every row of the matrix can be refuted, can hold, and says so when it cannot
// tell.
func TestMatrixRows(t *testing.T) {
	cfg := sweepConfig()
	rows, trials, err := matrixTrials(cfg, predicting(cfg), Grid{Repeats: 1, Matrix: true}, measure.Knobs{GPU: "L40S", TensorParallel: 1})
	must.OK(err)
	for _, r := range readMatrix(rows, nil) {
		want := Unclear
		if r.ID == "F" {
			want = NotRun
		}
		if r.Finding != want || r.Outcome == "" {
			t.Errorf("%s without trials: %v, %q", r.ID, r.Finding, r.Outcome)
		}
	}
	length := trials[0].Knobs.MaxModelLen
	for _, x := range trials {
		if x.Knobs.MaxModelLen != length || x.Workload.Longest() > length {
			t.Errorf("%s: max_model_len %d, others %d, longest request %d", x.Why, x.Knobs.MaxModelLen, length, x.Workload.Longest())
		}
		if cached := x.Why == "E cold" || x.Why == "E warm"; x.Knobs.PrefixCaching != cached {
			t.Errorf("%s: prefix caching %t", x.Why, !cached)
		}
	}
	// slow and quick give each hypothesis its figures.
	findings := func(ttft func(key string) time.Duration, tokens float64) map[string]HypothesisResult {
		var seen []measure.Measurement
		for i, x := range trials {
			m := *measured(ttft(x.Why), 1)
			x.Number = i + 1
			m.Trial, m.OutputTokens = x, 1000
			if x.Why == "D 130 %" {
				m.OutputTokens = tokens
			}
			m.E2E.Mean = time.Second
			seen = append(seen, m)
		}
		out := map[string]HypothesisResult{}
		for _, r := range readMatrix(rows, seen) {
			out[r.ID] = r.Finding
		}
		return out
	}
	held := findings(func(key string) time.Duration {
		return map[string]time.Duration{"B 10 %": 90 * time.Millisecond, "E no cache": 90 * time.Millisecond}[key] + 10*time.Millisecond
	}, 1050)
	refuted := findings(func(key string) time.Duration {
		return map[string]time.Duration{"A 30 %": time.Second}[key] + 100*time.Millisecond
	}, 1300)
	for _, id := range []string{"A", "B", "C", "D", "E"} {
		if held[id] != Held || refuted[id] != Refuted {
			t.Errorf("%s: %v and %v, want held and refuted", id, held[id], refuted[id])
		}
	}
}

// A sweep ends as what it shows: of trials that cannot be trusted none shows anything.
func TestSweepEnd(t *testing.T) {
	trusted, doubted := measure.Measurement{Valid: true}, measure.Measurement{Warnings: note.Notes{note.Text("the client was late")}}
	unable := measure.Measurement{Rejected: note.Text("does not fit").Reason()}
	unclear := []MatrixRow{{Finding: Held}, {Finding: Unclear}}
	for name, c := range map[string]struct {
		trials   []measure.Measurement
		rows     []MatrixRow
		rejected note.Reason
		want     sweep.StudyState
	}{
		"trusted":             {trials: []measure.Measurement{trusted}, want: sweep.Done},
		"partly trusted":      {trials: []measure.Measurement{doubted, trusted, unable}, want: sweep.Done},
		"none trusted":        {trials: []measure.Measurement{doubted, unable, doubted}, want: sweep.Undecided},
		"none can run":        {rejected: unable.Rejected, want: sweep.Infeasible},
		"engine failed":       {rejected: note.Because(note.EngineFailed, "net.unreachable", ": refused"), want: sweep.Failed},
		"hypothesis unclear":  {trials: []measure.Measurement{trusted}, rows: unclear, want: sweep.Undecided},
		"hypotheses answered": {trials: []measure.Measurement{trusted}, rows: unclear[:1], want: sweep.Done},
	} {
		s := &Swept{Trials: c.trials, Rows: c.rows, Rejected: []measure.Rejection{{Reason: c.rejected}}}
		if got := s.state(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := &Sweep{}
	s.Seen = []measure.Measurement{doubted}
	if w := must.Get(s.Answer()).Value.(*Swept).Notes.String(); !strings.Contains(w, "no trial can be trusted") {
		t.Errorf("warnings %q", w)
	}
}

// predicting is a ground whose simulated engine is that of a configuration.
func predicting(cfg *config.Config) sweep.Ground {
	return sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 1)
}
