package main

import (
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// The peers judge one trial after another by its raw share beyond the limit.
// Each starts from the same prediction as ours and may go a factor of 2
// either way from it, and its trials are as long as the budget allows.

// probe runs one trial of a peer and says whether it passed.
type probe struct {
	c      *testCase
	bench  virtual.Bench
	seed   uint64
	trials int
	cost   time.Duration
}

const peerWarmup = 30 * time.Second

func newProbe(c *testCase, seed uint64) *probe {
	return &probe{c: c, bench: virtual.Bench{Server: c.server, NoAbort: true}, seed: seed}
}

func (p *probe) pass(rate float64, window time.Duration) bool {
	t := measure.Trial{Workload: p.c.workload, Rate: rate, Warmup: peerWarmup, Window: window, Cooldown: time.Second,
		Seed: p.seed*1000 + uint64(p.trials) + 50_000_000, Objective: p.c.slo}
	p.trials++
	p.cost += peerWarmup + window + p.c.overhead
	m := p.bench.Run(t)
	for i, b := range p.c.slo.Bounds {
		if float64(m.Counts[i].K) > float64(m.Counts[i].N)*b.Allowed() {
			return false
		}
	}
	return true
}

// bracket is where a peer looks.
func bracket(c *testCase, seed uint64) (low, high float64) {
	p := right.prior(c, seed)
	return p.Rate / 2, p.Rate * 2
}

func (p *probe) answer(rate, low, high float64) answer {
	e := search.Estimate{Value: rate, Low: low, High: high, Safe: low}
	return answer{search.Result{Estimate: e, EngineTime: p.cost, Trials: p.trials}, p.c.truth}
}

// each is the window of one of n trials that spend the budget.
func each(budget time.Duration, n int, overhead time.Duration) time.Duration {
	return budget/time.Duration(n) - peerWarmup - overhead
}

// grid runs ten rates, equally spaced in their logarithm, and reports the
// largest that passed below the first that failed.
func grid(c *testCase, seed uint64, budget time.Duration) answer {
	const n = 10
	p := newProbe(c, seed)
	low, high := bracket(c, seed)
	best, next := low, high
	failed := false
	for i := range n {
		rate := low * math.Pow(high/low, float64(i)/(n-1))
		ok := p.pass(rate, each(budget, n, c.overhead))
		switch {
		case ok && !failed:
			best = rate
		case !failed:
			failed, next = true, rate
		}
	}
	return p.answer(best, best, next)
}

// bisection halves the bracket seven times and reports the last rate that
// passed.
func bisection(c *testCase, seed uint64, budget time.Duration) answer {
	const n = 7
	p := newProbe(c, seed)
	low, high := bracket(c, seed)
	for range n {
		mid := math.Sqrt(low * high)
		if p.pass(mid, each(budget, n, c.overhead)) {
			low = mid
		} else {
			high = mid
		}
	}
	return p.answer(low, low, high)
}

// mlr is the idea of RFC 9971 in short: a rate is settled by three of at most
// five trials of a third of the length, half of which may fail, and the bracket
// is halved while the budget lasts. It reports the relevant lower bound.
func mlr(c *testCase, seed uint64, budget time.Duration) answer {
	const window = 60 * time.Second
	p := newProbe(c, seed)
	low, high := bracket(c, seed)
	for p.cost < budget {
		mid := math.Sqrt(low * high)
		good, bad := 0, 0
		for good < 3 && bad < 3 {
			if p.cost+peerWarmup+window+c.overhead > budget {
				return p.answer(low, low, high)
			}
			if p.pass(mid, window) {
				good++
			} else {
				bad++
			}
		}
		if good == 3 {
			low = mid
		} else {
			high = mid
		}
	}
	return p.answer(low, low, high)
}

// peers compares at equal budgets.
func (s *study) peers() {
	s.printf("## Peers at equal cost\n\n" + scoreHead)
	for _, m := range []struct {
		name string
		run  func(*testCase, uint64, time.Duration) answer
	}{{"grid of 10", grid}, {"bisection of 7", bisection}, {"MLRsearch-style", mlr}} {
		s.repeat(m.name, func(c *testCase, seed uint64) answer { return m.run(c, seed, 1355*time.Second) })
	}
	s.printf("\n")
}
