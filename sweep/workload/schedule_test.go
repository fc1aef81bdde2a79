package workload

import (
	"math"
	"reflect"
	"testing"
	"time"

	"planner/internal/evidence/stattest"
)

func plain(p Process) *Workload {
	chat, _ := Class("chat")
	return &Workload{Class: "chat", Shapes: []Shape{chat}, Arrivals: p, Burstiness: 0.25, Seed: 1}
}

func gapsOf(rs []Request) []float64 {
	out := make([]float64, 0, len(rs))
	last := time.Duration(0)
	for _, r := range rs {
		out = append(out, (r.Due - last).Seconds())
		last = r.Due
	}
	return out
}

func meanAndCV(x []float64) (mean, cv float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		cv += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(cv) / mean
}

// Twenty thousand gaps: the mean is known to 1/sqrt(20000) = 0.7 % and is held to four of those;
// the Kolmogorov-Smirnov test is held to a probability of 1e-4, at which the five rates fail for
// one in two thousand draws of their seeds.
func TestPoissonArrivals(t *testing.T) {
	for i, rate := range []float64{0.05, 1, 10, 100, 5000} {
		w := plain(Poisson)
		rs := w.Schedule(rate, time.Duration(20000/rate*float64(time.Second)), uint64(40+i))
		g := gapsOf(rs)
		mean, cv := meanAndCV(g)
		if math.Abs(mean*rate-1) > 0.03 || math.Abs(cv-1) > 0.05 {
			t.Errorf("rate %g: mean gap %.3f of 1/rate, coefficient of variation %.3f", rate, mean*rate, cv)
		}
		if d, p := stattest.ExponentialKS(g, 1/rate); p < 1e-4 {
			t.Errorf("rate %g: gaps are not exponential: distance %.4f, p = %.2g", rate, d, p)
		}
		counts := make([]float64, 200)
		for _, r := range rs {
			counts[min(int(r.Due.Seconds()*rate/100), 199)]++
		}
		// Variance ratio of 200 windows: standard deviation 0.1.
		mean, cv = meanAndCV(counts)
		if got := cv * cv * mean; math.Abs(got-1) > 0.4 {
			t.Errorf("rate %g: index of dispersion %.2f, want 1", rate, got)
		}
	}
}

func TestOtherArrivals(t *testing.T) {
	g := gapsOf(plain(Constant).Schedule(8, 100*time.Second, 3))
	if mean, cv := meanAndCV(g); math.Abs(mean-0.125) > 1e-9 || cv > 1e-6 {
		t.Errorf("constant: mean gap %g, coefficient of variation %g", mean, cv)
	}
	// Shape 1/4: coefficient of variation 2, mean known to 2/sqrt(40000) = 1 %.
	g = gapsOf(plain(Gamma).Schedule(20, 2000*time.Second, 3))
	if mean, cv := meanAndCV(g); math.Abs(mean*20-1) > 0.04 || math.Abs(cv-2) > 0.1 {
		t.Errorf("gamma: mean gap %.3f of 1/rate, coefficient of variation %.3f, want 2", mean*20, cv)
	}
}

func TestRatesShareRequests(t *testing.T) {
	for _, turns := range []int{1, 3} {
		w := plain(Poisson)
		w.Turns, w.Think = turns, 5*time.Second
		slow, fast := w.Schedule(4, 500*time.Second, 9), w.Schedule(8, 250*time.Second, 9)
		if turns == 1 && len(slow) != len(fast) {
			t.Fatalf("%d requests at 4/s, %d at 8/s", len(slow), len(fast))
		}
		// In conversations the order of turns depends on the rate, but what each first turn asks
		// for does not.
		a, b := firstTurns(slow), firstTurns(fast)
		for i := range min(len(a), len(b)) {
			if a[i].Prompt != b[i].Prompt || a[i].Output != b[i].Output {
				t.Fatalf("conversation %d differs: %+v and %+v", i, a[i], b[i])
			}
			if d := a[i].Due - 2*b[i].Due; d < -2 || d > 2 {
				t.Fatalf("conversation %d is due at %v and %v", i, a[i].Due, b[i].Due)
			}
		}
	}
}

func firstTurns(rs []Request) []Request {
	var out []Request
	for _, r := range rs {
		if r.Parent == 0 {
			out = append(out, r)
		}
	}
	return out
}

func TestSeeds(t *testing.T) {
	w := plain(Poisson)
	a, b, c := w.Schedule(5, time.Minute, 1), w.Schedule(5, time.Minute, 1), w.Schedule(5, time.Minute, 2)
	if !reflect.DeepEqual(a, b) {
		t.Error("one seed gives two schedules")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("two seeds give one schedule")
	}
}

func TestMixShares(t *testing.T) {
	chat, _ := Class("chat")
	code, _ := Class("code")
	chat.Weight, code.Weight = 3, 1
	w := &Workload{Class: "mix", Shapes: []Shape{chat, code}, Arrivals: Poisson}
	n := [2]int{}
	for _, r := range w.Schedule(100, 200*time.Second, 5) {
		n[r.Class]++
	}
	// A share of 1/4 of 20,000: standard deviation 0.3 %.
	if share := float64(n[1]) / float64(n[0]+n[1]); math.Abs(share-0.25) > 0.0125 {
		t.Errorf("share of the second class %.3f, want 0.25", share)
	}
	if got := w.Names(); !reflect.DeepEqual(got, []string{"chat", "code"}) {
		t.Errorf("names %v", got)
	}
}

func TestPrefixGroupsAndPools(t *testing.T) {
	w := plain(Poisson)
	w.Shapes[0].Prefix = Prefix{Groups: 10, Tokens: 100, Prompts: 10}
	groups, prompts := map[Content]int{}, map[Content]int{}
	for _, r := range w.Schedule(20, 200*time.Second, 5) {
		if len(r.Shared) != 2 || r.Shared[0].Tokens != 100 || r.SharedTokens() != r.Prompt {
			t.Fatalf("request %+v is not a prefix and a prompt of the pool", r)
		}
		groups[r.Shared[0].Content]++
		if n, seen := prompts[r.Shared[1].Content]; seen && n != r.Prompt {
			t.Fatalf("one prompt of the pool is %d and %d tokens long", n, r.Prompt)
		}
		prompts[r.Shared[1].Content] = r.Prompt
	}
	if len(groups) != 10 || len(prompts) != 100 {
		t.Errorf("%d groups, %d prompts, want 10 and 100", len(groups), len(prompts))
	}
	for _, r := range w.Schedule(20, 20*time.Second, 6) {
		if prompts[r.Shared[1].Content] != r.Prompt {
			t.Fatal("another seed draws other prompts into the pool")
		}
	}
	w.Shapes[0].Prefix.Prompts = 0
	for _, r := range w.Schedule(20, 20*time.Second, 6) {
		if len(r.Shared) != 1 || r.Prompt <= 100 || groups[r.Shared[0].Content] == 0 {
			t.Fatalf("request %+v is not a known prefix and a new prompt", r)
		}
	}
}

func TestConversations(t *testing.T) {
	w := plain(Poisson)
	w.Turns, w.Think, w.MaxLen = 4, 7*time.Second, 3000
	w.Shapes[0].Prefix = Prefix{Groups: 2, Tokens: 64}
	rs := w.Schedule(10, 300*time.Second, 8)
	turns, cut := 0, 0
	for i, r := range rs {
		if r.ID != i || i > 0 && r.Due < rs[i-1].Due {
			t.Fatalf("request %d: id %d, due %v after %v", i, r.ID, r.Due, rs[i-1].Due)
		}
		if r.Prompt+r.Output > w.MaxLen || r.Output < 1 || r.SharedTokens() > r.Prompt {
			t.Fatalf("request %+v does not fit %d tokens", r, w.MaxLen)
		}
		if r.Prompt+r.Output == w.MaxLen {
			cut++
		}
		if r.Parent == 0 {
			continue
		}
		turns++
		p := rs[r.Parent-1]
		if p.ID >= r.ID || r.Due != p.Due+w.Think || r.SharedTokens() != p.Prompt+p.Output {
			t.Fatalf("turn %+v does not continue %+v", r, p)
		}
		n := len(r.Shared)
		if r.Shared[n-2].Content != p.Own || r.Shared[n-1] != (Segment{p.Generated, p.Output}) {
			t.Fatalf("turn %+v does not carry what %+v said", r, p)
		}
	}
	if turns == 0 || cut == 0 {
		t.Errorf("%d later turns, %d of them cut: nothing was tested", turns, cut)
	}
}

// Conversations that reach the engine's length early have fewer turns, and as many more of them
// start as the rate needs.
func TestRateOfCutConversations(t *testing.T) {
	w := plain(Poisson)
	w.Turns, w.Think, w.MaxLen, w.Seed = 8, time.Second, 1500, 3
	const rate, span = 50, 600 * time.Second
	scheduled := w.Schedule(rate, span, 5)
	started := len(firstTurns(scheduled))
	if turns := float64(len(scheduled)) / float64(started); turns > 7 {
		t.Fatalf("%g turns a conversation: none was cut", turns)
	}
	for name, all := range map[string][]Request{"schedule": scheduled, "profile": w.Follow(Profile{{Rate: rate, Length: span}}, 5)} {
		if n := float64(len(all)) / span.Seconds(); math.Abs(n/rate-1) > 0.03 {
			t.Errorf("%s: %.3g requests a second, want %d", name, n, rate)
		}
	}
}

func TestTraceReplay(t *testing.T) {
	w := &Workload{Class: "trace", Arrivals: Trace}
	for i := range 100 {
		w.Replay = append(w.Replay, TraceRow{Arrival: time.Hour + time.Duration(i)*time.Second, Prompt: 10 + i, Output: 5})
	}
	own := w.Schedule(0, 1<<62, 1)
	if len(own) != 100 || own[0].Due != 0 || own[99].Due != 99*time.Second {
		t.Fatalf("own clock: %d requests, the last at %v", len(own), own[len(own)-1].Due)
	}
	twice := w.Schedule(2, 75*time.Second, 1)
	if len(twice) != 150 || twice[99].Due != 49500*time.Millisecond || twice[100].Due != 50*time.Second || twice[100].Prompt != 10 {
		t.Errorf("at 2/s: %d requests, %+v, %+v", len(twice), twice[99], twice[100])
	}
	if got := w.Slots(150, 1); len(got) != 150 || got[100].Prompt != 10 || got[149].ID != 149 || got[7].Due != 0 {
		t.Error("slots of a trace do not repeat its rows")
	}
	if (&Workload{Arrivals: Trace}).Slots(3, 1) != nil {
		t.Error("an empty trace has requests")
	}
}

func TestSlots(t *testing.T) {
	w := plain(Poisson)
	open, closed := w.Schedule(10, 100*time.Second, 4), w.Slots(500, 4)
	if len(closed) != 500 {
		t.Fatalf("%d slots", len(closed))
	}
	for i, r := range closed {
		if r.Due != 0 || r.ID != i || r.Prompt != open[i].Prompt || r.Output != open[i].Output {
			t.Fatalf("slot %d is %+v, the open loop asks for %+v", i, r, open[i])
		}
	}
}
