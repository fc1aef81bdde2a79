package fleet

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"planner/internal/list"
	"planner/sweep/workload"
)

// Streams of random numbers, one per purpose.
const (
	streamRouter uint64 = 201
	streamNode   uint64 = 1 << 20
)

// router chooses among the ready replicas, of which there is at least one.
type router struct {
	policy *Policy
	rng    *rand.Rand
	turn   int
	// homes are the replicas of conversations, by the number of their first request.
	homes map[int]*replica
}

func newRouter(p *Policy, seed uint64) *router {
	return &router{policy: p, rng: rand.New(rand.NewPCG(seed, streamRouter)), homes: map[int]*replica{}}
}

// choose returns the replica for a request of the conversation that root numbers.
func (x *router) choose(targets []*replica, q *workload.Request, root int) *replica {
	if x.policy.Sticky {
		if home := x.homes[root]; home != nil && home.state == ready {
			return home
		}
	}
	r := x.pick(targets, q)
	if x.policy.Sticky {
		x.homes[root] = r
	}
	return r
}

func (x *router) pick(targets []*replica, q *workload.Request) *replica {
	switch x.policy.Router {
	case Random:
		return targets[x.rng.IntN(len(targets))]
	case RoundRobin:
		x.turn++
		return targets[(x.turn-1)%len(targets)]
	case LeastTokens:
		return least(targets, func(r *replica) int { return r.flight.tokens })
	case LeastPrefill:
		// Ties are broken at random, as in llm-d's router.
		prefill := func(r *replica) int { return r.flight.prefill }
		fewest := prefill(least(targets, prefill))
		best := list.Filter(targets, func(r *replica) bool { return prefill(r) == fewest })
		return best[x.rng.IntN(len(best))]
	case PrefixAffinity:
		if r := x.home(targets, q); r != nil {
			return r
		}
	}
	return least(targets, func(r *replica) int { return r.flight.requests })
}

// least returns the replica with the least load, the oldest of several.
func least(targets []*replica, load func(*replica) int) *replica {
	return slices.MinFunc(targets, func(a, b *replica) int { return cmp.Compare(load(a), load(b)) })
}

// home returns the replica to which the beginning of a prompt belongs by rendezvous hashing, so that few
// prefixes move when replicas come and go; nil if no other prompt begins alike, or if the replica would exceed
// its share of the load.
func (x *router) home(targets []*replica, q *workload.Request) *replica {
	beginning := q.Own
	if len(q.Shared) > 0 {
		beginning = q.Shared[0].Content
	}
	if beginning == 0 {
		return nil
	}
	var best *replica
	highest, total := uint64(0), 0
	for _, r := range targets {
		total += r.flight.requests
		if h := workload.Draw64(uint64(beginning), uint64(r.number)); best == nil || h > highest {
			best, highest = r, h
		}
	}
	if float64(best.flight.requests+1) > math.Ceil(x.policy.LoadCap*float64(total+1)/float64(len(targets))) {
		return nil
	}
	return best
}
