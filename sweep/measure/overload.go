package measure

import (
	"fmt"
	"math"
	"time"

	"planner/internal/stat"
)

// Looks at a running trial: the first one this far into the window, the next
// ones this much later, or, in a long trial, a share of the window so far later.
const (
	firstLook = 10 * time.Second
	lookEvery = 5 * time.Second
	lookShare = 20
)

// NextLook is when a trial that is at now should be looked at again with
// Hopeless, counted from its start.
func (t *Trial) NextLook(now time.Duration) time.Duration {
	into := now - t.Warmup
	if into < firstLook {
		return t.Warmup + firstLook
	}
	return now + max(lookEvery, into/lookShare)
}

// Hopeless says why a running open-loop trial need not go on: it clearly misses
// its objective, or its backlog grows without end. It is empty while neither is
// certain. records holds what is known at now, requests in flight included;
// those due later are ignored; a trial that is wanted whole goes on. Ending a trial by it does not bias a search that
// uses counts, as the likelihood does not know why the counting stopped.
func Hopeless(t *Trial, records []Record, now time.Duration) string {
	if t.Whole || t.Closed() || t.Rate <= 0 || now < t.Warmup+firstLook {
		return ""
	}
	c := newCohort(t, records, now)
	for _, b := range t.Objective.Bounds {
		if reason := c.clearlyMissed(b); reason != "" {
			return reason
		}
	}
	if c.growing() {
		return "overloaded: the backlog kept growing"
	}
	return ""
}

// clearlyMissed tests whether even the lower bound of the share beyond the
// limit is above twice what is allowed. The dispersion is the generic one at
// the share seen, as the question is asked again and again.
func (c *cohort) clearlyMissed(b Bound) string {
	if b.Metric == ITL || b.Quantile == 0 {
		return ""
	}
	n, k := 0.0, 0.0
	for _, r := range c.records {
		if known, beyond := b.decide(r, c.end); known {
			n++
			if beyond {
				k++
			}
		}
	}
	allowed := b.Allowed()
	phi := stat.Dispersion{At: stat.Generic, Level: allowed, Gamma: 0.5}.Phi((k + 0.5) / (n + 1))
	low := stat.ShareLower(k/phi, n/phi, alpha)
	if low <= min(2*allowed, (1+allowed)/2) {
		return ""
	}
	return fmt.Sprintf("%s is missed: %.0f of %.0f requests beyond the limit", b, k, n)
}

// Blocks and limits of the test for a growing backlog.
const (
	growthBlocks = 8
	growthT      = 2.5
	growthSigmas = 6
)

// growing tests whether the number in flight grew over the window: a slope over
// eight blocks that is 2.5 times its standard error and a growth above six times
// the root of the arrivals. Three times was too little: a batching engine whose
// requests hold it up for long wanders that far at the rate that just meets a
// limit on TPOT, in a third of the trials; with six one in fifty does, and a
// real overload is stopped no later. The test is weak just above capacity, where
// a backlog grows like the root of time.
//
// A server that was empty at the start fills until requests leave as fast as
// they come, which takes as long as generating a long answer. That is no
// backlog, so the growth must show behind it, too.
func (c *cohort) growing() bool {
	if c.trial.Closed() || c.trial.Rate <= 0 || !c.growsFrom(c.from) {
		return false
	}
	filled := c.filled()
	return filled <= c.from || c.growsFrom(filled)
}

// growsFrom tests the part of the window behind from.
func (c *cohort) growsFrom(from time.Duration) bool {
	if c.to-from < firstLook {
		return false
	}
	arrivals := float64(len(c.records)) * float64(c.to-from) / float64(c.to-c.from)
	slope, t := trend(c.inFlight(from, growthBlocks))
	return t > growthT && slope*growthBlocks > growthSigmas*math.Sqrt(arrivals)
}

// filled is when a server that was empty at the start has filled: after the time
// from the first token to the last that 95 % of the requests stay below. Waiting
// for the first token is left out: it is what a backlog makes grow.
func (c *cohort) filled() time.Duration {
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

// trend is the least-squares slope of y over its index, and its t statistic.
func trend(y []float64) (slope, t float64) {
	n := float64(len(y))
	middle, mean := (n-1)/2, 0.0
	for _, v := range y {
		mean += v / n
	}
	xx := 0.0
	for i, v := range y {
		d := float64(i) - middle
		xx += d * d
		slope += d * v
	}
	slope /= xx
	rest := 0.0
	for i, v := range y {
		e := v - mean - slope*(float64(i)-middle)
		rest += e * e
	}
	return slope, slope / max(math.Sqrt(rest/(n-2)/xx), math.SmallestNonzeroFloat64)
}
