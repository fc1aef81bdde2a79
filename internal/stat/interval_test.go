package stat

import (
	"math"
	"testing"
)

// smallest is the first n at which the upper bound of the share reaches 1 %.
func smallest(k int, p float64, d Dispersion, alpha float64) int {
	low, high := k+1, 1<<20
	for low < high {
		if mid := (low + high) / 2; d.CountBelow(float64(k), float64(mid), p) <= alpha {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

func TestClumpedSampleSizes(t *testing.T) {
	for _, c := range []struct {
		phi  float64
		k, n int
	}{
		{40, 0, 3167}, {40, 5, 5612}, {40, 10, 7131}, {40, 20, 9557}, {40, 40, 13546}, {40, 80, 20328},
		{10, 0, 1171}, {10, 10, 3505}, {10, 40, 8146},
	} {
		d := Dispersion{At: c.phi, Level: 0.01, Gamma: 0.5}
		if got := smallest(c.k, 0.01, d, 0.05); max(got-c.n, c.n-got) > 1 {
			// The published sizes are rounded to the nearest request.
			t.Errorf("phi %g, %d beyond: met from %d requests, want %d", c.phi, c.k, got, c.n)
		}
		if up := d.Upper(float64(c.k), float64(c.n), 0.05); math.Abs(up-0.01) > 1e-5 {
			t.Errorf("phi %g, %d of %d: upper bound %g is not just below 1 %%", c.phi, c.k, c.n, up)
		}
	}
}

func TestIndependentSampleSizes(t *testing.T) {
	for _, c := range []struct {
		k, n     int
		p, alpha float64
	}{
		{0, 299, 0.01, 0.05}, {0, 459, 0.01, 0.01}, {0, 2995, 0.001, 0.05},
		{1, 473, 0.01, 0.05}, {2, 628, 0.01, 0.05}, {5, 1049, 0.01, 0.05},
		{10, 1693, 0.01, 0.05}, {20, 2902, 0.01, 0.05}, {50, 6323, 0.01, 0.05},
	} {
		at := ShareUpper(float64(c.k), float64(c.n), c.alpha)
		before := ShareUpper(float64(c.k), float64(c.n-1), c.alpha)
		if at > c.p || before <= c.p {
			t.Errorf("%d beyond of %d: upper bound %g, one fewer %g, want %g between", c.k, c.n, at, before, c.p)
		}
	}
}

func TestShareBoundsOfTextbook(t *testing.T) {
	// Clopper-Pearson 95 % two-sided for 10 of 100: 0.0490, 0.1762.
	if l, u := ShareLower(10, 100, 0.025), ShareUpper(10, 100, 0.025); math.Abs(l-0.04900) > 1e-4 || math.Abs(u-0.17622) > 1e-4 {
		t.Errorf("10 of 100: %g..%g", l, u)
	}
	if ShareLower(0, 10, 0.05) != 0 || ShareUpper(10, 10, 0.05) != 1 || ShareUpper(0, 0, 0.05) != 1 {
		t.Error("ends of the range are not 0 and 1")
	}
}
