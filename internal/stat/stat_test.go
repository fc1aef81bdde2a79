package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantileAgreesWithCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 300; n++ {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Floor(rng.Float64() * 50) // ties
		}
		slices.Sort(x)
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
			v := Quantile(x, q)
			allowed := (1 - q) * float64(n) * (1 + 1e-9)
			within, _ := slices.BinarySearch(x, math.Nextafter(v, math.Inf(1)))
			if float64(n-within) > allowed+1e-9 {
				t.Fatalf("n %d q %g: %d above the quantile", n, q, n-within)
			}
			// Any smaller value leaves too many above it.
			if i, _ := slices.BinarySearch(x, v); i > 0 && float64(n-i) <= allowed {
				t.Fatalf("n %d q %g: a smaller value would do", n, q)
			}
		}
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		n    int
		q    float64
		want int
	}{{100, 0.99, 99}, {100, 0.07, 7}, {101, 0.99, 100}, {1000, 0.999, 999}, {1, 0.5, 1}, {2, 0.5, 1}, {20, 0.95, 19}, {10, 0, 1}, {10, 1, 10}} {
		if got := rank(c.n, c.q); got != c.want {
			t.Errorf("rank of the %g-quantile of %d is %d, want %d", c.q, c.n, got, c.want)
		}
	}
}

func TestMonotone(t *testing.T) {
	got := Monotone([]float64{1, 3, 2, 4, 3, 3, 9}, []float64{1, 1, 3, 1, 1, 1, 1})
	want := []float64{1, 2.25, 2.25, 10. / 3, 10. / 3, 10. / 3, 9}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if got := Monotone([]float64{3, 2, 1}, nil); got[0] != 2 || got[2] != 2 {
		t.Errorf("falling values pool to %v", got)
	}
}

func TestNegativeBinomial(t *testing.T) {
	for _, d := range []NegativeBinomial{{5, 1}, {5, 1.5}, {12, 40}, {0.3, 8}, {200, 3}} {
		sum, mean, square := 0.0, 0.0, 0.0
		for k := range 20000 {
			p := math.Exp(d.logProb(float64(k)))
			sum += p
			mean += p * float64(k)
			square += p * float64(k) * float64(k)
			if k < 50 && math.Abs(d.CDF(float64(k))-sum) > 1e-9 {
				t.Fatalf("%+v: distribution function at %d is %g, the sum is %g", d, k, d.CDF(float64(k)), sum)
			}
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(mean/d.Mean-1) > 1e-6 || math.Abs((square-mean*mean)/(d.Mean*d.Phi)-1) > 1e-6 {
			t.Errorf("%+v: sum %g, mean %g, variance %g", d, sum, mean, square-mean*mean)
		}
	}
	// As the dispersion goes to 1, Poisson is reached without a jump.
	a, b := NegativeBinomial{7, 1 + 2e-6}, NegativeBinomial{7, 1}
	if math.Abs(a.logProb(3)-b.logProb(3)) > 1e-5 || math.Abs(a.CDF(3)-b.CDF(3)) > 1e-5 {
		t.Errorf("near Poisson %g %g, Poisson %g %g", a.logProb(3), a.CDF(3), b.logProb(3), b.CDF(3))
	}
	if (NegativeBinomial{0, 5}).logProb(0) != 0 || !math.IsInf((NegativeBinomial{0, 5}).logProb(1), -1) {
		t.Error("a mean of zero is not surely zero")
	}
}

func TestQuantileRanks(t *testing.T) {
	// Independent values: p99 of 299 has no upper end, of 473 with one above it
	// the ends follow the sample sizes of the share.
	d := Dispersion{At: 1, Level: 0.01}
	if _, high := d.QuantileRanks(250, 0.99, 0.05); high != 251 {
		t.Errorf("p99 of 250 values has an upper end at %d", high)
	}
	low, high := d.QuantileRanks(3000, 0.99, 0.05)
	if !(low > 2950 && low < 2970 && high > 2970 && high < 3000) {
		t.Errorf("p99 of 3000 values between ranks %d and %d", low, high)
	}
	wide, far := Dispersion{At: 40, Level: 0.01}.QuantileRanks(10000, 0.99, 0.05)
	if !(wide < 9900 && far > 9960 && far <= 10001) {
		t.Errorf("p99 of 10000 clumped values between ranks %d and %d", wide, far)
	}
}

func TestCensored(t *testing.T) {
	// Kaplan and Meier by hand: 1, 2+, 3, 4+, 5: survival 4/5, 8/15, 0.
	c := NewCensored([]int{5, 1, 3}, []int{4, 2})
	for _, w := range []struct {
		q    float64
		want int
	}{{0.1, 1}, {0.2, 1}, {0.3, 3}, {0.46, 3}, {0.47, 5}, {1, 5}} {
		if got, ok := c.Quantile(w.q); got != w.want || !ok {
			t.Errorf("quantile %g is %d, %v, want %d", w.q, got, ok, w.want)
		}
	}
	if _, ok := NewCensored([]int{1, 2}, []int{3, 3}).Quantile(0.51); ok {
		t.Error("a quantile among the censored values is known")
	}
	if _, ok := NewCensored[int](nil, nil).Quantile(0.5); ok {
		t.Error("nothing has a median")
	}
	// Exponential of mean 1, censored by an independent one: the median of all
	// is ln 2, of the uncensored alone ln 2 / 2.
	rng := rand.New(rand.NewPCG(3, 1))
	var known, longer []float64
	for range 20000 {
		if x, y := rng.ExpFloat64(), rng.ExpFloat64(); x <= y {
			known = append(known, x)
		} else {
			longer = append(longer, y)
		}
	}
	if got, _ := NewCensored(known, longer).Quantile(0.5); math.Abs(got-math.Ln2) > 0.03 {
		t.Errorf("median %g, want %g", got, math.Ln2)
	}
}

func TestBlend(t *testing.T) {
	if Blend(40, math.NaN()) != 40 || Blend(0.1, math.NaN()) != 1 {
		t.Error("an unknown dispersion does not leave the prior")
	}
	if b := Blend(40, 40); math.Abs(b-40) > 1e-9 {
		t.Errorf("40 and 40 give %g", b)
	}
	if b := Blend(40, 1); b < 1 || b > 10 {
		t.Errorf("40 and 1 give %g", b)
	}
}

// logProb is the log probability of k, to which the distribution is compared.
func (d NegativeBinomial) logProb(k float64) float64 {
	if d.Mean <= 0 {
		if k == 0 {
			return 0
		}
		return math.Inf(-1)
	}
	lk, _ := math.Lgamma(k + 1)
	if d.Phi < nearPoisson {
		return k*math.Log(d.Mean) - d.Mean - lk
	}
	r := d.Mean / (d.Phi - 1)
	lkr, _ := math.Lgamma(k + r)
	lr, _ := math.Lgamma(r)
	return lkr - lr - lk - r*math.Log(d.Phi) + k*math.Log1p(-1/d.Phi)
}

// TestBetaBinomialBelow compares the tail with the sum of its terms.
func TestBetaBinomialBelow(t *testing.T) {
	for _, c := range []struct {
		k float64
		d BetaBinomial
	}{{0, BetaBinomial{1700, 0.25, 600}}, {25, BetaBinomial{1700, 0.3, 40}}, {300, BetaBinomial{1000, 0.4, 5}}, {7, BetaBinomial{9, 0.5, 30}}} {
		sum := 0.0
		for i := 0.0; i <= c.k; i++ {
			sum += math.Exp(c.d.LogProb(i))
		}
		if got := math.Exp(c.d.LogCDF(c.k)); math.Abs(got-sum) > 1e-9 {
			t.Errorf("%+v: %.6g, want %.6g", c, got, sum)
		}
	}
}

func TestRoundedDown(t *testing.T) {
	for x, want := range map[float64]float64{5.11199: 5.111, 5.112: 5.112, 0.0012349: 0.001234, 12349: 12340, 0: 0} {
		if got := RoundedDown(x, 4); got != want {
			t.Errorf("%g: %g, want %g", x, got, want)
		}
	}
}

// Select puts the k-th smallest value where sorting does, with repeated and infinite values too.
func TestSelectIsASortedPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 2000 {
		v := make([]float64, 1+rng.IntN(60))
		for i := range v {
			if v[i] = float64(rng.IntN(40)); v[i] == 0 {
				v[i] = math.Inf(1)
			}
		}
		sorted, k := slices.Sorted(slices.Values(v)), rng.IntN(len(v))
		Select(v, k)
		if v[k] != sorted[k] || k > 0 && slices.Max(v[:k]) > v[k] || slices.Min(v[k:]) < v[k] {
			t.Fatalf("place %d of %v: %v", k, sorted, v)
		}
	}
}
