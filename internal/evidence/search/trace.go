package main

import (
	"fmt"
	"strings"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
)

// trace prints one search trial by trial.
func (s *study) trace(c *testCase, k knowledge, seed uint64, budget time.Duration) {
	m := search.NewMaxRate(search.MaxRateConfig{
		Prior: k.prior(c, seed), Workload: c.workload, SLO: c.slo, Seed: seed,
		Budget: budget, Overhead: c.overhead, Precision: never, Warmup: c.warmup, Window: c.window,
	})
	bench := virtual.Bench{Server: c.server, Drift: c.drift}
	s.printf("%s, prior %s, seed %d, truth %.3f\n", c.name, k.name, seed, c.truth)
	for batch := m.Next(); len(batch) > 0; batch = m.Next() {
		t := batch[0]
		x := bench.Run(t)
		m.Observe(x)
		r := m.Result()
		b := search.BoundResult{}
		if len(r.Bounds) > 0 {
			b = r.Bounds[0]
		}
		s.printf("%8.3f/s %4.0f+%4.0fs ran %4.0fs", t.Rate, t.Warmup.Seconds(), t.Window.Seconds(), x.Duration.Seconds())
		for _, n := range x.Counts {
			s.printf(" %d/%d", n.K, n.N)
		}
		s.printf(" valid=%v over=%v %q -> %.2f (%.2f..%.2f) kappa %.1f phi %.0f | %s\n", x.Valid, x.Overloaded, x.Aborted.Text,
			r.Estimate.Value, r.Estimate.Low, r.Estimate.High, b.Curve.Kappa, b.Phi, t.Why)
		if !x.Valid {
			s.printf("      %v\n", x.Warnings[:1])
		}
	}
	s.printf("%+v\n\n", m.Result())
}

// traceNamed traces the search that name describes: the index of a server, first
// the five and then the variants, the prior and the seed.
func (s *study) traceNamed(name string) error {
	var server int
	var prior string
	var seed uint64
	if _, err := fmt.Sscanf(strings.ReplaceAll(name, ":", " "), "%d %s %d", &server, &prior, &seed); err != nil {
		return fmt.Errorf("trace %q: want SERVER:PRIOR:SEED: %w", name, err)
	}
	all := make([]variant, 0, len(s.cases))
	for _, c := range s.cases {
		all = append(all, variant{c, 1355 * time.Second, never})
	}
	if server >= len(all) {
		all = append(all, variants(s.cases)...)
	}
	if server < 0 || server >= len(all) {
		return fmt.Errorf("trace %q: there are %d servers", name, len(all))
	}
	for _, k := range []knowledge{right, half, double, nothing, blind} {
		if k.name == prior {
			s.trace(&all[server].testCase, k, seed, all[server].budget)
			return nil
		}
	}
	return fmt.Errorf("trace %q: no prior is called %q", name, prior)
}
