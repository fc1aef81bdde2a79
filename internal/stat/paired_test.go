package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Student's own data: the extra sleep of ten patients under two drugs (1908),
// whose paired t is 4.0621 with p = 0.00283 and a 95 % interval of 0.70 to 2.46.
func TestPairedTOfStudent(t *testing.T) {
	a := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	b := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = b[i] - a[i]
	}
	got, p := PairedT(d, nil, 0.95)
	for i, pair := range [][2]float64{{got.Value, 1.58}, {got.Low, 0.7001142}, {got.High, 2.4598858}, {p, 0.00283289}} {
		if math.Abs(pair[0]-pair[1]) > 1e-6 {
			t.Errorf("figure %d is %.7f, want %.7f", i, pair[0], pair[1])
		}
	}
}

func TestPairedTOfFewPairs(t *testing.T) {
	if d, _ := PairedT(nil, nil, 0.95); !math.IsNaN(d.Value) {
		t.Errorf("no pairs give %+v", d)
	}
	if d, p := PairedT([]float64{3}, nil, 0.95); d.Value != 3 || !math.IsNaN(d.Low) || !math.IsNaN(p) {
		t.Errorf("one pair gives %+v, p %g", d, p)
	}
	if d, p := PairedT([]float64{0, 0, 0}, nil, 0.95); d != (Difference{}) || p != 1 {
		t.Errorf("equal pairs give %+v, p %g", d, p)
	}
	if d, p := PairedT([]float64{0.1, 0.1, 0.1}, nil, 0.95); p != 0 || d.Low != d.High {
		t.Errorf("pairs that differ alike give %+v, p %g", d, p)
	}
}

// The interval holds the truth, and the test raises false alarms, as often as they say, also for
// one pair with others to tell the variance.
func TestPairedTCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const runs = 4000
	inside, beside, alarms := 0, 0, 0
	for range runs {
		d := make([]float64, 6)
		for i := range d {
			d[i] = 0.3 + rng.NormFloat64()
		}
		if c, _ := PairedT(d, nil, 0.9); c.Low <= 0.3 && 0.3 <= c.High {
			inside++
		}
		for i := range d {
			d[i] -= 0.3
		}
		if _, p := PairedT(d, nil, 0.9); p < 0.1 {
			alarms++
		}
		if c, _ := PairedT(d[:1], d[1:], 0.9); c.Low <= 0 && 0 <= c.High {
			beside++
		}
	}
	for _, held := range []int{inside, beside} {
		if share := float64(held) / runs; math.Abs(share-0.9) > 0.015 {
			t.Errorf("%.3f of the intervals hold the truth, want 0.9", share)
		}
	}
	if share := float64(alarms) / runs; math.Abs(share-0.1) > 0.015 {
		t.Errorf("%.3f false alarms, want 0.1", share)
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, math.NaN(), 0.03, 0.005})
	want := []float64{0.03, 0.06, math.NaN(), 0.06, 0.02}
	for i := range want {
		if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
			break
		}
	}
}

// TestSignFlips: figures that move together count as one, no p-value is below what the signs of the
// pairs allow, and without a difference false alarms are about as frequent as the level says.
func TestSignFlips(t *testing.T) {
	slower := []float64{0.82, 0.76, 0.56, 0.46, 0.32, 0.01}
	noise := []float64{0.1, -0.2, 0.15, math.NaN(), -0.1, 0.05}
	alone := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), 0.1}
	if got := SignFlips([][]float64{slower, slower, slower, alone}, 0.1); got[0] != 1.0/32 || got[2] != got[0] || !math.IsNaN(got[3]) {
		t.Errorf("%v", got)
	}
	if got := SignFlips([][]float64{noise, slower}, 0.1); got[0] < 0.5 || got[1] <= 1.0/32 || got[1] > 0.1 {
		t.Errorf("beside noise: %v", got)
	}
	if got := SignFlips([][]float64{noise, slower}, 0.05); !math.IsNaN(got[0]) || got[1] != 1.0/32 {
		t.Errorf("five pairs that no signs make as rare as 5 %%, beside six: %v", got)
	}
	if SignFlips(nil, 0.1) != nil || SignFlips([][]float64{make([]float64, 40)}, 0.1) != nil {
		t.Error("none, or very many pairs, are flipped")
	}
	rng := rand.New(rand.NewPCG(3, 3))
	const runs = 1000
	alarms := 0
	for range runs {
		rows := make([][]float64, 6)
		for range 7 {
			common := rng.NormFloat64()
			for i := range rows {
				rows[i] = append(rows[i], common+0.3*rng.NormFloat64())
			}
		}
		if slices.Min(SignFlips(rows, 0.05)) <= 0.05 {
			alarms++
		}
	}
	if share := float64(alarms) / runs; share < 0.02 || share > 0.065 {
		t.Errorf("false alarms in %.3f of the runs", share)
	}
}
