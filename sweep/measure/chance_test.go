package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"planner/internal/stat"
)

// In a stationary process a request is beyond the limit with the allowed probability, so n in a row
// are no more probable than that, and one alone is about as probable: the clump may end before it.
func TestChanceOfAllBeyond(t *testing.T) {
	for _, allowed := range []float64{0.001, 0.01, 0.1} {
		before := 1.0
		for _, n := range []float64{1, 2, 5, 10, 30, 100, 300, 1000, 3000, 10_000} {
			got := chance(n, n, allowed)
			if got > allowed*(1+1e-9) || got > before {
				t.Errorf("%.0f of %.0f where %g is allowed: %g, of fewer %g", n, n, allowed, got, before)
			}
			before = got
		}
		if one := chance(1, 1, allowed); one < 0.8*allowed {
			t.Errorf("one of one where %g is allowed: %g", allowed, one)
		}
	}
}

// The probability falls with the number beyond the limit, and with the allowed share.
func TestChanceIsMonotone(t *testing.T) {
	for _, n := range []float64{20, 200, 2000} {
		for k := 2.0; k <= n; k = math.Ceil(k * 1.5) {
			for i, allowed := range []float64{0.01, 0.1, 0.3} {
				got := chance(k, n, allowed)
				if got < 0 || got > 1 || got > chance(k-1, n, allowed)+1e-12 {
					t.Errorf("%.0f of %.0f where %g is allowed: %g", k, n, allowed, got)
				}
				if less := []float64{0.001, 0.01, 0.1}[i]; k > 2*allowed*n && chance(k, n, less) > got {
					t.Errorf("%.0f of %.0f: %g where %g is allowed, more where %g is", k, n, got, allowed, less)
				}
			}
		}
	}
}

// A process that exceeds its limit in clumps of exponential length must be given up no more often
// than falseStop says, in the mean over the dispersions that servers have, which 300,000 windows
// tell to 6 %, and not much less often.
func TestChanceAgainstClumps(t *testing.T) {
	const allowed, runs = 0.01, 300_000
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{150, 500, 2000} {
		wrong, limit := 0, n
		for limit > 1 && chance(float64(limit-1), float64(n), allowed) <= falseStop {
			limit--
		}
		for range runs {
			clump := stat.Generic * math.Exp(genericSpread*rng.NormFloat64()) / 2
			if clumped(rng, n, max(clump, 0.5), allowed) >= limit {
				wrong++
			}
		}
		if share := float64(wrong) / runs; share > 1.3*falseStop || share < falseStop/4 {
			t.Errorf("%d and more of %d: in a share of %.2g of the windows, want nearly %g", limit, n, share, falseStop)
		}
	}
}

// clumped returns how many of n requests are beyond a limit if they are so in clumps of the given
// mean and with the given long-run share.
func clumped(rng *rand.Rand, n int, clump, share float64) int {
	beyond, at := 0.0, 0.0
	in := rng.Float64() < share
	for at < float64(n) {
		mean := clump
		if !in {
			mean = clump * (1 - share) / share
		}
		stay := min(rng.ExpFloat64()*mean, float64(n)-at)
		if in {
			beyond += stay
		}
		at += stay
		in = !in
	}
	return int(math.Round(beyond))
}
