package decide

import (
	"math"
	"slices"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// batches cuts the records of a long run at a steady rate into batches of equal time and counts the requests
// beyond a limit in each. Batches should be as long as trials, 200 to 400 s on a live engine, so that their
// counts scatter like those of trials. Records in flight count as beyond the limit. Bounds on a mean or on
// inter-token times have no such counts.
func batches(records []measure.Record, b measure.Bound, from, batch time.Duration, n int) []measure.Count {
	counts := make([]measure.Count, n)
	for i := range records {
		r := &records[i]
		if r.Due < from || r.Due >= from+time.Duration(n)*batch {
			continue
		}
		if known, beyond := b.Decide(r, math.MaxInt64); known {
			c := &counts[(r.Due-from)/batch]
			c.N++
			if beyond {
				c.K++
			}
		}
	}
	return counts
}

// dispersionOf estimates the dispersion of exceedance counts as a function of their share, from the batches of
// several long runs at one rate each. A function of the share also holds for an engine whose maximum rate
// differs from the simulated one. A run counts if enough requests were beyond the limit, but not too many: the
// dispersion of its counts relative to n p (1-p) is one point. A line through the logarithm of these over that
// of ln(1-p) gives the value at the level and the slope, limited to 0.2 to 1.5; with shares too close together
// the slope is [stat.Growth]. false means that no run qualified.
func dispersionOf(runs [][]measure.Count, level float64) (stat.Dispersion, bool) {
	const fewest = 20
	// Far beyond the limit nearly all requests are late, and counts cannot scatter.
	highest := max(0.3, 1-(1-level)*(1-level))
	var x, y, weight []float64
	for _, run := range runs {
		n, k := 0.0, 0.0
		for _, c := range run {
			n, k = n+float64(c.N), k+float64(c.K)
		}
		if len(run) < 3 || k < fewest || k > highest*n {
			continue
		}
		p, sum := k/n, 0.0
		for _, c := range run {
			d := float64(c.K) - p*float64(c.N)
			sum += d * d
		}
		phi := sum / float64(len(run)-1) / (p * (1 - p) * n / float64(len(run)))
		x, y = append(x, math.Log(math.Log1p(-p)/math.Log1p(-level))), append(y, math.Log(max(phi, 1)))
		weight = append(weight, float64(len(run)-1))
	}
	if len(x) == 0 {
		return stat.Dispersion{}, false
	}
	gamma := stat.Growth
	if slices.Max(x)-slices.Min(x) > math.Ln2 {
		_, slope := gonum.LinearRegression(x, y, weight, false)
		gamma = min(max(slope, 0.2), 1.5)
	}
	return stat.Dispersion{At: math.Exp(gonum.Mean(y, weight) - gamma*gonum.Mean(x, weight)), Level: level, Gamma: gamma}, true
}
