package workload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"planner/internal/wire"
)

func rowsAt(seconds ...float64) []TraceRow {
	var rows []TraceRow
	for _, s := range seconds {
		rows = append(rows, TraceRow{Arrival: time.Duration(s * float64(time.Second)), Prompt: 100, Output: 10})
	}
	return rows
}

// generated are the rows of a workload's own schedule.
func generated(w *Workload, rate float64, span time.Duration) []TraceRow {
	var rows []TraceRow
	for _, r := range w.Schedule(rate, span, 7) {
		rows = append(rows, TraceRow{Arrival: r.Due, Prompt: r.Prompt, Output: r.Output, Shared: r.Shared})
	}
	return rows
}

// What is known of a process in closed form is found in a trace of it.
func TestDescribeKnownProcesses(t *testing.T) {
	chat, _ := Class("chat")
	for _, c := range []struct {
		name       string
		w          Workload
		cv, within float64
		index      float64
	}{
		{"poisson", Workload{Arrivals: Poisson}, 1, 0.03, 1},
		{"constant", Workload{Arrivals: Constant}, 0, 1e-6, 0},
		// A renewal process's counts in long windows have the dispersion CV^2.
		{"gamma", Workload{Arrivals: Gamma, Burstiness: 0.25}, 2, 0.08, 4},
	} {
		c.w.Shapes = []Shape{chat}
		d := Describe(generated(&c.w, 20, 2000*time.Second))
		if math.Abs(d.GapCV-c.cv) > c.within {
			t.Errorf("%s: CV %.3f, want %.2f", c.name, d.GapCV, c.cv)
		}
		if math.Abs(d.Rate/20-1) > 0.03 {
			t.Errorf("%s: rate %.2f, want 20", c.name, d.Rate)
		}
		if c.name != "constant" && math.Abs(d.GapCorrelation) > 0.02 {
			t.Errorf("%s: gaps correlate by %.3f, want 0", c.name, d.GapCorrelation)
		}
		// 200 windows of 10 s give the index to 10 %.
		if got := d.Dispersion[1]; got.Windows < 198 || math.Abs(got.Index-c.index) > 0.3*c.index+0.01 {
			t.Errorf("%s: dispersion %.2f in %d windows, want %.0f", c.name, got.Index, got.Windows, c.index)
		}
		if c.name == "poisson" && math.Abs(d.Correlation) > 0.02 {
			t.Errorf("prompts and outputs that are drawn apart correlate by %.3f", d.Correlation)
		}
		// The median of the class is 500, and its 90 % quantile 500*exp(0.8*1.2816).
		if math.Abs(float64(d.Prompt.P50)/500-1) > 0.03 || math.Abs(float64(d.Prompt.P90)/1394-1) > 0.03 {
			t.Errorf("%s: prompts p50 %d, p90 %d, want 500, 1394", c.name, d.Prompt.P50, d.Prompt.P90)
		}
		if d.Prompt.Sum+d.Output.Sum != d.Total.Sum {
			t.Errorf("%s: %d + %d is not %d", c.name, d.Prompt.Sum, d.Output.Sum, d.Total.Sum)
		}
	}
}

func TestDescribeByHand(t *testing.T) {
	// Windows of 10 s: 3, 0, 1 arrivals; the fourth is not whole.
	d := Describe(rowsAt(5, 6, 7, 28, 36))
	if d.Span != 31*time.Second || d.Rate != 4.0/31 {
		t.Errorf("span %v, rate %g", d.Span, d.Rate)
	}
	want := 7.0 / 3 / (4.0 / 3) // variance of 3, 0, 1 over their mean
	if got := d.Dispersion[1]; got.Windows != 3 || math.Abs(got.Index-want) > 1e-12 {
		t.Errorf("dispersion %g in %d windows, want %g in 3", got.Index, got.Windows, want)
	}
	if !math.IsNaN(d.Dispersion[2].Index) {
		t.Errorf("dispersion of no whole minute is %g", d.Dispersion[2].Index)
	}
	if d.BusiestMinute.Requests != 5 || d.BusiestMinute.Rate != d.Rate {
		t.Errorf("busiest %+v", d.BusiestMinute)
	}
	if d.Prompt != (LengthSummary{Mean: 100, Least: 100, P50: 100, P90: 100, P99: 100, Most: 100, Sum: 500}) {
		t.Errorf("prompts %+v", d.Prompt)
	}
	one := Describe(rowsAt(3))
	if one.Requests != 1 || !math.IsNaN(one.Rate) {
		t.Errorf("a single request has a rate: %+v", one)
	}
	data, err := wire.Marshal(one)
	if err != nil || !strings.Contains(string(data), `"rate_per_s":null`) || !strings.Contains(string(data), `"prefix":null`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestDescribePrefixes(t *testing.T) {
	a, b, c := Segment{1, 100}, Segment{2, 50}, Segment{3, 50}
	rows := rowsAt(0, 1, 2, 3, 4)
	for i := range rows {
		rows[i].Prompt = 200
	}
	rows[0].Shared = []Segment{a, b}
	rows[1].Shared = []Segment{a, c}       // 100 again
	rows[2].Shared = []Segment{a, b}       // 150 again
	rows[3].Shared = []Segment{{1, 40}, b} // 40 again: behind 40 tokens all differs
	rows[4].Shared = []Segment{{9, 70}}    // nothing
	p := Describe(rows).Prefix
	if math.Abs(p.Repeated-290.0/1000) > 1e-12 || p.Distinct != 2 || p.Shared != 1 || p.Sharing != 0.8 {
		t.Errorf("%+v, want 29 %% of the tokens again, 2 beginnings, 1 of them shared, by 80 %%", p)
	}
}

// The prefixes of a generated workload come out as they were put in.
func TestDescribeGeneratedPrefixes(t *testing.T) {
	w := Workload{Arrivals: Poisson, Shapes: []Shape{{
		Prompt: Lengths{Dist: Fixed, Value: 300}, Output: Lengths{Dist: Fixed, Value: 10}, Prefix: Prefix{Groups: 8, Tokens: 700},
	}}}
	p := Describe(generated(&w, 20, 500*time.Second)).Prefix
	if p.Distinct != 8 || p.Shared != 8 || p.Sharing != 1 || math.Abs(p.Repeated-0.7) > 0.001 {
		t.Errorf("%+v, want 8 prefixes of 70 %% of each prompt", p)
	}
}

// Thinned Poisson traffic is Poisson at the smaller rate, and bursty traffic keeps that share of
// its excess dispersion.
func TestThin(t *testing.T) {
	chat, _ := Class("chat")
	w := Workload{Arrivals: Gamma, Burstiness: 0.2, Shapes: []Shape{chat}}
	rows := generated(&w, 40, 2500*time.Second)
	thin := Thin(rows, 0.25, 3)
	if share := float64(len(thin)) / float64(len(rows)); math.Abs(share-0.25) > 0.01 {
		t.Errorf("%.3f of the rows are left, want 0.25", share)
	}
	before, after := Describe(rows).Dispersion[1].Index, Describe(thin).Dispersion[1].Index
	if want := 1 + 0.25*(before-1); math.Abs(after/want-1) > 0.15 {
		t.Errorf("dispersion %.2f becomes %.2f, want %.2f", before, after, want)
	}
	if again := Thin(rows, 0.25, 3); len(again) != len(thin) || again[17].Arrival != thin[17].Arrival {
		t.Error("the same seed keeps other rows")
	}
	if all := Thin(rows, 1, 3); len(all) != len(rows) {
		t.Errorf("a share of 1 keeps %d of %d", len(all), len(rows))
	}
}

func TestAtRate(t *testing.T) {
	rows := rowsAt(10, 12, 13, 20)
	out := AtRate(rows, 3)
	if got := Describe(out).Rate; math.Abs(got-3) > 1e-6 {
		t.Errorf("rate %g, want 3", got)
	}
	if out[0].Arrival != 0 || math.Abs(out[1].Arrival.Seconds()-0.2) > 1e-6 || rows[0].Arrival != 10*time.Second {
		t.Errorf("arrivals %v, %v; the input's first %v", out[0].Arrival, out[1].Arrival, rows[0].Arrival)
	}
	if a, b := Describe(rows).GapCV, Describe(out).GapCV; math.Abs(a-b) > 1e-6 {
		t.Errorf("CV %g became %g", a, b)
	}
	if same := AtRate(rowsAt(1, 1), 3); same[1].Arrival != time.Second {
		t.Error("rows that arrive at once were moved")
	}
}

// Whatever the rows, nothing is counted twice and shares are shares.
func TestDescribeAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var rows []TraceRow
		at := time.Duration(0)
		for range rng.IntN(30) {
			at += time.Duration(rng.Int64N(int64(20 * time.Second)))
			r := TraceRow{Arrival: at, Prompt: 1 + rng.IntN(500), Output: 1 + rng.IntN(50)}
			for left := r.Prompt; left > 0 && rng.IntN(3) > 0; {
				n := 1 + rng.IntN(left)
				r.Shared = append(r.Shared, Segment{Content(rng.IntN(4)), n})
				left -= n
			}
			rows = append(rows, r)
		}
		d := Describe(rows)
		p := cmp.Or(d.Prefix, &PrefixSummary{})
		if p.Repeated < 0 || p.Repeated > 1 || p.Sharing < 0 || p.Sharing > 1 || p.Shared > p.Distinct || d.BusiestMinute.Requests > len(rows) {
			t.Fatalf("%+v", d)
		}
		if _, err := wire.Marshal(d); err != nil {
			t.Fatal(err)
		}
	}
}
