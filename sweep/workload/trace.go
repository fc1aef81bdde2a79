package workload

import (
	"math/rand/v2"
	"slices"
	"time"

	"planner/internal/list"
)

// TraceRow is one request of a trace.
type TraceRow struct {
	Arrival        time.Duration
	Prompt, Output int
	// Shared lists leading prompt parts with an identity, nil for none.
	Shared []Segment
}

// Replayed reports whether a trace is replayed, so that the workload is the whole population and
// not a sample of it.
func (w *Workload) Replayed() bool { return w.Arrivals == Trace }

// replay makes a schedule of the trace. At a rate the rows repeat from the start if the span is
// longer than the trace; on its own clock they run once.
func (w *Workload) replay(rate float64, span time.Duration, seed uint64) []Request {
	rows := w.Replay
	if len(rows) == 0 {
		return nil
	}
	stretch, first := 1.0, 0
	period := periodOf(rows)
	if rate > 0 {
		stretch = meanRate(rows) / w.MeanRate(rate)
		first = w.start(seed)
	}
	var out []Request
	for lap := 0; ; lap++ {
		for i := range rows {
			row, at := rows[(first+i)%len(rows)], float64(lap)*period.Seconds()
			if first+i >= len(rows) {
				at += period.Seconds()
			}
			at = (at + (row.Arrival - rows[first].Arrival).Seconds()) * stretch
			if at >= span.Seconds() || (rate == 0 && lap > 0) {
				return out
			}
			r := Request{ID: len(out), Due: time.Duration(at * float64(time.Second)), Prompt: row.Prompt, Output: row.Output, Shared: row.Shared}
			r.cut(w.MaxLen)
			out = append(out, r)
		}
	}
}

// periodOf returns the time one lap of a trace takes on its own clock: its span and one mean gap,
// so that laps join without a double arrival.
func periodOf(rows []TraceRow) time.Duration {
	n := len(rows)
	if span := rows[n-1].Arrival - rows[0].Arrival; span > 0 {
		return span + span/time.Duration(n-1)
	}
	return time.Second
}

// meanRate returns the rate of a trace over one lap on its own clock, in requests per second.
func meanRate(rows []TraceRow) float64 { return float64(len(rows)) / periodOf(rows).Seconds() }

// TraceSpan returns the time from the first arrival of the trace to just after its last one.
func (w *Workload) TraceSpan() time.Duration {
	return w.Replay[len(w.Replay)-1].Arrival - w.Replay[0].Arrival + 1
}

func (w *Workload) start(seed uint64) int {
	if !w.AnyRow {
		return 0
	}
	return rand.New(rand.NewPCG(seed, streamStart)).IntN(len(w.Replay))
}

// Thin keeps each row with probability share, drawn by seed: the rate falls to that share, and what
// the traffic looks like over minutes stays, while bursts become milder (the index of dispersion of
// counts falls from 1+b to 1+share*b). The rows that remain share prefixes as before, but a thinner
// trace finds fewer of them in a cache. A share of 1 and above keeps all.
func Thin(rows []TraceRow, share float64, seed uint64) []TraceRow {
	rng := rand.New(rand.NewPCG(seed, streamThin))
	return list.Filter(rows, func(TraceRow) bool { return rng.Float64() < share })
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
