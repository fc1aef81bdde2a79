package search

import (
	"math"
	"testing"
	"time"

	"planner/sweep/measure"
)

// shows is what an incumbent shows at a rate: the objective clearly met below quiet, narrowly missed up to its cliff,
// and overload beyond that.
func shows(rate, quiet, cliff float64) showing {
	switch {
	case rate < quiet:
		return showing{rate: rate, room: 0.1}
	case rate > cliff:
		return showing{rate: rate, room: math.Inf(-1)}
	}
	return showing{rate: rate, room: -0.05}
}

// The reference settles at a rate where the incumbent is informative, if that lies within some steps of what it is
// thought to carry.
func TestReferenceMoves(t *testing.T) {
	for _, c := range []struct{ carries, quiet, cliff float64 }{
		{24, 20, 30},   // at once
		{21, 24, 26},   // thought to carry less than it does
		{26, 23, 25},   // thought to carry more
		{24, 24.9, 26}, // a narrow range
	} {
		m := referenceLoad{trial: measure.Trial{Rate: (1 + delta) * c.carries}}
		for !m.settled {
			m.move(shows(m.trial.Rate, c.quiet, c.cliff), delta)
		}
		if rate := m.trial.Rate; rate < c.quiet || rate > c.cliff || m.score.overloaded() {
			t.Errorf("%+v ended at %+v", c, m)
		}
	}
}

// If nothing lies between meeting the objective and overload, the reference settles where the incumbent is overloaded,
// from either side: a better set shows there.
func TestReferenceAtASheerCliff(t *testing.T) {
	for _, start := range []float64{22, 25} {
		m := referenceLoad{trial: measure.Trial{Rate: start}}
		for !m.settled {
			m.move(shows(m.trial.Rate, 24, 24), delta)
		}
		if rate := m.trial.Rate; !m.score.overloaded() || rate < 24 || rate > 24*(1+delta) {
			t.Errorf("%+v", m)
		}
	}
}

// Of a difference beyond what a curve tells only the sign counts, and of two overloaded sets the one whose latency is
// farther beyond its limit is worse.
func TestGainIsNoMoreThanIsSeen(t *testing.T) {
	over := math.Inf(-1)
	for _, c := range []struct {
		of, best showing
		want     float64
	}{
		{showing{room: 0.1, latency: 0.1}, showing{room: 0, latency: 0}, 0.1},
		{showing{room: 2, latency: 2}, showing{room: 0, latency: 0}, delta},
		{showing{room: over, latency: 0.1}, showing{room: 0, latency: 0}, -delta},
		{showing{room: over, latency: -2}, showing{room: over, latency: 0.1}, -delta},
		{showing{room: over, latency: 0.1}, showing{room: over, latency: -2}, 0},
	} {
		if got := c.of.over(c.best); got != c.want {
			t.Errorf("%+v over %+v: %v, want %v", c.of, c.best, got, c.want)
		}
	}
}

// On the same requests, the statistics of two M/M/1 queues whose maximum rates differ by 5 % tell that difference within
// a factor of two on average; for every draw the better one is recognised.
func TestGainOfQueues(t *testing.T) {
	const slow, fast = 33.1, 34.3
	r := &Race{incumbent: &candidate{search: &MaxRate{posteriors: []*posterior{{kappa: 12, phi: 40}}}}}
	sum := 0.0
	for seed := range uint64(8) {
		at := func(mu float64) showing {
			server := &raceServer{mu: map[measure.Knobs]float64{{}: mu}}
			m := server.run(measure.Trial{Rate: 25, Warmup: 30 * time.Second, Window: 60 * time.Second, Workload: raceWorkload(), Objective: raceObjective(), Seed: seed})
			return r.shows(&m)
		}
		gain := at(fast).over(at(slow))
		if gain <= 0 {
			t.Errorf("seed %d: %+v", seed, gain)
		}
		sum += gain / 8
	}
	if math.Abs(sum-0.05) > 0.025 {
		t.Errorf("gain %.3f in the mean, want some 0.05", sum)
	}
}
