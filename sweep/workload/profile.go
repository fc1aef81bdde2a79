package workload

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"planner/internal/list"
)

// Profile is a rate over time: each of its steps begins where the one before it ends.
type Profile []RateStep

// RateStep is a rate in requests per second that holds for some time; with Drain the next step
// waits until its requests have ended.
type RateStep struct {
	Rate   float64
	Length time.Duration
	Drain  bool
}

// Length is how long the profile takes.
func (p Profile) Length() time.Duration {
	return list.Sum(p, func(s RateStep) time.Duration { return s.Length })
}

// Mean is the mean rate of the profile.
func (p Profile) Mean() float64 {
	requests := list.Sum(p, func(s RateStep) float64 { return s.Rate * s.Length.Seconds() })
	return requests / max(p.Length().Seconds(), 1e-9)
}

// Peak is the largest rate of the profile.
func (p Profile) Peak() float64 {
	return list.Largest(p, func(s RateStep) float64 { return s.Rate })
}

// Times multiplies the rates from one time to another by a factor.
func (p Profile) Times(factor float64, from, to time.Duration) Profile {
	var out Profile
	at := time.Duration(0)
	for _, s := range p {
		end := at + s.Length
		for _, cut := range []time.Duration{from, to, end} {
			if cut = min(cut, end); cut <= at {
				continue
			}
			part := s
			part.Length = cut - at
			if at >= from && at < to {
				part.Rate *= factor
			}
			out = append(out, part)
			at = cut
		}
	}
	return out
}

// Split cuts the profile in two at a time.
func (p Profile) Split(at time.Duration) (before, after Profile) {
	for _, s := range p.Times(1, at, at) {
		if s.Length <= at {
			before = append(before, s)
		} else {
			after = append(after, s)
		}
		at = max(at-s.Length, 0)
	}
	return before, after
}

// Follow draws requests that arrive at the rate of a profile. As in [Workload.Schedule], a seed has
// one sequence of gaps of mean 1, each of which lasts until the integral of the rate has grown by
// it, and lengths belong to the index of a request. A trace has its own rate, and cannot follow
// another.
func (w *Workload) Follow(p Profile, seed uint64) []Request {
	turns, mean := max(w.Turns, 1), w.meanTurns()
	d := w.drawer(seed)
	gap := w.gaps(seed)
	span := p.Length()
	out := make([]Request, 0, int(p.Mean()*span.Seconds()*1.05)+16)
	begin, left := time.Duration(0), gap()
	for _, s := range p {
		conversations := s.Rate / mean // per second
		offered := conversations * s.Length.Seconds()
		passed := 0.0
		for ; left <= offered-passed; left = gap() {
			passed += left
			if due := begin + time.Duration(passed/conversations*float64(time.Second)); due < span {
				out = d.conversation(out, due, span, turns)
			}
		}
		left -= offered - passed
		begin += s.Length
	}
	return ordered(out, turns)
}

// Scale makes a trace of more or fewer rows on the same clock: factor says how many rows a row
// becomes at its arrival, a fraction being the probability of one more. Copies arrive at random
// times within half a minute of their row and within the trace, as the users of a larger service
// would.
func Scale(rows []TraceRow, factor func(time.Duration) float64, seed uint64) []TraceRow {
	rng := rand.New(rand.NewPCG(seed, streamScale))
	var out []TraceRow
	for _, r := range rows {
		at, part := r.Arrival, rng.Float64()
		first, last := max(at-time.Minute/2, rows[0].Arrival), min(at+time.Minute/2, rows[len(rows)-1].Arrival)
		for n := factor(at); n > part; n-- {
			out = append(out, r)
			r.Arrival = first + time.Duration(rng.Float64()*float64(last-first))
		}
	}
	slices.SortStableFunc(out, func(a, b TraceRow) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return out
}
