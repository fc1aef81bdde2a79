package fleet

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// DailyShape is the shape of the rate over a day.
type DailyShape string

// The shapes: a sine with its trough at 4:00 and its peak at 16:00; and a plateau from 9:00 to 17:00 with two
// hours of rise before and of fall after.
const (
	Sine   DailyShape = "sine"
	Office DailyShape = "office"
)

// Daily is a rate that rises and falls every day, from midnight on.
type Daily struct {
	Peak, Trough float64
	Shape        DailyShape
	Days         int
}

// Profile is the rate minute by minute.
func (d *Daily) Profile() workload.Profile {
	var p workload.Profile
	for minute := range max(d.Days, 1) * 24 * 60 {
		share := d.Shape.share(float64(minute%(24*60)) / 60)
		p = append(p, workload.RateStep{Rate: d.Trough + (d.Peak-d.Trough)*share, Length: time.Minute})
	}
	return p
}

// share is the position between trough and peak, from 0 to 1, at an hour of the day.
func (s DailyShape) share(hour float64) float64 {
	if s == Office {
		return min(1, max(0, min((hour-7)/2, (19-hour)/2)))
	}
	return (1 - math.Cos(2*math.Pi*(hour-4)/24)) / 2
}

// Spike multiplies the rate by a factor for some time.
type Spike struct {
	At     time.Duration
	Factor float64
	Length time.Duration
}

// ClassLimits are the limits on each request of a class.
type ClassLimits struct {
	Name string
	measure.Limits
	// Asked are the shares of requests that must be within each limit, and at Goodput within all; 0 if nothing
	// is asked.
	Asked [measure.Goodput + 1]float64
}

// LimitsOf returns the limits on single requests that an objective implies for each class. Of several quantiles
// of a latency the highest counts.
func LimitsOf(objective *measure.SLO, classes []string) []ClassLimits {
	out := make([]ClassLimits, len(classes))
	for i, name := range classes {
		l := &out[i]
		l.Name = name
		var good measure.Limits
		for _, b := range objective.Bounds {
			if b.Class != "" && b.Class != name || b.Quantile <= l.Asked[b.Metric] {
				continue
			}
			switch l.Asked[b.Metric] = b.Quantile; b.Metric {
			case measure.TTFT:
				l.TTFT = b.Limit
			case measure.TPOT:
				l.TPOT = b.Limit
			case measure.E2E:
				l.E2E = b.Limit
			case measure.Goodput:
				good = b.Limits
			}
		}
		l.TTFT, l.TPOT, l.E2E = cmp.Or(l.TTFT, good.TTFT), cmp.Or(l.TPOT, good.TPOT), cmp.Or(l.E2E, good.E2E)
	}
	return out
}

// Holds reports whether the limits include those of a bound.
func (l *ClassLimits) Holds(b measure.Bound) bool {
	if b.Metric != measure.Goodput {
		return l.Asked[b.Metric] == b.Quantile
	}
	is := func(limit, own time.Duration) bool { return limit == 0 || limit == own }
	return is(b.Limits.TTFT, l.TTFT) && is(b.Limits.TPOT, l.TPOT) && is(b.Limits.E2E, l.E2E)
}

// anyAsked reports whether the objective asks for any share within a limit.
func anyAsked(limits []ClassLimits) bool {
	return slices.ContainsFunc(limits, func(l ClassLimits) bool { return l.Asked != [measure.Goodput + 1]float64{} })
}

// Staged draws traffic that follows a profile repeat times. If any step drains, each step is a stage of its
// own.
func Staged(w *workload.Workload, p workload.Profile, repeat int, seed uint64) []Stage {
	whole := slices.Repeat(p, repeat)
	requests := w.Follow(whole, seed)
	if !slices.ContainsFunc(p, func(s workload.RateStep) bool { return s.Drain }) {
		return []Stage{{Requests: requests, Length: whole.Length()}}
	}
	out := make([]Stage, len(whole))
	begin := time.Duration(0)
	numbers := make([]int, len(requests)) // positions within their stages
	stage := make([]int, len(requests))
	k := 0
	for i := range requests {
		q := requests[i]
		for k+1 < len(whole) && q.Due >= begin+whole[k].Length {
			begin += whole[k].Length
			k++
		}
		numbers[i], stage[i] = len(out[k].Requests), k
		if parent := q.Parent - 1; parent >= 0 {
			q.Parent = 0
			if stage[parent] == k {
				q.Parent = numbers[parent] + 1
			}
		}
		q.Due -= begin
		out[k].Requests = append(out[k].Requests, q)
	}
	for i := range out {
		out[i].Length, out[i].Drain = whole[i].Length, whole[i].Drain
	}
	return out
}

// Replayed returns a trace at its own times, repeat times, with its number of requests multiplied by scale and,
// in a spike, by its factor.
func Replayed(w *workload.Workload, spike *Spike, scale float64, repeat int, seed uint64) []Stage {
	length := w.TraceSpan()
	copied := *w
	if scale != 1 || spike.Factor > 0 {
		first := w.Replay[0].Arrival
		copied.Replay = workload.Scale(w.Replay, func(at time.Duration) float64 {
			if at -= first; at >= spike.At && at < spike.At+spike.Length {
				return scale * spike.Factor
			}
			return scale
		}, seed)
	}
	requests := copied.Schedule(0, math.MaxInt64, seed)
	return slices.Repeat([]Stage{{Requests: requests, Length: length}}, repeat)
}

// RateByMinute returns the request rate of each minute of the traffic, per second.
func RateByMinute(stages []Stage) []float64 {
	var out []float64
	begin := time.Duration(0)
	for _, s := range stages {
		for i := range s.Requests {
			minute := int((begin + s.Requests[i].Due) / time.Minute)
			for len(out) <= minute {
				out = append(out, 0)
			}
			out[minute] += 1.0 / 60
		}
		begin += s.Length
	}
	return out
}
