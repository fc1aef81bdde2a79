package measure

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/list"
	"planner/internal/stat"
)

// Unresolved marks a statistic that the sample cannot give.
const Unresolved time.Duration = -1

// Summary describes a latency. A statistic that the sample cannot resolve is
// Unresolved.
type Summary struct {
	Mean time.Duration `json:"mean"`  // in milliseconds, as all times here
	P50  time.Duration `json:"p50"`   // the median
	P90  time.Duration `json:"p90"`   // 90 % are below
	P95  time.Duration `json:"p95"`   // 95 % are below
	P99  time.Duration `json:"p99"`   // 99 % are below; null where the sample does not resolve it
	P999 time.Duration `json:"p99.9"` // 99.9 % are below, likewise
	N    int           `json:"n"`     // the number of values
	// Within holds the interval around P50, and so on; zero where there is none.
	Within intervals `json:",embed"`
}

// Slowest estimates how long the slowest requests take: the highest of P99, P95 and P90 that the
// sample resolves, or else twice the mean; 0 if nothing is known.
func (s *Summary) Slowest() time.Duration {
	for _, q := range []time.Duration{s.P99, s.P95, s.P90} {
		if q > 0 {
			return q
		}
	}
	return max(2*s.Mean, 0)
}

type intervals struct {
	P50  Interval `json:"p50_interval,omitzero"`   // 90 % interval of the median
	P90  Interval `json:"p90_interval,omitzero"`   // 90 % interval
	P95  Interval `json:"p95_interval,omitzero"`   // 90 % interval
	P99  Interval `json:"p99_interval,omitzero"`   // 90 % interval
	P999 Interval `json:"p99.9_interval,omitzero"` // 90 % interval
}

// Interval holds the low and the high end of an interval, each at 95 % confidence
// (together 90 %). An end that the sample cannot give is Unresolved.
type Interval [2]time.Duration

// UnresolvedSummary returns the summary of no values.
func UnresolvedSummary() Summary {
	return Summary{Mean: Unresolved, P50: Unresolved, P90: Unresolved, P95: Unresolved, P99: Unresolved, P999: Unresolved}
}

// Statistics lists the quantiles of a [Summary], in ascending order; 0 is the mean.
var Statistics = []float64{0, 0.50, 0.90, 0.95, 0.99, 0.999}

// at returns the place of a statistic and of the interval around it; nil for what a Summary does
// not hold.
func (s *Summary) at(quantile float64) (*time.Duration, *Interval) {
	i, w := slices.Index(Statistics, quantile), &s.Within
	if i < 0 {
		return nil, nil
	}
	return [...]*time.Duration{&s.Mean, &s.P50, &s.P90, &s.P95, &s.P99, &s.P999}[i], [...]*Interval{nil, &w.P50, &w.P90, &w.P95, &w.P99, &w.P999}[i]
}

// Stat returns a statistic by its quantile, 0 for the mean; Unresolved for one
// that a Summary does not hold.
func (s *Summary) Stat(quantile float64) time.Duration {
	if at, _ := s.at(quantile); at != nil {
		return *at
	}
	return Unresolved
}

// Set sets a statistic by its quantile, 0 for the mean.
func (s *Summary) Set(quantile float64, d time.Duration) {
	if at, _ := s.at(quantile); at != nil {
		*at = d
	}
}

// Around returns the interval around a quantile; zero where there is none, or where one of its ends
// is not known.
func (s *Summary) Around(quantile float64) Interval {
	if _, in := s.at(quantile); in != nil && in[0] >= 0 && in[1] >= in[0] {
		return *in
	}
	return Interval{}
}

// Beyond estimates the share of the requests above a limit from the known quantiles, as if the tail
// were exponential between and beyond them; false if no quantile is known, or if the limit is above
// all of them and meant for a higher one.
func (s *Summary) Beyond(limit time.Duration, quantile float64) (share float64, ok bool) {
	type point struct{ depth, y float64 }
	var known []point
	highest := 0.0
	for _, q := range Statistics[1:] {
		if y := s.Stat(q); y > 0 {
			known, highest = append(known, point{-math.Log1p(-q), float64(y)}), q
		}
	}
	switch n := len(known); {
	case n == 0 || highest < quantile && float64(limit) > known[n-1].y:
		return 0, false
	case n == 1:
		known = append([]point{{}}, known...)
	}
	above := list.Count(known, func(p point) bool { return p.y <= float64(limit) })
	above = min(max(above, 1), len(known)-1)
	low, high := known[above-1], known[above]
	depth := low.depth + (float64(limit)-low.y)*(high.depth-low.depth)/max(high.y-low.y, 1)
	return math.Exp(-max(depth, 0)), true
}

// Confidence of each end of an interval, and of a verdict: 1 - alpha.
const alpha = 0.05

// beyondFloor is how many requests must be expected beyond a quantile for a sample to resolve it:
// at the generic dispersion that is 0.3 independent clumps, and with less no interval holds. A
// trace replayed whole needs one request.
const beyondFloor = 12

// series holds one latency of the requests that have it, in order of Due, and the ages of those in
// flight, which will have a larger one.
type series struct {
	at     []float64
	values []time.Duration
	longer []time.Duration
	sorted *stat.Censored[time.Duration]
	whole  bool
}

func (c *cohort) latency(m Metric) *series { return c.figures(Bound{Metric: m}) }

// figures collects what a bound compares with its limit; latencies are cached.
func (c *cohort) figures(b Bound) *series {
	if b.Metric != Goodput && c.drawn[b.Metric] != nil {
		return c.drawn[b.Metric]
	}
	s := c.collect(func(r *Record) (time.Duration, bool, bool) { return b.figure(r, c.end) })
	if b.Metric != Goodput {
		c.drawn[b.Metric] = s
	}
	return s
}

// collect makes a series of a figure of each request that has one. An open figure is a lower bound.
func (c *cohort) collect(figure func(*Record) (v time.Duration, open, ok bool)) *series {
	n := len(c.records)
	s := &series{whole: c.whole, at: make([]float64, 0, n), values: make([]time.Duration, 0, n)}
	for _, r := range c.records {
		switch v, open, ok := figure(r); {
		case !ok:
		case open:
			s.longer = append(s.longer, v)
		default:
			s.at = append(s.at, c.position(r))
			s.values = append(s.values, v)
		}
	}
	s.sorted = stat.NewCensored(s.values, s.longer)
	return s
}

// quantile returns a quantile, Unresolved if it lies beyond what was seen.
func (s *series) quantile(q float64) time.Duration {
	if v, ok := s.sorted.Quantile(q); ok {
		return v
	}
	return Unresolved
}

// Resolves reports whether a sample of n requests gives a quantile, 0 for the mean: enough of them
// lie beyond it. One is enough of a whole population.
func Resolves(n int, quantile float64, whole bool) bool {
	floor := float64(beyondFloor)
	if whole {
		floor = 1
	}
	return float64(n)*(1-quantile) >= floor*(1-1e-9)
}

func (s *series) summary() Summary {
	out := UnresolvedSummary()
	out.N = len(s.values)
	if out.N == 0 {
		return out
	}
	if float64(len(s.longer)) <= censoredShare*float64(out.N) {
		out.Mean = mean(s.values)
	}
	phi := math.NaN()
	for _, q := range Statistics[1:] {
		if !Resolves(out.N, q, s.whole) {
			continue
		}
		value, within := out.at(q)
		*value = s.quantile(q)
		if s.whole || *value == Unresolved {
			continue
		}
		if math.IsNaN(phi) || q <= ownLevel {
			phi = s.dispersion(q, math.NaN())
		}
		*within = s.interval(q, phi)
	}
	return out
}

// interval returns the interval around the quantile at dispersion phi.
func (s *series) interval(q, phi float64) Interval {
	n := len(s.values) + len(s.longer)
	low, high := stat.Dispersion{At: phi, Level: 1 - q}.QuantileRanks(n, q, alpha)
	in := Interval{Unresolved, Unresolved}
	if low >= 1 {
		in[0] = s.quantile(float64(low) / float64(n))
	}
	if high <= n {
		in[1] = s.quantile(float64(high) / float64(n))
	}
	return in
}

// ownLevel is the quantile of a trial's own latencies above which the clumping of exceedances is
// estimated, as the limit itself may be exceeded too rarely to tell, and ownFactor multiplies that
// estimate to stand for the limit.
const (
	ownLevel  = 0.90
	ownFactor = 3
)

// dispersion estimates how exceedances of a limit at the given quantile clump. own is the estimate
// from the exceedances of the limit themselves, NaN where there is none. Alone it is worthless
// exactly when it matters, as a trial that saw no clump sees no dispersion. But the queue that
// makes clumps above the limit also makes them above the trial's own p90, where every trial has
// plenty of exceedances: in M/M/1 a clump above any high level has the same law (Hooghiemstra and
// Meester). The estimate there is low, 0.6 to 0.9 of the long-run one from 2,000 to 45,000 requests
// of M/M/1, M/D/1 and M/M/8 at the rate at which their p99 is at its limit. The negative binomial
// also makes no clump at all less probable than queues do, as if their dispersion were 1.4 times as
// large. So three times the estimate, or own if larger, is blended with the generic prior.
//
// In 1,000 trials each of 80 to 1,800 s at that rate, where "met" should come in no more than 5 %,
// it came in 0 to 3 % (M/M/1), 1 to 3 % (M/D/1) and 0 to 5 % (M/M/8); with the prior alone in 8, 3
// and 19 %. Where the true dispersion is twenty times the generic one (M/M/1 at a utilisation of
// 0.91) it came in up to 20 %, with the prior alone in 70 %. No estimate can see a fault that
// strikes rarely and has nothing to do with load, such as a stall of the server once an hour, in a
// trial shorter than that.
func (s *series) dispersion(q, own float64) float64 {
	level := stat.Quantile(s.sorted.Known(), min(q, ownLevel))
	low := ownFactor * stat.BatchDispersion(s.at, list.Map(s.values, func(v time.Duration) bool { return v > level }))
	if math.IsNaN(low) {
		// No value above: nothing varies, so nothing queues.
		low = 1
	}
	if own > low {
		low = own
	}
	return stat.Blend(stat.Generic, low)
}

func mean(values []time.Duration) time.Duration {
	sum := list.Sum(values, func(v time.Duration) float64 { return float64(v) })
	return time.Duration(math.Round(sum / float64(len(values))))
}

// gaps summarises inter-token times, recorded in microseconds, to the precision of the histogram.
func gaps(h *hdrhistogram.Histogram, whole bool) Summary {
	out := UnresolvedSummary()
	if h == nil || h.TotalCount() == 0 {
		return out
	}
	out.N = int(h.TotalCount())
	out.Mean = time.Duration(math.Round(h.Mean() * float64(time.Microsecond)))
	for _, q := range Statistics[1:] {
		if Resolves(out.N, q, whole) {
			out.Set(q, time.Duration(h.ValueAtQuantile(q*100))*time.Microsecond)
		}
	}
	return out
}

// tail is what a trial shows of a latency above a level of its own, which plenty of its requests
// exceed, whether or not any exceeds the limit.
type tail struct {
	level time.Duration
	// k of n are above the level; of these, ended are known in full.
	n, k, ended float64
	sumLogs     float64 // of ln(latency/level) of the k, at their age if in flight
	phi         float64
}

// tail looks above the series' own p90, or the quantile if that is lower. Requests in flight at the
// end count by their age: one older than the level is above it, and a younger one says nothing. The
// share above the level is the product-limit estimate, and n the number of requests of which a
// binomial share would have its variance (Peto's). Requests in flight add to sumLogs but not to
// ended (Beirlant and others, Extremes 10, 2007). If the quantile lies beyond what was seen there
// is no tail.
func (s *series) tail(quantile float64) tail {
	level, _ := s.sorted.Quantile(min(quantile, ownLevel))
	t := tail{level: level}
	exceeds := func(v time.Duration) bool {
		if v <= level {
			return false
		}
		t.k, t.sumLogs = t.k+1, t.sumLogs+math.Log(float64(v)/float64(level))
		return true
	}
	beyond := list.Map(s.values, exceeds)
	t.ended = t.k
	for _, v := range s.longer {
		exceeds(v)
	}
	t.n = t.k / s.sorted.Above(level)
	t.phi = stat.Blend(stat.Generic, stat.BatchDispersion(s.at, beyond))
	return t
}

// gapTail is the tail of inter-token times, of which cluster count as one observation.
func gapTail(h *hdrhistogram.Histogram, quantile, phi, cluster float64) tail {
	at := h.ValueAtQuantile(min(quantile, ownLevel) * 100)
	t := tail{level: time.Duration(at) * time.Microsecond, n: float64(h.TotalCount()) / cluster, phi: phi}
	for _, bar := range h.Distribution() {
		if bar.From > at {
			t.k += float64(bar.Count) / cluster
			t.ended = t.k
			t.sumLogs += float64(bar.Count) / cluster * math.Log(float64(bar.From)/float64(at))
		}
	}
	return t
}

// beyond returns an upper bound on the share of requests above a limit: beyond the level it falls
// at least as fast as a power law with the exponent that the exceedances show (Hill, Annals of
// Statistics 3, 1975). Each clump counts as one exceedance, and both the share above the level and
// the exponent are taken at the unfavourable end of their interval. Latencies of queues fall faster
// than any power, so the bound is conservative there: at a limit that is just met, 400 trials each
// of 60 to 1,800 s of M/M/1, M/M/8 and M/D/1 fell below the allowed share in 0 to 1 %, of queues
// with lognormal (sigma 1 to 2) and Pareto (2.2) services in 0 to 8 %. It says nothing of events
// with causes of their own that did not occur while the trial ran. It is 1 if the tail is not
// known.
func (t tail) beyond(limit time.Duration) float64 {
	clumps := t.ended / t.phi
	if t.level <= 0 || limit <= t.level || t.ended == 0 {
		return 1
	}
	above := stat.Dispersion{At: t.phi, Level: t.k / t.n, Gamma: stat.Growth}.Upper(t.k, t.n, alpha)
	power := t.ended / t.sumLogs * distuv.ChiSquared{K: 2 * clumps}.Quantile(alpha) / (2 * clumps)
	return above * math.Pow(float64(t.level)/float64(limit), power)
}
