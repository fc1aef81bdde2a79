package measure

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/floats"

	"planner/internal/stat"
)

// longestGap is the longest inter-token time that is recorded as it is, an hour in microseconds;
// longer ones count as this.
const longestGap = 3600 * 1e6

// gapParts is the number of equal parts that the window is cut into, and fewestClumps how many
// clumps of long gaps a trial must show for its own estimate of their size to be used. A variance
// estimated from 20 sums is uncertain: the true one exceeds partsDoubt times the estimate in 10 %
// of cases (19 over the lower decile of the chi-squared distribution with 19 degrees of freedom).
const (
	gapParts     = 20
	fewestClumps = 20
	partsDoubt   = 1.63
)

// Gaps holds inter-token times in microseconds: all of them, to three significant digits, and those
// of each part of the window, by the time of the later token, to two.
type Gaps struct {
	*hdrhistogram.Histogram
	from, to time.Duration
	parts    []*hdrhistogram.Histogram
}

// NewGaps returns empty Gaps for the window [from, to), without parts if the window never ends.
func NewGaps(from, to time.Duration) *Gaps {
	g := &Gaps{Histogram: hdrhistogram.New(1, longestGap, 3), from: from, to: to}
	if to > from && to < math.MaxInt64 {
		for range gapParts {
			g.parts = append(g.parts, hdrhistogram.New(1, longestGap, 2))
		}
	}
	return g
}

// Add records n gaps of the same length whose later tokens came at the time at of the trial.
func (g *Gaps) Add(at, gap time.Duration, n int) {
	us := min(max(int64(gap.Round(time.Microsecond)/time.Microsecond), 1), longestGap)
	// The value is in range, so there is no error to see.
	_ = g.RecordValues(us, int64(n))
	if at >= g.from && at < g.to && g.parts != nil {
		_ = g.parts[g.part(at)].RecordValues(us, int64(n))
	}
}

// AddRow records each gaps of the same length for each of n consecutive steps; those of the first
// step end at the time at.
func (g *Gaps) AddRow(at, gap time.Duration, n, each int) {
	for n > 0 {
		now := n
		if at < g.to && g.parts != nil && gap > 0 {
			end := g.from
			if at >= g.from {
				end += time.Duration(float64(g.to-g.from) * float64(1+g.part(at)) / gapParts)
			}
			now = min(n, 1+max(0, int((end-at-1)/gap)))
		}
		g.Add(at, gap, now*each)
		at, n = at+time.Duration(now)*gap, n-now
	}
}

// part returns the index of the part of the window that a time within it falls into.
func (g *Gaps) part(at time.Duration) int {
	return int(float64(at-g.from) / float64(g.to-g.from) * gapParts)
}

// clump returns how many gaps beyond a limit count as one: partsDoubt times the larger of their
// dispersion and that of the gaps beyond level, a quantile of the trial's own which it is sure to
// have exceeded. NaN if either is unknown, or if the parts show less than half of the gaps beyond,
// as most are so close above that rounding hides them.
func (g *Gaps) clump(limit, level, request time.Duration) float64 {
	worst := 1.0
	for _, above := range []time.Duration{limit, level} {
		beyond, inParts := float64(g.Above(above)), 0.0
		share := beyond / float64(g.TotalCount())
		worst = max(worst, g.dispersion(func(h *hdrhistogram.Histogram) float64 {
			n := float64(gapsAbove(h, above))
			inParts += n
			return n
		}, share*(1-share), request))
		if 2*inParts < beyond {
			return math.NaN()
		}
	}
	return partsDoubt * worst
}

func (c *cohort) lasting() time.Duration {
	if s := c.latency(E2E); len(s.values) > 0 {
		return mean(s.values)
	}
	return 0
}

// dispersion returns how many times larger the variance of a sum over the gaps is than for as many
// independent gaps: the largest of the ratios by 5, 10 and 20 parts of the window, since short
// parts hide clumps and few parts show them poorly. It is NaN if fewer than five parts have gaps,
// if all gaps are alike, or if requests last longer than half a part: what slows them may last as
// long.
func (g *Gaps) dispersion(sum func(*hdrhistogram.Histogram) float64, variance float64, request time.Duration) float64 {
	var sums, counts []float64
	for _, h := range g.parts {
		if n := h.TotalCount(); n > 0 {
			sums, counts = append(sums, sum(h)), append(counts, float64(n))
		}
	}
	if len(sums) < 5 || !(variance > 0) || 2*gapParts*request > g.to-g.from {
		return math.NaN()
	}
	mean := floats.Sum(sums) / floats.Sum(counts)
	worst := 0.0
	for _, joined := range []int{1, 2, 4} {
		squares, batches := 0.0, len(sums)/joined
		for b := range batches {
			from, to := b*joined, (b+1)*joined
			off := floats.Sum(sums[from:to]) - mean*floats.Sum(counts[from:to])
			squares += off * off / floats.Sum(counts[from:to])
		}
		if batches >= 5 {
			worst = max(worst, squares/float64(batches-1)/variance)
		}
	}
	return worst
}

// judgeGaps decides a bound on inter-token times. A step of the engine makes a gap in all answers
// at once, a long one if it processes a long prompt. A trial with many such clumps, and no
// failures, shows by itself how many gaps count as one. Otherwise a request counts as one
// observation however many tokens it has, with the dispersion of the time per token. Tokens that a
// failed request still owed count as beyond the limit on a quantile; a mean leaves them out.
func (c *cohort) judgeGaps(b Bound, o *Observation) judged {
	j := judged{allowed: b.Allowed(), Count: Count{Bound: b.String(), Cluster: 1, Phi: 1, Whole: c.whole}}
	if o.Gaps == nil || o.Gaps.TotalCount() == 0 {
		return j.empty()
	}
	j.N, j.K = int(o.Gaps.TotalCount()), o.Gaps.Above(b.Limit)
	requests, failed, owed := 0, 0, 0
	for _, r := range c.records {
		switch {
		case r.failed():
			failed++
			owed += max(r.Asked-max(r.Output, 1), 1)
		case r.First >= 0 && r.Output > 1:
			requests++
		}
	}
	if b.Quantile == 0 {
		// The requests are the observations.
		requests, limit := max(requests, 1), float64(b.Limit/time.Microsecond)
		j.allowed, j.Cluster = 1, max(float64(j.N)/float64(requests), 1)
		if !j.Whole {
			total := func(h *hdrhistogram.Histogram) float64 { return h.Mean() * float64(h.TotalCount()) }
			j.Phi = stat.Blend(stat.Generic, o.Gaps.dispersion(total, o.Gaps.StdDev()*o.Gaps.StdDev(), c.lasting())/j.Cluster)
		}
		return c.mean(j, o.Gaps.Mean()/limit, o.Gaps.StdDev()/limit, requests, failed, 0)
	}
	j.N, j.K, requests = j.N+owed, j.K+owed, requests+failed
	// The tokens that a failed request owed all fail at once, and are in no part of the window.
	j.Cluster = max(float64(j.N)/float64(max(requests, 1)), float64(owed)/float64(max(failed, 1)), 1)
	q := time.Duration(o.Gaps.ValueAtQuantile(b.Quantile*100)) * time.Microsecond
	j.slack = slackOf(q, b.Limit)
	if j.Whole {
		return j.share(1, 1)
	}
	phi, most := float64(stat.Generic), 1.0
	if s := c.latency(TPOT); len(s.values) > 0 {
		phi = s.dispersion(b.Quantile, math.NaN())
		if failed == 0 {
			most = gapTail(o.Gaps.Histogram, b.Quantile, s.tail(b.Quantile).phi, j.Cluster).beyond(b.Limit)
		}
	}
	if clump := o.Gaps.clump(b.Limit, q, c.lasting()); failed == 0 && float64(j.K) > fewestClumps*clump {
		j.Cluster = min(j.Cluster, clump)
		phi = clump / j.Cluster
	}
	return j.share(phi, most)
}

// Above counts the gaps that are longer than a limit.
func (g *Gaps) Above(limit time.Duration) int { return gapsAbove(g.Histogram, limit) }

func gapsAbove(h *hdrhistogram.Histogram, limit time.Duration) int {
	n := int64(0)
	for _, bar := range h.Distribution() {
		if bar.From > int64(limit/time.Microsecond) {
			n += bar.Count
		}
	}
	return int(n)
}
