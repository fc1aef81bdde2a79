package measure

import (
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/note"
	"planner/internal/stat"
)

// Times of looks at a running trial: the first one this far into the window, the next ones this
// much later or, in a long trial, later by a twentieth of the window so far.
const (
	firstLook = 10 * time.Second
	lookEvery = 5 * time.Second
	lookShare = 20
)

// NextLook returns when, counted from its start, a trial that is at now should be looked at again
// with Hopeless.
func (t *Trial) NextLook(now time.Duration) time.Duration {
	into := now - t.Warmup
	if into < firstLook {
		return t.Warmup + firstLook
	}
	return now + max(lookEvery, into/lookShare)
}

// Hopeless returns why a running open-loop trial need not go on: it clearly misses its objective,
// or its backlog grows without end. It is empty while neither is certain, and for a trial that is
// wanted whole. records holds what is known at now, requests in flight included; those due later
// are ignored. Ending a trial so does not bias a search that uses counts: their likelihood does not
// depend on why the counting stopped.
func Hopeless(t *Trial, records []Record, now time.Duration) note.Reason {
	if t.Whole || t.Closed() || t.Rate <= 0 || now < t.Warmup+firstLook {
		return note.Reason{}
	}
	c := newCohort(t, records, now)
	for _, b := range t.Objective.Bounds {
		if reason := c.of(b.Class).clearlyMissed(b); reason.Text != "" && !c.draining() {
			return reason
		}
	}
	if c.growing() {
		return note.Because(note.Overloaded)
	}
	return note.Reason{}
}

// clearlyMissed returns the reason if a bound is clearly missed: so many requests are beyond the
// limit that a server which just meets the bound would hardly ever show as many.
func (c *cohort) clearlyMissed(b Bound) note.Reason {
	// Late requests in a burst of a trace say little of the rest of it.
	if b.Metric == ITL || b.Quantile == 0 || c.trial.replayed() {
		return note.Reason{}
	}
	n, k, failed, late := 0.0, 0.0, 0.0, 0.0
	// Ten seconds into the window few long answers have ended, so the last quarter of the warm-up,
	// when the server was hardly less busy, counts too. A measurement leaves these requests out, so
	// that the counts of a search hold only what it chose to measure; so one of the window must be
	// late, or it would show nothing.
	seen := c.due(c.from - c.trial.Warmup/4)
	for _, r := range seen {
		if known, beyond := b.Decide(r, c.end); known {
			n++
			if beyond {
				k++
				if r.Due >= c.from {
					late++
				}
			}
			if r.failed() {
				failed++
			}
		}
	}
	allowed := b.Allowed()
	if late == 0 || k <= allowed*n || chance(k, n, allowed) > falseStop {
		return note.Reason{}
	}
	if 2*failed > k {
		return note.Because(note.ClearlyFailing, failed, n, complaint(complaints(seen), tally(seen).Failures))
	}
	return note.Because(note.ClearlyMissed, b, k, n)
}

// The prior for the dispersion of a count of exceedances, which is not known while a trial runs. At
// a share of 1 % it is lognormal about stat.Generic with a standard deviation of the log of
// genericSpread, and it grows with the share to the power genericGamma: at the limit on p99.9, p99,
// p90 and p50, virtual queues and batching engines have medians of 16, 60, 110 and 200, and lie
// within a factor of five of these. falseStop is the probability of a count at which the bound is
// clearly missed: about thirty looks in three minutes make the probability of any false stop a few
// times as large.
const (
	genericShare  = 0.01
	genericSpread = 1
	genericGamma  = 0.3
	falseStop     = 0.001
)

// chance returns the probability of at least k of n requests beyond a limit that a share of allowed
// exceeds in the long run: the mean over the prior of the dispersion, to three standard deviations
// either side.
//
// A count over many clumps is negative binomial. A window shorter than a clump lies within one or
// outside: with probability allowed it starts within one, and as clumps of exponential length have
// a mean of phi/2 requests, phi being E[K^2]/E[K], this clump lasts for k requests more with
// probability exp(-2k/phi). The larger of the two probabilities is used.
func chance(k, n, allowed float64) float64 {
	sum, weights := 0.0, 0.0
	for z := -3.0; z <= 3; z += 0.5 {
		d := stat.Dispersion{At: stat.Generic * math.Exp(genericSpread*z), Level: genericShare, Gamma: genericGamma}
		weight := math.Exp(-z * z / 2)
		weights += weight
		sum += weight * max(d.CountAbove(k, n, allowed), allowed*math.Exp(-2*k/d.Phi(allowed)))
	}
	return sum / weights
}

// Blocks and limits of the test for a growing backlog.
const (
	growthBlocks = 8
	growthT      = 7
	growthSigmas = 3
)

// BacklogHeld is the extra variance of the number in flight in an engine that works on all requests
// at once, over rate x the time that requests hold it: what virtual batching engines show just
// within their limits.
const BacklogHeld = 6

// growing reports whether the number in flight grew over the window by more than the fluctuations
// of a server in balance explain: a straight line through eight blocks has a slope of more than
// seven times its standard error, and rises by more than three standard deviations of these
// fluctuations. The test is weak just above capacity, where a backlog grows like the root of time.
//
// A server that was empty at the start fills until requests leave as fast as they come, which takes
// as long as generating a long answer. That is no backlog, so the growth must also show after that
// time, over at least as long. Part of a trace never counts as growing: that may be one of its
// bursts.
func (c *cohort) growing() bool {
	if c.trial.Closed() || c.trial.Rate <= 0 || c.trial.replayed() && !c.whole || !c.growsFrom(c.from, 0) {
		return false
	}
	held := c.held()
	return c.growsFrom(c.from, held) && (held <= c.from || c.growsFrom(held, held))
}

// growsFrom is the test for the part of the window after from, where requests hold the engine for
// the time held.
func (c *cohort) growsFrom(from, held time.Duration) bool {
	span := c.to - from
	if span < max(firstLook, held) {
		return false
	}
	slope, t := trend(c.inFlight(from, growthBlocks))
	return t > growthT && slope*growthBlocks > growthSigmas*c.wandering(span, held)
}

// wandering returns the standard deviation of the change over a span of the number in flight at a
// server in balance. Arrivals and departures make this number a random walk whose variance is about
// the number of arrivals. An engine that works on all requests at once adds to that: each request
// slows the others down, so that a surplus takes several times as long to leave, and the change,
// over however long a span, has a further variance of [BacklogHeld] x rate x held.
func (c *cohort) wandering(span, held time.Duration) float64 {
	perSecond := float64(len(c.records)) / float64(c.to-c.from)
	return math.Sqrt(perSecond * c.burst() * (float64(span) + BacklogHeld*float64(held)))
}

// burst returns the variance of the number of arrivals over that of a Poisson process, at least 1.
// It is 1 for a whole trace, whose number of arrivals is fixed.
func (c *cohort) burst() float64 {
	w := c.trial.Workload
	if w == nil || c.whole {
		return 1
	}
	return max(w.Burst(), 1)
}

// held returns how long requests hold the engine: the 95th percentile of the time from the first
// token to the last. Waiting for the first token is left out, as a backlog makes it grow.
func (c *cohort) held() time.Duration {
	var known, longer []time.Duration
	for _, r := range c.all {
		switch {
		case r.First < 0 || r.First > c.end:
		case r.Outcome == OK && r.Last <= c.end:
			known = append(known, r.Last-r.First)
		case r.Outcome == InFlight || r.Outcome == OK:
			longer = append(longer, c.end-r.First)
		}
	}
	if len(known)+len(longer) == 0 {
		return 0
	}
	q, ok := stat.NewCensored(known, longer).Quantile(0.95)
	if !ok {
		return c.end
	}
	return q
}

// trend returns the least-squares slope of y over its index, and its t statistic, NaN if y is
// constant.
func trend(y []float64) (slope, t float64) {
	x := floats.Span(make([]float64, len(y)), 0, float64(len(y)-1))
	start, slope := gonum.LinearRegression(x, y, nil, false)
	r2 := gonum.RSquared(x, y, nil, start, slope)
	return slope, math.Copysign(math.Sqrt(r2/(1-r2)*float64(len(y)-2)), slope)
}

// ThroughputBound names the bound that every objective has besides its own: the server completes
// what arrives. In its [Count], N requests arrived in the second half of the window, and K, at
// least 0, is how many more arrived than left in it; Value is this growth of the backlog as a share
// of N, negative if it shrank.
const ThroughputBound = "throughput"

// judgeThroughput compares arrivals and departures in the second half of the window; near its
// maximum rate a batching engine fills for several times as long as it holds requests, as each
// slows the others. The bound is missed if more requests stay behind than the fluctuations of a
// server in balance explain, unless they may just fill it. No single trial can prove that it is met:
// it counts as met otherwise, and the other bounds decide.
func (c *cohort) judgeThroughput(overloaded bool) judged {
	j := judged{state: Met, slack: 1, Count: Count{Bound: ThroughputBound, Cluster: 1, Phi: 1, High: 1}}
	if overloaded {
		j.state, j.slack = Missed, -1
	}
	if c.trial.Closed() || c.trial.Rate <= 0 || c.trial.replayed() && !c.whole {
		return j
	}
	from, held := c.from+(c.to-c.from)/2, c.held()
	came, left := c.flow(from)
	for b := range came {
		j.N += int(came[b])
		j.K += int(came[b] - left[b])
	}
	grown := float64(j.K)
	if j.K = max(j.K, 0); j.N == 0 {
		return j
	}
	n := float64(j.N)
	j.Value = grown / n
	spread := max(flowSpread(came, left), c.wandering(c.to-from, held))
	if w := c.trial.Workload; w != nil && w.Turns > 1 {
		spread = max(spread, math.Sqrt(n*float64(w.Turns)))
	}
	half := stat.StudentT(1-alpha, growthBlocks-1) * spread / n
	j.Low, j.High = j.Value-half, j.Value+half
	if overloaded || j.Low > 0 && (from >= held || c.queues()) {
		j.state, j.slack = Missed, max(-j.Value, -1)
	}
	return j
}

// queues reports whether requests wait ever longer for their first token: those of the last quarter
// of the window for more than a tenth of it and three times as long as those of the first. A server
// that fills has room for them.
func (c *cohort) queues() bool {
	wait := func(from, to time.Duration) float64 {
		var all []float64
		for _, r := range c.records {
			if r.Due >= from && r.Due < to && !r.failed() {
				first := r.First
				if first < 0 {
					first = c.end
				}
				all = append(all, float64(first-r.Due))
			}
		}
		return gonum.Mean(all, nil)
	}
	quarter := (c.to - c.from) / 4
	last := wait(c.to-quarter, c.to)
	return last > 3*wait(c.from, c.from+quarter) && last > float64(c.to-c.from)/10
}

// draining reports whether clearly more requests leave than arrive: the backlog is left over from
// the warm-up, as where a cache had to be filled first, and says nothing about the rate.
func (c *cohort) draining() bool { return c.judgeThroughput(false).High < 0 }

// flow counts the requests that arrived, and those that left, in equal blocks of the window after
// from. With conversations, arrivals are those of the schedule: turns that waited for the end of
// those before them would have arrived then.
func (c *cohort) flow(from time.Duration) (came, left []float64) {
	came, left = make([]float64, growthBlocks), make([]float64, growthBlocks)
	width := float64(c.to-from) / growthBlocks
	if width <= 0 {
		return came, left
	}
	count := func(at time.Duration, in []float64) {
		if at >= from && at < c.to {
			in[min(int(float64(at-from)/width), growthBlocks-1)]++
		}
	}
	for _, r := range c.all {
		if r.Outcome != InFlight {
			count(c.left(r), left)
		}
	}
	if w := c.trial.Workload; w != nil && w.Turns > 1 {
		for _, r := range c.trial.Schedule() {
			count(r.Due, came)
		}
		return came, left
	}
	for _, r := range c.all {
		count(r.Due, came)
	}
	return came, left
}

// flowSpread estimates the standard deviation of arrivals minus departures over all blocks, at
// least 1, by the smaller of the spreads of the difference and of departures. In balance departures
// follow arrivals, and only the difference scatters; an overloaded server works at its own pace,
// whatever arrives.
func flowSpread(came, left []float64) float64 {
	difference := floats.SubTo(make([]float64, len(came)), came, left)
	spread := min(gonum.StdDev(difference, nil), gonum.StdDev(left, nil))
	return max(spread*math.Sqrt(float64(len(came))), 1)
}
