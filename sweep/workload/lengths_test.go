package workload

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/wire"
)

func TestLognormalQuantiles(t *testing.T) {
	l := Lengths{Dist: Lognormal, Median: 500, Sigma: 0.8, Min: 50, Max: 4000}
	// exp(ln 500 + 0.8 z): z = 0, 1.281552, -1.281552.
	for _, c := range []struct {
		u    float64
		want int
	}{{0.5, 500}, {0.9, 1394}, {0.1, 179}, {1e-9, 50}, {1 - 1e-9, 4000}} {
		if got := l.Quantile(c.u); got != c.want {
			t.Errorf("quantile %g is %d, want %d", c.u, got, c.want)
		}
	}
	free := Lengths{Dist: Lognormal, Median: LognormalMedian(1000, 0.5), Sigma: 0.5}
	if got := free.Expected(); math.Abs(got-1000) > 2 {
		t.Errorf("mean of an unclipped lognormal of mean 1000 is %g", got)
	}
	// E[min(max(X,a),b)] of a lognormal in closed form.
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	a, b := (math.Log(50)-math.Log(500))/0.8, (math.Log(4000)-math.Log(500))/0.8
	want := 50*phi(a) + 4000*(1-phi(b)) + 500*math.Exp(0.32)*(phi(b-0.8)-phi(a-0.8))
	if got := l.Expected(); math.Abs(got-want) > 0.5 {
		t.Errorf("mean %g, closed form %g", got, want)
	}
	if free.Longest() != 0 || l.Longest() != 4000 {
		t.Errorf("longest %d and %d", free.Longest(), l.Longest())
	}
}

func TestLengthsStayInRange(t *testing.T) {
	for _, l := range []Lengths{
		{Dist: Fixed, Value: 447},
		{Dist: Fixed},
		{Dist: Uniform, Min: 820, Max: 1024},
		{Dist: Uniform, Min: 5, Max: 5},
		{Dist: Uniform, Min: 9},
		{Dist: Normal, Mean: 100, StdDev: 200, Min: 10, Max: 150},
		{Dist: Normal, Mean: -1e30, StdDev: 1},
		{Dist: Lognormal, Median: 1e300, Sigma: 3, Max: 77},
		{Dist: Lognormal, Median: 1e300, Sigma: 3},
		{Dist: Empirical, Samples: []int{3, 9, 27}},
		{Dist: Empirical, Samples: []int{3, 9, 27}, Min: 5, Max: 20},
	} {
		last := 0
		for _, u := range []float64{0, 1e-300, 0.1, 0.5, 0.9, 1 - 1e-16, 1} {
			n := l.Quantile(u)
			if n < max(last, l.Min, 1) || l.Max > 0 && n > max(l.Max, l.Min) {
				t.Errorf("%+v: quantile %g is %d after %d", l, u, n, last)
			}
			last = n
		}
		if long := l.Longest(); long > 0 && last > long {
			t.Errorf("%+v: draws %d, longest %d", l, last, long)
		}
	}
}

func TestUniformReachesBothEnds(t *testing.T) {
	l := Lengths{Dist: Uniform, Min: 1, Max: 4}
	n := map[int]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40000 {
		n[l.Quantile(uniform(rng))]++
	}
	for v := 1; v <= 4; v++ {
		// 10,000 each; standard deviation 87.
		if math.Abs(float64(n[v]-10000)) > 500 {
			t.Errorf("%d drawn %d times of 40,000, want a quarter", v, n[v])
		}
	}
}

func TestWorkloadRoundTrip(t *testing.T) {
	chat, _ := Class("chat")
	w := &Workload{
		Class: "mix", Shapes: []Shape{chat, {Name: "own", Weight: 2, Prompt: Lengths{Dist: Uniform, Min: 1, Max: 9}, Output: Lengths{Dist: Fixed, Value: 7}, Prefix: Prefix{Groups: 3, Tokens: 64}},
			{Prompt: Lengths{Dist: Normal, Mean: 90, StdDev: 4, Max: 100}, Output: Lengths{Dist: Empirical, File: "lengths.csv"}}},
		Turns: 3, Think: 1500 * time.Millisecond, Arrivals: Gamma, Burstiness: 0.5, Timeout: time.Minute, MaxLen: 8192, Seed: 1 << 63,
	}
	b := must.Get(wire.Marshal(w))
	var back Workload
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(*w, back) {
		t.Errorf("%s\nread as %+v, %v\nwant %+v", b, back, err, *w)
	}
}

// TestMeanTokensOfSchedule: the mean lengths are those of what is drawn, even if requests or
// conversations are cut at the longest that the engine takes.
func TestMeanTokensOfSchedule(t *testing.T) {
	chat, _ := Class("chat")
	chat.Prefix = Prefix{Groups: 4, Tokens: 100}
	long := chat
	long.Prompt = Lengths{Dist: Lognormal, Median: 500, Sigma: 2}
	for name, w := range map[string]*Workload{
		"conversations":     {Shapes: []Shape{chat}, Turns: 2},
		"cut conversations": {Shapes: []Shape{chat}, Turns: 8, MaxLen: 4000},
		"cut requests":      {Shapes: []Shape{long}, MaxLen: 2048},
		"cut of a mix":      {Shapes: []Shape{chat, long}, MaxLen: 2048},
	} {
		w.Arrivals = Poisson
		if len(w.Shapes) > 1 {
			w.Shapes[0].Weight, w.Shapes[1].Weight = 1, 3
		}
		prompt, output := 0.0, 0.0
		rs := w.Schedule(100, 300*time.Second, 2)
		for _, r := range rs {
			prompt += float64(r.Prompt) / float64(len(rs))
			output += float64(r.Output) / float64(len(rs))
		}
		// Standard error of the mean prompt over 30,000 requests: 0.6 %.
		if p, o := w.MeanTokens(); math.Abs(prompt/p-1) > 0.03 || math.Abs(output/o-1) > 0.03 {
			t.Errorf("%s: drawn means %.1f and %.1f tokens, expected %.1f and %.1f", name, prompt, output, p, o)
		}
	}
}

// TestWords: a workload is called by its class only if it has the lengths of the class.
func TestWords(t *testing.T) {
	chat := must.Get(Class("chat"))
	own := chat
	own.Output = Lengths{Dist: Fixed, Value: 7}
	for want, w := range map[string]Workload{
		"chat":  {Class: "chat", Shapes: []Shape{chat}},
		"mix":   {Class: "mix", Shapes: []Shape{chat, own}},
		"trace": {Class: "trace"},
		"prompts lognormal of median 500 and sigma 0.8 in 50..4000, outputs of 7 tokens": {Class: "chat", Shapes: []Shape{own}},
	} {
		if got := w.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
