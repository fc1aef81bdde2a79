package decide

import (
	"cmp"
	"math"
	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
	"slices"
	"time"
)

// leastCounted is the least number of trials with counts for an interval.
const leastCounted = 3

// countedRate returns the posterior of the maximum rate, as a search with the same trials would have reported
// it, from trials that counted requests beyond the limits in question or whose summaries imply the counts;
// false if there are too few, or none met the limits.
func countedRate(cfg *config.Config, trials []measure.Measurement) (search.Result, bool) {
	var counts []measure.Measurement
	slo, middle, longest := cfg.Objective, 0.0, time.Duration(0)
	rated := list.Filter(trials, func(m measure.Measurement) bool {
		tells := m.Valid || m.Drifted() || m.Missed() && slices.Equal(m.Trial.Objective.Bounds, slo.Bounds) // by its own verdict
		return tells && m.Ran() && !m.Trial.Closed() && m.Trial.Rate > 0
	})
	read := slices.ContainsFunc(rated, func(m measure.Measurement) bool { return !countsOf(&m, slo) })
	if read && slo.Errors >= 0 { // limitByErrors then applies it
		slo.Errors = -1
		for i := range rated {
			m := &rated[i]
			ended := m.Requests - m.Failed
			m.Achieved *= float64(m.Requests) / float64(max(ended, 1)) // as if those that failed had completed
			m.Requests, m.Failed = ended, 0
		}
	}
	shortest := list.Least(list.Map(trials, func(m measure.Measurement) time.Duration { return m.TTFT.Mean })) // which hardly includes queueing
	for i := range rated {
		if m, ok := readCounts(&rated[i], slo, shortest); ok {
			counts = append(counts, m)
			middle, longest = middle+math.Log(m.Trial.Rate), max(longest, m.Trial.Window)
		}
	}
	if len(counts) < leastCounted {
		return search.Result{}, false
	}
	s := search.NewMaxRate(search.MaxRateConfig{
		// A place to look, with next to no information about the rate.
		Prior:    search.Prior{Knobs: counts[0].Trial.Knobs, Rate: math.Exp(middle / float64(len(counts))), Spread: 1},
		Workload: cmp.Or(counts[0].Trial.Workload, &workload.Workload{}), SLO: slo, Seed: cfg.Workload.Seed,
		Precision: cfg.Search.Precision, Confidence: cfg.Search.Confidence,
		// No trial can be added to results on disk, and the longest must do.
		Budget: 1, Window: longest, MinRequests: 1, Steady: cfg.Simulated() && !read,
	})
	for _, m := range counts {
		s.Observe(m)
	}
	s.Next()
	r := s.Result()
	r.Warnings = append(r.Warnings, note.If(read, note.CountsRead)...)
	return r, r.Outcome != search.Searching && r.Estimate.Safe > 0 // if none met the limits the search would go on to lone requests
}

// readCounts returns a trial with counts for all that an objective bounds, those that it lacks derived from its
// summaries; false if these do not determine one. The ratio of completed to sent requests has the error of a
// Poisson count. It is corrected for requests in flight, which even a server that keeps up has at the end: they
// take prompt, a TTFT without queueing, and the time of their further tokens.
func readCounts(m *measure.Measurement, slo measure.SLO, prompt time.Duration) (measure.Measurement, bool) {
	if countsOf(m, slo) {
		return *m, true
	}
	out := *m
	out.Counts, out.Trial.Objective, out.Trial.Window = nil, slo, max(m.Duration, 0)
	ended := m.Requests - m.Failed
	for _, b := range slo.Bounds {
		if b.Metric == measure.Goodput { // summaries say nothing about several limits at once
			return out, false
		}
		l := m.Of(b.Class).Latency(b.Metric)
		c := measure.Count{Bound: b.String(), N: cmp.Or(l.N, ended)}
		c.Cluster = max(float64(c.N)/float64(max(ended, 1)), 1)
		if b.Quantile == 0 {
			c.Value = float64(l.Mean) / float64(b.Limit)
		} else {
			share, ok := l.Beyond(b.Limit, b.Quantile)
			if !ok {
				return out, false
			}
			c.K = int(math.Round(share * float64(c.N)))
		}
		if c.N <= 0 || c.Value < 0 {
			return out, false
		}
		out.Counts = append(out.Counts, c)
	}
	out.Counts = append(out.Counts, measure.Count{Bound: measure.ErrorsBound, N: m.Requests, K: m.Failed, Cluster: 1})
	flow, told := m.Count(measure.ThroughputBound)
	if !told {
		flow = measure.Count{Bound: measure.ThroughputBound}
		sent := m.Sent
		if !(sent > 0) {
			sent = m.Trial.Workload.MeanRate(m.Trial.Rate)
		}
		if m.Achieved > 0 && ended > 0 {
			tokens := max(m.E2E.Mean-m.TTFT.Mean, 0)
			if m.E2E.Mean <= 0 || m.TTFT.Mean <= 0 {
				tokens = time.Duration(max(m.MeanOutput-1, 0) * float64(max(m.TPOT.Mean, 0)))
			}
			missing, held := 1-m.Achieved/sent, 0.0
			if m.Duration > 0 {
				held = (prompt + tokens).Seconds() / m.Duration.Seconds()
			}
			half := stat.StudentT(0.95, 7) / math.Sqrt(float64(ended))
			flow.N, flow.Value = ended/2, max(missing-held, min(missing, 0))
			flow.Low, flow.High = flow.Value-half, flow.Value+half
		}
	}
	out.Counts = append(out.Counts, flow)
	return out, true
}

// countsOf reports whether a measurement has counts for each bound of an objective.
func countsOf(m *measure.Measurement, slo measure.SLO) bool {
	for _, b := range slo.Bounds {
		if !slices.Contains(m.Trial.Objective.Bounds, b) {
			return false
		}
		if _, ok := m.Count(b.String()); !ok {
			return false
		}
	}
	return true
}
