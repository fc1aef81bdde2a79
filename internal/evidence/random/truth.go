package main

import (
	"cmp"
	"math"
	"slices"

	"planner/sweep/measure"
)

// truth is the maximum rate of a subject, found by long runs. From Low to High a
// rate may meet the objective or miss it, by what the runs leave open or by at most
// 1 % of a limit, or 0.5 % of what the server completes.
type truth struct {
	Rate, Low, High float64
	// Binding names the metric that limits the rate: "throughput" where none does.
	Binding string
}

// throughput limits a rate that meets every limit up to capacity.
const throughput = "throughput"

// The runs for a truth: quick ones find about where it is, fine ones where.
const (
	quickRequests = 6_000
	fineRequests  = 8_000
	fineSeeds     = 4
	// crowded is the share of capacity from which queues take long to forget, so that
	// a run has to be longer times as long, as it has for a quantile far out.
	crowded, longer = 0.6, 3
	// slack is by how much a statistic may differ from its limit for a rate within it
	// to count as right, and rateSlack by how much the rate itself.
	slack     = 0.01
	rateSlack = 0.005
	// unclear is how far the ends may be apart, in the logarithm, for what the runs
	// leave open before they are made longer, once. Long runs of an engine that is
	// hardly busy have too many steps.
	unclear = 0.04
)

// truth finds the maximum rate; its zero value is that of an objective which no rate
// meets.
func (s *subject) truth() truth {
	capacity, wide := s.capacity(s.start, quickRequests, 1)
	about := capacity
	c := curve{subject: s, requests: quickRequests, seeds: 1}
	low := about
	for c.at(low).value > 0 {
		if low /= 2; low < capacity/50_000 {
			return truth{}
		}
	}
	if low < capacity {
		about = c.crossing(middle, 0, 0.05)
	}
	c = curve{subject: s, requests: fineRequests, seeds: max(s.starts, fineSeeds)}
	far := slices.ContainsFunc(s.objective.Bounds, func(b measure.Bound) bool { return b.Quantile >= 0.999 })
	if about > crowded*capacity {
		capacity, wide = s.capacity(beyond*capacity, longer*fineRequests, max(s.starts, fineSeeds))
	}
	if far || about > crowded*capacity {
		c.requests *= longer
	}
	t, open := c.truth(about, capacity, wide)
	if open > unclear && (!far || about > crowded*capacity) {
		c.points, c.requests = nil, longer*c.requests
		t, _ = c.truth(t.Rate, capacity, wide)
	}
	return t
}

// What share of the turns that came a server may owe more at the end of a run and still
// keep up, by how much more than it completes a load goes beyond it, at most, and how
// near to each other two loads are of which it keeps up with one only.
const (
	keepsUp = 0.015
	beyond  = 1.08
	little  = 1.11
	close   = 1.01
)

// capacity is what the server completes in the long run: under a load that is a little
// beyond it, since of conversations a heavy overload shows the first turns alone. A server
// that keeps up with more than it completes when it is overloaded, as one does whose cache
// then holds no history for as long as it is asked for again, has the capacity up to which
// it keeps up.
func (s *subject) capacity(rate, n float64, seeds int) (perSecond, wide float64) {
	held, over := 0.0, math.Inf(1)
	const most = 20 // what came is random: two loads may stay a little further apart than close
	for tries := 0; over > close*held && tries < most; tries++ {
		came, left, wide := s.flow(rate, n, seeds)
		next := 1.3 * came
		switch {
		case came-left <= keepsUp*came:
			held = max(held, came)
		case came <= little*left && held < beyond*left:
			return left, wide
		default:
			over, next = min(over, came), beyond*left
		}
		if next >= over || next <= held {
			next = math.Sqrt(max(held, over/4) * over)
		}
		rate *= next / came
	}
	return math.Sqrt(held * over), (over - held) / 2
}

// curve is how far the worst statistic is from its limit, at the rates tried.
type curve struct {
	subject  *subject
	requests float64
	seeds    int
	points   []point
}

type point struct {
	sample

	rate    float64
	binding measure.Bound
}

// The readings of a point: its value and the ends of its interval.
func middle(p *point) float64 { return p.value }
func lowest(p *point) float64 { return p.low }
func utmost(p *point) float64 { return p.high }

// at tries a rate, once.
func (c *curve) at(rate float64) *point {
	i, found := slices.BinarySearchFunc(c.points, rate, func(p point, r float64) int { return cmp.Compare(p.rate, r) })
	if !found {
		level, binding := c.subject.worst(rate, c.requests, c.seeds)
		c.points = slices.Insert(c.points, i, point{level, rate, binding})
	}
	return &c.points[i]
}

// Two points tell a crossing between them if they are no further apart, in the
// logarithm, than width, a fourth of it where the curve is steep, and ten times as far
// where it is flat: steep and flat are changes of level.
const (
	steep = 0.3
	flat  = 0.03
)

// crossing is the largest rate whose level is at most the given one. It is an end of
// the points if they lie on one side.
func (c *curve) crossing(read func(*point) float64, level, width float64) float64 {
	for {
		i := len(c.points) - 1
		for i > 0 && read(&c.points[i]) > level {
			i--
		}
		if i+1 == len(c.points) || read(&c.points[i]) > level {
			return c.points[i].rate
		}
		a, b := &c.points[i], &c.points[i+1]
		below, above := read(a), read(b)
		share, apart := (level-below)/(above-below), math.Log(b.rate/a.rate)
		near := width
		switch {
		case above-below >= steep:
			near = width / 4
		case above-below < flat:
			near = 10 * width
		}
		if apart <= near {
			return a.rate * math.Exp(share*apart)
		}
		c.at(a.rate * math.Exp(min(max(share, 0.2), 0.8)*apart))
	}
}

// truth finds the crossings about a rate and below capacity, which is known within
// wide, and how far apart the ends are for what the runs leave open.
func (c *curve) truth(about, capacity, wide float64) (t truth, open float64) {
	near := max(capacity*rateSlack, wide)
	t = truth{Rate: capacity, Low: capacity - near, High: capacity + near, Binding: throughput}
	up, down := math.Log1p(slack), math.Log1p(-slack)
	high, step := min(about, t.High), 1.03
	for ; c.at(high).low <= up && high < t.High; step *= step {
		high = min(high*step, t.High)
	}
	low := high / 1.03
	for step = 1.03; c.at(low).high >= down && low > about/1000; step *= step {
		low /= step
	}
	const width = 0.008
	if rate := c.crossing(middle, 0, width); rate < t.Rate {
		t.Rate = rate
		i := slices.IndexFunc(c.points, func(p point) bool { return p.rate >= rate })
		t.Binding = c.points[i].binding.Metric.String()
	}
	open = math.Log(c.crossing(lowest, 0, width) / c.crossing(utmost, 0, width))
	t.High = max(min(t.High, c.crossing(lowest, up, width)), t.Rate*(1+rateSlack))
	t.Low = min(t.Low, c.crossing(utmost, down, width), t.Rate*(1-rateSlack))
	return t, open
}
