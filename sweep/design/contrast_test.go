package design

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// measured is a measurement in which every latency is the given one.
func measured(d time.Duration, rate float64) *measure.Measurement {
	s := measure.Summary{Mean: d, P50: d, P99: d, N: 2000}
	m := &measure.Measurement{Valid: true}
	m.TTFT, m.TPOT, m.E2E = s, s, s
	m.Achieved, m.OutputTokens = rate, 100*rate
	return m
}

// Rounds differ a lot from each other and little within: the pairs show what the
// means do not.
func TestContrastPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var pairs []pairing
	for range 8 {
		load := math.Exp(rng.NormFloat64()) // the round's own luck
		a := 100 * load
		b := a * 1.10 * math.Exp(0.01*rng.NormFloat64())
		pairs = append(pairs, pairing{measured(time.Duration(a*1e6), 10), measured(time.Duration(b*1e6), 10)})
	}
	all := contrast(pairs, Terms{Confidence: 0.95, Indifference: 0.02})
	if len(all) != 11 {
		t.Fatalf("%d figures, want 11", len(all))
	}
	c := all[0]
	if c.Figure != "ttft.mean_ms" || c.Judgement != Worse || math.Abs(c.Relative.Value-0.10) > 0.02 || !(c.Relative.Low < 0.10 && 0.10 < c.Relative.High) {
		t.Errorf("%+v, want worse by 10 %%", c)
	}
	if last := all[10]; last.Figure != "output_tokens_per_s" || last.Judgement != Same {
		t.Errorf("%+v, want the same", last)
	}
}

// A server that is slower by much at little load and not at all where it is full is worse, in every
// figure alike: its ratios scatter, and none of them is on the other side.
func TestContrastOfFixedCosts(t *testing.T) {
	var pairs []pairing
	for i, by := range []float64{2.27, 2.14, 1.76, 1.59, 1.37, 1.01} {
		ms := 8e6 * float64(i+1)
		pairs = append(pairs, pairing{measured(time.Duration(ms), 10), measured(time.Duration(by*ms), 10)})
	}
	for _, c := range contrast(pairs, Terms{Confidence: 0.95, Indifference: 0.02})[:9] {
		if c.Judgement != Worse {
			t.Errorf("%s: %v, p %.3g", c.Figure, c.Judgement, c.Adjusted)
		}
	}
}

// What has a limit is compared, of a class and of tokens too.
func TestContrastOfLimits(t *testing.T) {
	var pairs []pairing
	for i := range 4 {
		of := func(ms int) *measure.Measurement {
			m := measured(time.Duration(ms+i)*time.Millisecond, 10)
			m.ITL, m.Classes = measure.Summary{P99: m.TTFT.P99, N: 2000}, map[string]measure.ClassSummary{"chat": {Latencies: measure.Latencies{TTFT: measure.Summary{P90: m.TTFT.P99, N: 2000}}}}
			m.Trial.Objective.Bounds = []measure.Bound{{Metric: measure.ITL, Quantile: 0.99, Limit: time.Second}, {Metric: measure.TTFT, Quantile: 0.9, Limit: time.Second, Class: "chat"},
				{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}
			return m
		}
		pairs = append(pairs, pairing{of(100), of(200)})
	}
	all := contrast(pairs, Terms{Confidence: 0.95, Indifference: 0.02})
	if len(all) != 13 {
		t.Fatalf("%d figures, want 13", len(all))
	}
	for i, want := range []string{"itl.p99_ms p99 ITL, ms", "ttft.p90_ms of chat p90 TTFT of chat, ms"} {
		if c := all[9+i]; c.Figure+" "+c.Label != want || c.Judgement != Worse {
			t.Errorf("%s %s: %v, want %s to be worse", c.Figure, c.Label, c.Judgement, want)
		}
	}
}

// Trials that are not valid decide nothing.
func TestContrastLeavesOutInvalid(t *testing.T) {
	var pairs []pairing
	for i := range 4 {
		a, b := measured(100*time.Millisecond, 10), measured(time.Duration(100+i)*time.Millisecond, 10)
		b.Valid = i > 1
		pairs = append(pairs, pairing{a, b})
	}
	if c := contrast(pairs, Terms{Confidence: 0.95, Indifference: 0.02})[0]; c.Pairs != 2 || c.Judgement == Same {
		t.Errorf("%+v, want the two valid pairs", c)
	}
	for i := range pairs {
		pairs[i][1].Valid = false
	}
	for _, c := range contrast(pairs, Terms{Confidence: 0.95, Indifference: 0.05}) {
		if c.Pairs != 4 || c.Judgement != Undecided {
			t.Errorf("%+v, want undecided", c)
		}
	}
}

// A load at which one side's backlog grew decides, where the other's did not, and a side that
// was not valid for another reason does not. The values, their difference and their ratio agree.
func TestContrastBehind(t *testing.T) {
	terms := Terms{Confidence: 0.95, Indifference: 0.02, FailIfWorse: 0.05}
	at := func(rate float64, share float64, why note.Kind) *measure.Measurement {
		m := measured(100*time.Millisecond, rate)
		m.Counts = []measure.Count{{Bound: measure.ThroughputBound, N: 300, Value: share, Low: share - 0.3, High: share + 0.3}}
		if why != "" {
			m.Valid, m.Warnings = false, note.Notes{{Kind: why}}
		}
		return m
	}
	for _, c := range []struct {
		name  string
		last  pairing
		want  Judgement
		state sweep.StudyState
	}{
		{"B grew", pairing{at(12, 0, ""), at(8, 0.4, note.NotStationary)}, Worse, sweep.Infeasible},
		{"A grew", pairing{at(8, 0.4, note.NotStationary), at(12, 0, "")}, Better, sweep.Done},
		{"both grew", pairing{at(8, 0.4, note.NotStationary), at(7, 0.5, note.NotStationary)}, "", sweep.Done},
		{"less waits than did", pairing{at(12, 0, ""), at(8, -0.1, note.NotStationary)}, "", sweep.Done},
		{"by chance", pairing{at(12, 0, ""), at(11.9, 0.4, note.NotStationary)}, Undecided, sweep.Done},
		{"the client was late", pairing{at(12, 0, ""), at(8, 0.4, note.SendLag)}, "", sweep.Done},
	} {
		pairs := []pairing{{at(1, 0, ""), at(1.01, 0, "")}, {at(2, 0, ""), at(1.99, 0, "")}, {at(4, 0, ""), at(4.01, 0, "")}, c.last}
		got := Compared{Terms: terms, Contrasts: contrast(pairs, terms)}
		last := got.Contrasts[len(got.Contrasts)-1]
		switch {
		case c.want == "" && len(got.Contrasts) != 11:
			t.Errorf("%s: %d figures, and %s is %s", c.name, len(got.Contrasts), last.Figure, last.Judgement)
		case c.want != "" && (len(got.Contrasts) != 12 || last.Judgement != c.want || last.Pairs != 1 || math.Abs(last.A-c.last[0].Achieved) > 1e-9 || math.Abs(last.B-c.last[1].Achieved) > 1e-9):
			t.Errorf("%s: %+v, want %s", c.name, last, c.want)
		}
		if state := got.answer().State; state != c.state {
			t.Errorf("%s: %v, want %v", c.name, state, c.state)
		}
		if doubts := len(pairDoubts(pairs).Of(note.SideBehind)); doubts != len(got.Contrasts)-11 {
			t.Errorf("%s: %d notes of a side that fell behind", c.name, doubts)
		}
		for _, x := range got.Contrasts {
			if math.Abs(x.B-x.A-x.Difference.Value) > 1e-9 || math.Abs(x.B/x.A-1-x.Relative.Value) > 1e-9 {
				t.Errorf("%s: %s: %g and %g differ by %g, %g", c.name, x.Figure, x.A, x.B, x.Difference.Value, x.Relative.Value)
			}
		}
	}
}

// Prefix-cache hits are shown where there are any, and decide nothing.
func TestCacheHits(t *testing.T) {
	of := func(share float64) *measure.Measurement {
		m := measured(100*time.Millisecond, 10)
		m.Server.HitRate = &share
		return m
	}
	terms := Terms{Confidence: 0.95, Indifference: 0.02}
	c := Compared{Terms: terms, Contrasts: contrast([]pairing{{of(0.5), of(0)}, {of(0.3), of(0)}, {of(0.4), of(0)}}, terms)}
	last := c.Contrasts[len(c.Contrasts)-1]
	if last.Figure != "prefix_hit_rate" || math.Abs(last.A-0.4) > 1e-12 || last.B != 0 || math.Abs(last.Difference.Value+0.4) > 1e-12 || last.Judgement != NotJudged || c.answer().State != sweep.Done {
		t.Errorf("%+v", last)
	}
	if got := contrast([]pairing{{of(0), of(0)}, {of(0), of(0)}}, terms); len(got) != 11 {
		t.Errorf("%+v where nothing was found", got[11:])
	}
}

func TestJudgements(t *testing.T) {
	for _, c := range []struct {
		name                string
		value, low, high, p float64
		want                Judgement
	}{
		{"ttft.p99_ms", 0.1, 0.05, 0.15, 0.001, Worse},
		{"ttft.p99_ms", -0.1, -0.15, -0.05, 0.001, Better},
		{"achieved_per_s", -0.1, -0.15, -0.05, 0.001, Worse},
		{"achieved_per_s", 0.1, 0.05, 0.15, 0.001, Better},
		{"ttft.p99_ms", 0.005, -0.01, 0.015, 0.3, Same},
		{"ttft.p99_ms", 0.012, 0.010, 0.014, 1e-6, Same}, // real, and of no interest
		{"ttft.p99_ms", 0.05, -0.1, 0.2, 0.4, Undecided},
		{"ttft.p99_ms", 0.05, math.NaN(), math.NaN(), math.NaN(), Undecided},
	} {
		all := []Contrast{{Figure: c.name, Relative: stat.Difference{Value: c.value, Low: c.low, High: c.high}, P: c.p}}
		judge(all, nil, Terms{Confidence: 0.95, Indifference: 0.02})
		if all[0].Judgement != c.want {
			t.Errorf("%s by %g (%g to %g): %v, want %v", c.name, c.value, c.low, c.high, all[0].Judgement, c.want)
		}
	}
	// Of many figures one is significant by itself and not among all.
	many := make([]Contrast, 10)
	for i := range many {
		many[i] = Contrast{Figure: "ttft.p99_ms", Relative: stat.Difference{Value: 0.1, Low: -0.1, High: 0.3}, P: 0.5}
	}
	many[3].Relative.Low, many[3].P = 0.01, 0.03
	judge(many, nil, Terms{Confidence: 0.95, Indifference: 0.02})
	if many[3].Judgement != Undecided || math.Abs(many[3].Adjusted-0.3) > 1e-12 {
		t.Errorf("%+v, want undecided at p = 0.3", many[3])
	}
	// The signs of the pairs decide where they can, though the number of figures would find a difference; where they cannot
	// the number does, and each kind has its share of the chance.
	for i := range many {
		many[i].P = 0.001
	}
	flipped := []float64{0.04, 0.2, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, math.NaN(), math.NaN()}
	judge(many, flipped, Terms{Confidence: 0.95, Indifference: 0.02})
	for i, want := range []float64{0.05, 0.25, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.01, 0.01} {
		if math.Abs(many[i].Adjusted-want) > 1e-12 {
			t.Errorf("figure %d: p = %.4g, want %.4g", i, many[i].Adjusted, want)
		}
	}
}

func TestMatched(t *testing.T) {
	at := func(rate float64, k int, warm time.Duration) measure.Measurement {
		return measure.Measurement{Trial: measure.Trial{Rate: rate, Knobs: measure.Knobs{MaxNumSeqs: k}, Warmup: warm}}
	}
	// One set of knobs each, another one: the loads decide.
	pairs, left := matched([]measure.Measurement{at(1, 8, 0), at(2, 8, 0), at(4, 8, 0)}, []measure.Measurement{at(4.0001, 16, 0), at(2, 16, 0)})
	if len(pairs) != 2 || left != 1 || pairs[0][1].Trial.Rate != 2 {
		t.Errorf("%d pairs, %d left", len(pairs), left)
	}
	// Several sets: only equal ones are pairs, and each is used once.
	pairs, left = matched([]measure.Measurement{at(1, 8, 0), at(1, 16, 0)}, []measure.Measurement{at(1, 16, 0), at(1, 32, 0)})
	if len(pairs) != 1 || left != 2 || pairs[0][0].Trial.Knobs.MaxNumSeqs != 16 {
		t.Errorf("%d pairs, %d left", len(pairs), left)
	}
	if pairs, _ = matched([]measure.Measurement{at(1, 8, 0)}, []measure.Measurement{at(1, 8, time.Second)}); len(pairs) != 0 {
		t.Error("a cold cache is compared with a warm one")
	}
	// 2/s in the busiest hour of a trace are 1/s in its mean.
	of := func(rate float64, meant workload.RateOf) []measure.Measurement {
		m := at(rate, 8, 0)
		m.Trial.Workload = &workload.Workload{Rates: &workload.Rates{Of: meant, Mean: 1, BusiestHour: 2, BusiestMinute: 3}}
		return []measure.Measurement{m}
	}
	for rate, want := range map[float64]int{1: 1, 2: 0} {
		if pairs, _ = matched(of(2, workload.RateOfBusiestHour), of(rate, workload.RateOfMean)); len(pairs) != want {
			t.Errorf("2/s in the busiest hour beside %g/s in the mean: %d pairs, want %d", rate, len(pairs), want)
		}
	}
}

func TestPairDoubts(t *testing.T) {
	a, b := measured(time.Second, 3), measured(time.Second, 3)
	if got := pairDoubts([]pairing{{a, b}}); len(got) != 0 {
		t.Errorf("doubts %q of sound trials", got)
	}
	a.Requests, a.Failed, b.Valid, b.Overloaded = 100, 3, false, true
	a.Failures = map[string]int{"http_status": 3}
	a.Warnings = note.Notes{note.New(note.FailedWith, 3, "http status", "503: backend worker lost")}
	if got := pairDoubts([]pairing{{a, b}}); len(got) != 3 || !strings.Contains(got[0].String(), "failed, first: 3 requests ended with http status: 503: backend worker lost;") {
		t.Errorf("%q, want failures, invalidity and overload", got)
	}
}

// A drift check: servers that scatter by 1.5 % from run to run at eight loads. Of 200 equal
// ones at most 6 % are called worse; of 100 that are 5 % slower at least 90 % are, and of
// 100 that are 10 % slower at least 90 % fail against a margin of 5 %.
func TestDrift(t *testing.T) {
	worse := func(slower, margin float64, runs int) float64 {
		n := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 5))
			var pairs []pairing
			for load := range 8 {
				base := 100 * math.Pow(1.3, float64(load))
				of := func(by float64) *measure.Measurement {
					return measured(time.Duration(base*by*math.Exp(0.015*rng.NormFloat64())*1e6), 10)
				}
				pairs = append(pairs, pairing{of(1), of(1 + slower)})
			}
			c := Compared{Terms: Terms{Confidence: 0.95, Indifference: 0.02, FailIfWorse: margin}}
			c.Contrasts = contrast(pairs, c.Terms)
			if margin > 0 && c.answer().State == sweep.Infeasible || margin == 0 && slices.ContainsFunc(c.Contrasts, func(x Contrast) bool { return x.Judgement == Worse }) {
				n++
			}
		}
		return float64(n) / float64(runs)
	}
	for _, c := range []struct {
		slower, margin, least, most float64
		runs                        int
	}{{0, 0, 0, 0.06, 200}, {0.05, 0, 0.9, 1, 100}, {0.10, 0.05, 0.9, 1, 100}, {0, 0.05, 0, 0.01, 200}} {
		if got := worse(c.slower, c.margin, c.runs); got < c.least || got > c.most {
			t.Errorf("slower by %g, margin %g: %.3f are worse, want %g to %g", c.slower, c.margin, got, c.least, c.most)
		} else {
			t.Logf("slower by %g, margin %g: %.3f are worse", c.slower, c.margin, got)
		}
	}
}

// A load at which every request failed is one of which none was answered, and does not drop out.
func TestAnsweredShareOfAnOutage(t *testing.T) {
	whole := measure.Measurement{Tally: measure.Tally{Requests: 100}}
	lost := measure.Measurement{Tally: measure.Tally{Requests: 100, Failed: 100}}
	for _, f := range aspects([]pairing{{&whole, &lost}}) {
		if f.name == "answered_share" {
			if r := f.ratio(pairing{&whole, &lost}); !(r < -5) {
				t.Errorf("a logarithm of %g for none of 100", r)
			}
			return
		}
	}
	t.Error("the share of answered requests is not compared")
}
