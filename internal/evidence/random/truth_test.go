package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// counter is a queue in front of one clerk, whose services are exponential. A turn of a
// conversation is sent when the one before it has ended, and not before it is due.
type counter struct{ rate float64 }

func (c counter) serve(t measure.Trial) (measure.Observation, error) {
	rng := rand.New(rand.NewPCG(t.Seed, 99))
	requests := t.Schedule()
	records := make([]measure.Record, len(requests))
	next := make([]int, len(requests))
	byDue := func(i, j int) int { return cmp.Compare(records[i].Due, records[j].Due) }
	var first, later []int // turns to come, by when they are sent
	for i, q := range requests {
		records[i] = measure.Record{ID: i, Due: q.Due, Sent: q.Due, Output: 1, Outcome: measure.OK}
		if q.Parent > 0 {
			next[q.Parent-1] = i
		} else {
			first = append(first, i)
		}
	}
	free := time.Duration(0)
	for len(first)+len(later) > 0 {
		queue := &first
		if len(first) == 0 || len(later) > 0 && byDue(later[0], first[0]) < 0 {
			queue = &later
		}
		r := &records[(*queue)[0]]
		*queue = (*queue)[1:]
		free = max(free, r.Due) + time.Duration(rng.ExpFloat64()/c.rate*float64(time.Second))
		r.First, r.Last = free, free
		if n := next[r.ID]; n > 0 {
			records[n].Due = max(free, records[n].Due)
			records[n].Sent = records[n].Due
			at, _ := slices.BinarySearchFunc(later, n, byDue)
			later = slices.Insert(later, at, n)
		}
	}
	return measure.Observation{Records: records}, nil
}

// Without time to think, conversations of any number of turns make the clerk an M/M/1
// queue as single requests do (Kelly 1979): the mean time of a turn is 1/(mu - lambda).
// With it, and in bursts, turns wait for each other or not, and the clerk completes mu.
func TestTruthOfConversations(t *testing.T) {
	const mu, lambda = 10.0, 8.0
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	limit := measure.Bound{Metric: measure.E2E, Limit: time.Duration(1 / (mu - lambda) * float64(time.Second))}
	for _, c := range []struct {
		name  string
		turns int
		think time.Duration
		burst float64
	}{
		{"single requests", 1, 0, 1},
		{"conversations", 6, 0, 1},
		{"conversations with pauses", 3, 5 * time.Second, 1},
		{"conversations in bursts", 5, 20 * time.Second, 0.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &subject{
				workload: &workload.Workload{Class: "one", Turns: c.turns, Think: c.think, Arrivals: workload.Gamma, Burstiness: c.burst,
					Shapes: []workload.Shape{{Prompt: one, Output: one}}},
				objective: measure.SLO{Bounds: []measure.Bound{limit}},
				observe:   counter{mu}.serve, latency: time.Second,
			}
			capacity, wide := s.capacity(0.6*mu, longer*fineRequests, 2)
			if math.Abs(capacity/mu-1) > 0.01 || wide > 0.02*mu {
				t.Errorf("capacity %g, give or take %g, want %g", capacity, wide, mu)
			}
			at, _ := s.worst(lambda, longer*fineRequests, fineSeeds)
			if c.think == 0 && (math.Abs(at.value) > 0.1 || at.low > 0 || at.high < 0) {
				t.Errorf("ln of the mean time over 1/(mu - lambda): %+v, want 0", at)
			}
		})
	}
}
