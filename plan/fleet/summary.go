package fleet

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

// EpisodeSummary summarises an episode.
type EpisodeSummary struct {
	Seed             uint64
	Requests, Failed int
	// Within is the share of the requests that succeeded within all limits of their class; Classes are the
	// outcomes by class.
	Within  float64
	Classes []ClassAnswer
	// Replicas is the mean number of replicas, starting or ready, over the episode; Peak is the most at once,
	// draining ones included.
	Replicas float64
	Peak     int
	// ReplicaHours are the hours for which replicas held GPUs, ready or not.
	ReplicaHours float64
	Duration     time.Duration
	Course
	Tallies
}

// Cause is why requests missed their limits.
type Cause string

// The causes. Late: the autoscaler asked for replicas only later. Burst: it never did, or there is none.
// Ceiling: no more may be asked for, or no node has room. Drain: a replica that was scaled in ended before the request.
const (
	StartUpCause Cause = "start-up"
	Late         Cause = "trigger"
	Ceiling      Cause = "ceiling"
	Failure      Cause = "failure"
	Drain        Cause = "drain"
	Burst        Cause = "burst beyond capacity"
)

// Miss is a period in which requests missed their limits, less than a minute apart.
type Miss struct {
	Start    float64 `json:"start_s"`
	Length   float64 `json:"length_s"`
	Requests int     `json:"requests"`
	Cause    Cause   `json:"cause"`
}

// breakOff is the longest gap, in seconds, between two requests of one period of misses.
const breakOff = 60.0

// summarize summarises the episode of a scenario.
func summarize(s *Scenario, e *Episode) EpisodeSummary {
	out := EpisodeSummary{Seed: s.Seed, Requests: len(e.Records), Duration: seconds(e.End), Course: Course{Decisions: e.Decisions}, Tallies: e.Tallies}
	classes := tallies(s.Limits)
	var missed []*measure.Record
	within := 0
	for i := range e.Records {
		r := &e.Records[i]
		if r.Outcome != measure.OK {
			out.Failed++
		}
		if classes[r.Class].add(r) {
			within++
		} else {
			missed = append(missed, r)
		}
	}
	out.Within = float64(within) / float64(max(len(e.Records), 1))
	out.Classes = list.Map(classes, func(t classTally) ClassAnswer { return t.share() })
	slices.SortStableFunc(missed, func(a, b *measure.Record) int { return cmp.Compare(a.Due, b.Due) })
	out.Misses = misses(s, e, missed)
	out.count(e)
	return out
}

// classTally counts the requests of a class that are within its limits.
type classTally struct {
	of               *ClassLimits
	limits           []measure.Bound
	requests, within int
	each             []int
}

func tallies(limits []ClassLimits) []classTally {
	return list.Times(len(limits), func(i int) classTally {
		parts := limits[i].Parts(0)
		return classTally{of: &limits[i], limits: parts, each: make([]int, len(parts))}
	})
}

// add counts a request and reports whether it succeeded within all limits.
func (t *classTally) add(r *measure.Record) bool {
	t.requests++
	good := r.Outcome == measure.OK
	for i, b := range t.limits {
		if _, beyond := b.Decide(r, r.Last); beyond || r.Outcome == measure.InFlight {
			good = false
		} else {
			t.each[i]++
		}
	}
	if good {
		t.within++
	}
	return good
}

// share returns the outcome of the class, without intervals.
func (t *classTally) share() ClassAnswer {
	of := func(n int) Estimate { return Estimate{Value: float64(n) / float64(max(t.requests, 1))} }
	out := ClassAnswer{Class: t.of.Name, Requests: t.requests, Attainment: of(t.within)}
	add := func(m measure.Metric, limit time.Duration, within int) {
		out.Limits = append(out.Limits, LimitAnswer{Metric: m.String(), Limit: limit, Share: of(within), Asked: t.of.Asked[m]})
	}
	for i, b := range t.limits {
		add(b.Metric, b.Limit, t.each[i])
	}
	if len(t.limits) > 1 || t.of.Asked[measure.Goodput] > 0 {
		add(measure.Goodput, 0, t.within)
	}
	return out
}

func (out *EpisodeSummary) count(e *Episode) {
	existing, holding := 0.0, 0.0
	for i, l := range e.Levels {
		end := e.End
		if i+1 < len(e.Levels) {
			end = min(e.Levels[i+1].At, e.End)
		}
		length := max(end-l.At, 0)
		existing += float64(l.Starting+l.Ready) * length
		holding += float64(l.Starting+l.Ready+l.Draining) * length
		out.Peak = max(out.Peak, l.Starting+l.Ready+l.Draining)
	}
	out.Replicas = existing / max(e.End, 1e-9)
	out.ReplicaHours = holding / 3600
}

// misses groups requests that missed, ordered by due time, into periods and finds the cause of each.
func misses(s *Scenario, e *Episode, missed []*measure.Record) []Miss {
	var out []Miss
	level := 0
	causes := map[Cause]int{}
	conclude := func() {
		m := &out[len(out)-1]
		for _, c := range []Cause{Failure, Drain, Ceiling, StartUpCause, Late, Burst} {
			if causes[c] > causes[m.Cause] {
				m.Cause = c
			}
		}
		if m.Cause == Late && !e.grew(m.Start, m.Start+m.Length+2*breakOff) {
			m.Cause = Burst
		}
		clear(causes)
	}
	for _, r := range missed {
		at := r.Due.Seconds()
		if n := len(out); n == 0 || at > out[n-1].Start+out[n-1].Length+breakOff {
			if n > 0 {
				conclude()
			}
			out = append(out, Miss{Start: at})
		}
		m := &out[len(out)-1]
		m.Length, m.Requests = at-m.Start, m.Requests+1
		for level+1 < len(e.Levels) && e.Levels[level+1].At <= at {
			level++
		}
		causes[e.causeOf(&s.Policy, r, &e.Levels[level])]++
	}
	if len(out) > 0 {
		conclude()
	}
	return out
}

// causeOf returns why a request missed, by the replicas at its due time.
func (e *Episode) causeOf(p *Policy, r *measure.Record, l *Level) Cause {
	switch {
	case r.Outcome == measure.Reset && e.Failures == 0:
		return Drain
	case r.Outcome == measure.Reset || l.Replacing > 0:
		return Failure
	case l.Pending > 0:
		return Ceiling
	case l.Starting > 0:
		return StartUpCause
	case p.Replicas > 0 || p.Autoscaler.Kind == None:
		return Burst
	case l.Asked >= p.Max:
		return Ceiling
	}
	return Late
}

func (e *Episode) grew(from, to float64) bool {
	return slices.ContainsFunc(e.Decisions, func(d Decision) bool { return d.At >= from && d.At <= to && d.To > d.From })
}

// MinuteRow is one minute of an episode.
type MinuteRow struct {
	At float64 `json:"at_s"`
	// Rate is the rate of requests due in this minute.
	Rate     float64 `json:"rate_per_s"`
	Asked    int     `json:"asked"`
	Starting int     `json:"starting"`
	Ready    int     `json:"ready"`
	// InFlight counts the requests in progress at its end.
	InFlight int `json:"in_flight"`
	// P50 and P99 are quantiles of the TTFT of requests due in this minute, unknown if there are none.
	P50 time.Duration `json:"ttft_p50_ms"`
	P99 time.Duration `json:"ttft_p99_ms"`
	// Missed counts the requests due in this minute that missed a limit.
	Missed int `json:"missed"`
}

// Timeline summarises an episode minute by minute.
func (e *Episode) Timeline(limits []ClassLimits) []MinuteRow {
	n := int(e.End/60) + 1
	out := make([]MinuteRow, n)
	ttft := make([][]time.Duration, n)
	judges := tallies(limits)
	for i := range e.Records {
		r := &e.Records[i]
		k := min(int(r.Due/time.Minute), n-1)
		out[k].Rate += 1.0 / 60
		if !judges[r.Class].add(r) {
			out[k].Missed++
		}
		if v, ok := r.TTFT(); ok {
			ttft[k] = append(ttft[k], v)
		}
		last := n - 1
		if r.Last >= 0 {
			last = min(int(r.Last/time.Minute), n-1)
		} else if r.Outcome != measure.InFlight {
			last = k
		}
		for ; k < last; k++ {
			out[k].InFlight++
		}
	}
	level := 0
	for k := range out {
		for level+1 < len(e.Levels) && e.Levels[level+1].At <= float64(60*(k+1)) {
			level++
		}
		slices.Sort(ttft[k])
		m, l := &out[k], &e.Levels[level]
		m.At, m.Asked, m.Starting, m.Ready = float64(60*k), l.Asked, l.Starting+l.Pending, l.Ready
		m.P50, m.P99 = at(ttft[k], 0.5), at(ttft[k], 0.99)
	}
	return out
}

func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return measure.Never
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
