package main

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/list"
	"planner/internal/parallel"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const smallHead = "| %s | budget | differs | engine s | trials | found | of these hold the rate | decided | of these hold it | safe <= rate | safe <= 1.03 x | best set |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"

// small searches small servers as users have them on processors: of which nothing is
// predicted, of another speed in each trial, and in a short time.
func (s *study) small() {
	s.printf("## Small servers and small budgets\n\n"+smallHead, "search")
	for _, c := range smallServers() {
		for _, drift := range []float64{0, 0.05, 0.10, 0.15} {
			c := c.differing(drift)
			for _, budget := range []time.Duration{160 * time.Second, 5 * time.Minute, 20 * time.Minute} {
				s.smallRow(c, budget, parallel.Map(s.seeds, func(n int) answer { return ours(&c, nothing, uint64(n+1), budget, 0.2) }))
			}
			pinned := c
			pinned.name, pinned.warmup, pinned.window = c.name+", trials of 18 s", 2*time.Second, 18*time.Second
			s.smallRow(pinned, 160*time.Second, parallel.Map(s.seeds, func(n int) answer { return ours(&pinned, nothing, uint64(n+1), 160*time.Second, 0.25) }))
		}
	}
	s.printf("\n")
}

// sets lets sets of two values of two knobs race on the same servers.
func (s *study) sets() {
	s.printf("## Small servers and small budgets\n\n"+smallHead, "race of 2 x 2 sets")
	for _, c := range smallServers() {
		for _, drift := range []float64{0, 0.05, 0.10, 0.15} {
			c := c.differing(drift)
			sets := smallSets(&c)
			s.smallRow(c, 20*time.Minute, parallel.Map(s.seeds, func(n int) answer { return smallRace(sets, drift, uint64(n+1)) }))
		}
	}
	s.printf("\n")
}

// differing is a server whose speed differs between trials: its rate is then the highest at
// which the share of all requests in them is what is allowed.
func (c testCase) differing(drift float64) testCase {
	if c.drift = drift; drift > 0 {
		c.truth = bruteForce(&c, 12, 24)
	}
	return c
}

// loose is how far below the rate a safe rate may be for a plan to be made by it.
const loose = 2

// smallRow prints what answers came to; the best set is one within a tenth of that of the server.
func (s *study) smallRow(c testCase, budget time.Duration, all []answer) {
	found := func(a answer) bool { return a.Outcome == search.Found }
	decided := func(a answer) bool { return a.Estimate.Value > 0 && a.Estimate.Safe >= a.Estimate.Value/loose }
	count := func(is func(answer) bool) int { return list.Count(all, is) }
	mean := scoreOf(all)
	s.printf("| %s, %.3g/s | %.0f s | %.0f %% | %.0f | %.1f | %d of %d | %d | %d | %d | %d | %d | %d |\n", c.name, c.truth, budget.Seconds(), 100*c.drift, mean[0], mean[1],
		count(found), len(all), count(func(a answer) bool { return found(a) && a.covered() }), count(decided), count(func(a answer) bool { return decided(a) && a.covered() }),
		count(func(a answer) bool { return a.Estimate.Safe <= a.truth }), count(func(a answer) bool { return a.Estimate.Safe <= 1.03*a.truth }),
		count(func(a answer) bool { return a.truth > 0.9*c.truth }))
}

// smallServers are like vLLM and llama-server with tiny models on a processor.
func smallServers() []testCase {
	all := tinyServers()
	for i := range all {
		all[i].truth = bruteForce(&all[i], 12, 6)
	}
	return all
}

// tinyServers are the same around the rates that are known of them.
func tinyServers() []testCase {
	load := func(output int) *workload.Workload {
		return &workload.Workload{Class: "tiny", Arrivals: workload.Poisson, Timeout: time.Minute, Shapes: []workload.Shape{{
			Prompt: workload.Lengths{Dist: workload.Uniform, Min: 16, Max: 48}, Output: fixed(output),
		}}}
	}
	slo := limit(measure.E2E, 0.90, time.Second)
	slo.Errors = 0.05
	return []testCase{
		{name: "batches of 16", truth: 40, workload: load(16), slo: slo,
			server: virtual.Engine{Budget: 1024, Sequences: 16, Base: 6 * time.Millisecond, PerToken: 80 * time.Microsecond, PerSequence: 850 * time.Microsecond}},
		{name: "batches of 4", truth: 1.6, workload: load(8), slo: slo,
			server: virtual.Engine{Budget: 512, Sequences: 4, Base: 30 * time.Millisecond, PerToken: 2 * time.Millisecond, PerSequence: 20 * time.Millisecond}},
	}
}

// smallSets are two values of two knobs of a server.
func smallSets(c *testCase) map[measure.Knobs]*testCase {
	sets := map[measure.Knobs]*testCase{}
	e := c.server.(virtual.Engine)
	for _, budget := range []int{e.Budget / 8, e.Budget} {
		for _, sequences := range []int{e.Sequences / 4, e.Sequences} {
			set := *c
			set.server = virtual.Engine{Budget: budget, Sequences: sequences, Base: e.Base, PerToken: e.PerToken, PerSequence: e.PerSequence}
			set.truth = bruteForce(&set, 12, 6)
			sets[measure.Knobs{MaxNumBatchedTokens: budget, MaxNumSeqs: sequences, TensorParallel: 1}] = &set
		}
	}
	return sets
}

// smallRace lets the sets race on one server, and holds the answer against the set that it chose.
func smallRace(sets map[measure.Knobs]*testCase, drift float64, seed uint64) answer {
	cfg := search.RaceConfig{OneEngine: true}
	for k, c := range sets {
		cfg.Search = search.MaxRateConfig{Workload: c.workload, SLO: c.slo, Seed: seed, Budget: 20 * time.Minute, Precision: 0.2}
		cfg.Candidates = append(cfg.Candidates, search.Prior{Knobs: k})
	}
	slices.SortFunc(cfg.Candidates, func(a, b search.Prior) int {
		return cmp.Or(cmp.Compare(a.Knobs.MaxNumSeqs, b.Knobs.MaxNumSeqs), cmp.Compare(a.Knobs.MaxNumBatchedTokens, b.Knobs.MaxNumBatchedTokens))
	})
	return runRace(cfg, func(t measure.Trial) measure.Measurement {
		return virtual.Bench{Server: sets[t.Knobs].server, Drift: drift}.Run(t)
	}, func(k measure.Knobs) float64 { return sets[k].truth })
}
