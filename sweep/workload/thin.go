package workload

import (
	"math/rand/v2"
	"slices"
	"time"
)

// streamThin is the stream of random numbers that thins a trace.
const streamThin uint64 = 12

// Thin keeps each row with probability share, by draws of seed: the rate falls
// to that share and what the traffic looks like over minutes stays, while
// bursts become milder (the index of dispersion of counts falls from 1+b to
// 1+share*b). Which rows share a prefix stays too, but a thinner trace finds
// less of it in a cache. A share of 1 and above keeps all.
func Thin(rows []TraceRow, share float64, seed uint64) []TraceRow {
	rng := rand.New(rand.NewPCG(seed, streamThin))
	var kept []TraceRow
	for _, r := range rows {
		if rng.Float64() < share {
			kept = append(kept, r)
		}
	}
	return kept
}

// AtRate stretches or shrinks the clock of rows in order of arrival so that
// their mean rate is rate requests per second, and starts it at 0. Bursts keep
// their shape: they become shorter or longer in seconds. Rows that all arrive
// at once, and a rate that is not above 0, are left as they are.
func AtRate(rows []TraceRow, rate float64) []TraceRow {
	out := slices.Clone(rows)
	if len(out) == 0 {
		return out
	}
	start := out[0].Arrival
	span := (out[len(out)-1].Arrival - start).Seconds()
	if span <= 0 || !(rate > 0) {
		return out
	}
	stretch := float64(len(out)-1) / span / rate
	for i := range out {
		out[i].Arrival = time.Duration(float64(out[i].Arrival-start) * stretch)
	}
	return out
}
