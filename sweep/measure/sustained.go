package measure

import (
	"math"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/stat"
)

// ThroughputBound names the bound that every objective has beside its own: the server
// completes what arrives. Of its [Count], N requests came in the second half of the window, and K
// more than that left behind were in the server at its end than at its beginning; Value is that
// growth of the backlog as a share of what came, below 0 where it shrank.
const ThroughputBound = "throughput"

// judgeThroughput counts what came and what left in the second half of the window: near its
// maximum rate a batching engine fills for several times as long as it holds requests, as each makes
// the others slower. It misses the bound where more stayed than the wandering of a server in balance
// explains; that it meets it no single trial can prove, and the others decide.
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
	if overloaded || j.Low > 0 && from >= held {
		j.state, j.slack = Missed, max(-j.Value, -1)
	}
	return j
}

// draining reports whether the server lets leave more than comes: what waits was left by the
// warm-up, as where a cache had to be filled first, and says nothing of the rate.
func (c *cohort) draining() bool { return c.judgeThroughput(false).High < 0 }

// flow counts the requests that came, and those that left, in equal blocks of the
// window behind from. Turns of a conversation that wait for the end of those before them
// would have come when the schedule says.
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

// flowSpread is the standard deviation of what left less what came, over all blocks, as
// far as they tell. A server in balance lets leave what came, and only the difference
// scatters; one that is overloaded works at its own pace, whatever came.
func flowSpread(came, left []float64) float64 {
	difference := make([]float64, len(came))
	for b := range came {
		difference[b] = came[b] - left[b]
	}
	spread := min(gonum.StdDev(difference, nil), gonum.StdDev(left, nil))
	return max(spread*math.Sqrt(float64(len(came))), 1)
}
