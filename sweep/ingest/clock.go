package ingest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"planner/sweep/workload"
)

// streamSpread is the stream of random numbers that spreads arrivals.
const streamSpread uint64 = 11

// A clock is coarse if at least coincidentShare of the arrivals coincide, more than
// chance has it, and the gaps between distinct arrivals are multiples of one length:
// stepAgreement of those of up to stepMultiples steps, to stepTolerance of a step. A
// finer step than finestStep is no matter for latencies.
const (
	finestStep      = 10 * time.Millisecond
	coincidentShare = 0.02
	stepTolerance   = 0.1
	stepAgreement   = 0.95
	stepMultiples   = 5
)

// clockResolution returns the step of the clock of sorted rows, 0 if there is none
// that matters, and the share of the rows that arrive with another.
func clockResolution(rows []workload.TraceRow) (time.Duration, float64) {
	var gaps []time.Duration
	together := 0
	for i := range rows {
		same := func(j int) bool { return j >= 0 && j < len(rows) && rows[j].Arrival == rows[i].Arrival }
		if same(i-1) || same(i+1) {
			together++
		}
		if i > 0 && !same(i-1) {
			gaps = append(gaps, rows[i].Arrival-rows[i-1].Arrival)
		}
	}
	share := float64(together) / float64(len(rows))
	if len(gaps) < 2 || share < coincidentShare {
		return 0, share
	}
	step := shortestGap(gaps)
	if step < finestStep {
		return 0, share
	}
	near, few := 0, 0
	for _, g := range gaps {
		k := math.Round(float64(g) / float64(step))
		if k > stepMultiples {
			continue // the error of the step adds up
		}
		few++
		if math.Abs(float64(g)-k*float64(step)) <= stepTolerance*float64(step) {
			near++
		}
	}
	if float64(near) < stepAgreement*float64(few) {
		return 0, share
	}
	return step, share
}

// shortestGap is the mean of the gaps about as short as the shortest: a step
// that is no whole number of the log's unit comes out as two lengths.
func shortestGap(gaps []time.Duration) time.Duration {
	least := slices.Min(gaps)
	sum, n := 0.0, 0
	for _, g := range gaps {
		if float64(g) < 1.5*float64(least) {
			sum += float64(g)
			n++
		}
	}
	return time.Duration(math.Round(sum / float64(n)))
}

// spread draws the arrivals of each step of the clock uniformly from it, and keeps the
// order of the rows.
func spread(rows []workload.TraceRow, step time.Duration, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, streamSpread))
	for i := 0; i < len(rows); {
		at, end := rows[i].Arrival, i
		for end < len(rows) && rows[end].Arrival == at {
			end++
		}
		width := step
		if end < len(rows) {
			width = min(width, rows[end].Arrival-at)
		}
		draws := make([]time.Duration, end-i)
		for k := range draws {
			draws[k] = at + time.Duration(rng.Int64N(int64(width)))
		}
		slices.Sort(draws)
		for k, d := range draws {
			rows[i+k].Arrival = d
		}
		i = end
	}
}
