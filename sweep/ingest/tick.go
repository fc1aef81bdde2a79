package ingest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"planner/sweep/workload"
)

// streamTick is the stream of random numbers that spreads arrivals.
const streamTick uint64 = 11

// A clock ticks if arrivals coincide more often than chance has it and the gaps
// between distinct arrivals are multiples of one length. A finer tick than
// finestTick is no matter for latencies.
const (
	finestTick    = 10 * time.Millisecond
	tickShare     = 0.02
	tickTolerance = 0.1
	tickAgreement = 0.95
	tickMultiples = 5
)

// findTick returns the grain of the clock of sorted rows, 0 if there is none
// that matters, and the share of the rows that arrive with another.
func findTick(rows []workload.TraceRow) (time.Duration, float64) {
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
	if len(gaps) < 2 || share < tickShare {
		return 0, share
	}
	tick := shortestGap(gaps)
	if tick < finestTick {
		return 0, share
	}
	near, few := 0, 0
	for _, g := range gaps {
		k := math.Round(float64(g) / float64(tick))
		if k > tickMultiples {
			continue // the error of the tick adds up
		}
		few++
		if math.Abs(float64(g)-k*float64(tick)) <= tickTolerance*float64(tick) {
			near++
		}
	}
	if float64(near) < tickAgreement*float64(few) {
		return 0, share
	}
	return tick, share
}

// shortestGap is the mean of the gaps about as short as the shortest: a tick
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

// spread draws the arrivals of each tick uniformly from it, and keeps the order
// of the rows.
func spread(rows []workload.TraceRow, tick time.Duration, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, streamTick))
	for i := 0; i < len(rows); {
		at, end := rows[i].Arrival, i
		for end < len(rows) && rows[end].Arrival == at {
			end++
		}
		width := tick
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
