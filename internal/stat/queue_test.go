package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// mm1 returns the times in the system of the n customers after a warm-up, by Lindley's recursion,
// and their arrival times as positions in [0, 1).
func mm1(lambda, mu float64, warm, n int, rng *rand.Rand) (at, times []float64) {
	sojourn, clock, start := 0.0, 0.0, 0.0
	for i := range warm + n {
		gap := rng.ExpFloat64() / lambda
		clock += gap
		sojourn = max(sojourn-gap, 0) + rng.ExpFloat64()/mu
		if i == warm {
			start = clock
		}
		if i >= warm {
			at, times = append(at, clock), append(times, sojourn)
		}
	}
	for i := range at {
		at[i] = (at[i] - start) / (clock - start) * (1 - 1e-12)
	}
	return at, times
}

// The dispersion of the exceedances of a high level in M/M/1 is ((1+rho)/(1-rho))^2. Four hundred
// batches of some forty clumps each measure it to 8 %, the batches of a trial less well.
func TestDispersionOfMM1(t *testing.T) {
	for _, c := range []struct{ rho, want float64 }{{0.5, 9}, {0.7, 32.1}, {0.8, 81}} {
		rng := rand.New(rand.NewPCG(11, uint64(c.rho*10)))
		// The level that a share of 1 % exceeds: P(T > x) = exp(-(mu-lambda) x).
		level := math.Log(100) / (1 - c.rho)
		size := int(4000 / (1 - c.rho) / (1 - c.rho))
		sojourn, own := 0.0, 0.0
		var counts []float64
		at, beyond := make([]float64, size), make([]bool, size)
		for batch := range 401 {
			k := 0.0
			for i := range size {
				sojourn = max(sojourn-rng.ExpFloat64()/c.rho, 0) + rng.ExpFloat64()
				at[i], beyond[i] = float64(i)/float64(size), sojourn > level
				if beyond[i] {
					k++
				}
			}
			if batch == 0 {
				continue // warm-up
			}
			counts = append(counts, k)
			if d := BatchDispersion(at, beyond); !math.IsNaN(d) {
				own += d / 400
			}
		}
		mean, variance := stat.MeanVariance(counts, nil)
		if got := variance / mean; math.Abs(got/c.want-1) > 0.25 {
			t.Errorf("rho %g: dispersion between batches %.1f, want %.1f", c.rho, got, c.want)
		}
		// Each part of a batch holds two clumps or more; the largest of three estimates makes up
		// for what the short parts miss.
		if math.Abs(own/c.want-1) > 0.25 {
			t.Errorf("rho %g: dispersion within trials %.1f, want %.1f", c.rho, own, c.want)
		}
	}
}

// Above a trial's own p90 the estimated dispersion is of the same size as above the limit, but
// smaller, on which a blend may rely.
func TestDispersionAtOwnLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	const rho, want, runs = 0.737, 43.6, 40
	sum := 0.0
	for range runs {
		at, times := mm1(rho, 1, 3000, 8000, rng)
		level := Quantile(slices.Sorted(slices.Values(times)), 0.9)
		beyond := make([]bool, len(times))
		for i, x := range times {
			beyond[i] = x > level
		}
		sum += math.Log(BatchDispersion(at, beyond)) / runs
	}
	if got := math.Exp(sum) / want; got < 0.5 || got > 1.1 {
		t.Errorf("dispersion above the own p90 is %.2f of that above the limit, want 0.5 to 1", got)
	}
}
