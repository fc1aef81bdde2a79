package main

import (
	"math"
	"slices"

	"planner/sweep/measure"
)

// truth is the maximum rate of an instance, found by long runs. Between Low and High
// a rate meets the objective and misses it within 1 %, in a limit or in what the
// server completes.
type truth struct {
	Rate, Low, High float64
	// Capacity is what the server completes under overload, in requests per second.
	Capacity float64
	// Binding names the metric that limits the rate: "throughput" where none does.
	Binding string
}

// throughput limits a rate that meets every limit up to capacity.
const throughput = "throughput"

// The runs for a truth: quick ones find about where it is, fine ones where.
const (
	quickRequests = 6_000
	fineRequests  = 12_000
	fineSeeds     = 2
	// crowded is the share of capacity from which queues take long to forget, so that
	// a run has to be several times as long, as it has for a quantile far out.
	crowded, longer = 0.6, 2.5
	// slack is by how much a statistic may differ from its limit for a rate within it
	// to count as right, and capacitySlack by how much a rate from capacity.
	slack         = 0.01
	capacitySlack = 0.005
)

// truth finds the maximum rate; its zero value is that of an objective which no rate
// meets.
func (in *instance) truth() truth {
	capacity := in.capacity(in.start(), quickRequests, 1)
	about := capacity
	c := curve{in: in, requests: quickRequests, seeds: 1}
	low := about
	for c.at(low) > 0 {
		if low /= 2; low < capacity/5000 {
			return truth{Capacity: capacity}
		}
	}
	if low < capacity {
		about = c.crossing(0, 0.05)
	}
	fine := curve{in: in, requests: fineRequests, seeds: fineSeeds}
	far := slices.ContainsFunc(in.cfg.Objective.Bounds, func(b measure.Bound) bool { return b.Quantile >= 0.999 })
	if about > crowded*capacity {
		capacity = in.capacity(capacity, longer*fineRequests, fineSeeds)
	}
	if far || about > crowded*capacity {
		fine.requests *= longer
	}
	return fine.truth(about, capacity)
}

// start is a rate beyond what the server completes, by arithmetic.
func (in *instance) start() float64 {
	c, err := in.sim.Capacity(in.knobs, &in.cfg.Workload, measure.SLO{})
	if err != nil || !(c.Rate > 0) {
		return 1
	}
	return c.Rate
}

// capacity is what the server completes under a load that is a little beyond it: of
// conversations a heavy overload would show the first turns alone.
func (in *instance) capacity(rate, n float64, seeds int) float64 {
	const little, enough = 1.06, 1.03
	for range 30 {
		done := in.throughput(rate, n, seeds)
		switch {
		case rate > 1.1*done:
			rate = little * done
		case rate < enough*done:
			rate *= 1.3
		default:
			return done
		}
	}
	return rate
}

// curve is how far the worst statistic is from its limit, at the rates tried.
type curve struct {
	in       *instance
	requests float64
	seeds    int
	points   []point
}

type point struct {
	rate, level float64
	binding     measure.Bound
}

func (c *curve) at(rate float64) float64 { return c.add(rate).level }

// add tries a rate, once.
func (c *curve) add(rate float64) point {
	i, found := slices.BinarySearchFunc(c.points, rate, func(p point, r float64) int {
		switch {
		case p.rate < r:
			return -1
		case p.rate > r:
			return 1
		}
		return 0
	})
	if !found {
		level, binding := c.in.worst(rate, c.requests, c.seeds)
		c.points = slices.Insert(c.points, i, point{rate, level, binding})
	}
	return c.points[i]
}

// steep is a change of level over which a straight line is no curve.
const steep = 0.3

// crossing is the largest rate whose level is at most the given one: between two
// points no further apart than the width, in the logarithm, or less where it is steep.
// Its points must lie on either side.
func (c *curve) crossing(level, width float64) float64 {
	for {
		i := len(c.points) - 1
		for i > 0 && c.points[i].level > level {
			i--
		}
		if i+1 >= len(c.points) || c.points[i].level > level {
			return c.points[i].rate
		}
		a, b := c.points[i], c.points[i+1]
		share := (level - a.level) / (b.level - a.level)
		if apart := math.Log(b.rate / a.rate); apart <= width && (apart <= width/4 || b.level-a.level < steep) {
			return a.rate * math.Pow(b.rate/a.rate, share)
		}
		c.add(a.rate * math.Pow(b.rate/a.rate, min(max(share, 0.2), 0.8)))
	}
}

// truth finds the crossings about a rate and below capacity.
func (c *curve) truth(about, capacity float64) truth {
	t := truth{Rate: capacity, Low: capacity * (1 - capacitySlack), High: capacity * (1 + capacitySlack), Capacity: capacity, Binding: throughput}
	up, down := math.Log1p(slack), math.Log1p(-slack)
	low, high := about, about
	for step := 1.03; c.at(high) <= up && high < t.High; step *= step {
		high = min(high*step, t.High)
	}
	for step := 1.03; c.at(low) >= down; step *= step {
		if low /= step; low < about/1000 {
			break
		}
	}
	const width = 0.008
	if rate := c.crossing(0, width); rate < t.Rate {
		t.Rate = rate
		i := slices.IndexFunc(c.points, func(p point) bool { return p.rate >= rate })
		t.Binding = c.points[i].binding.Metric.String()
	}
	t.High = min(t.High, c.crossing(up, width))
	t.Low = min(t.Low, c.crossing(down, width))
	return t
}
