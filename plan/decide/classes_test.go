package decide

import (
	"math"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// onInstance loads a configuration of one small instance with given tables more, and its
// ground.
func onInstance(t *testing.T, command, more string) (*config.Config, sweep.Ground) {
	t.Helper()
	path := must.File(t, "p.toml", `
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "L40S"
[knobs]
max_num_seqs = 256
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.92
`+more)
	cfg := must.Get(config.Load(path, nil, config.For(command)))
	return cfg, sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 2)
}

const twins = `
[workload]
mix = [
  { name = "a", prompt = { dist = "uniform", min = 100, max = 300 }, output = { dist = "uniform", min = 20, max = 60 }, weight = 1, slo = { ttft = { p99 = "1s" }, tpot = { p99 = "50ms" } } },
  { name = "b", prompt = { dist = "uniform", min = 100, max = 300 }, output = { dist = "uniform", min = 20, max = 60 }, weight = 1, slo = { ttft = { p99 = "1s" }, tpot = { p99 = "50ms" } } },
]
`

const single = `
[slo]
ttft = { p99 = "1s" }
tpot = { p99 = "50ms" }
[workload]
prompt = { dist = "uniform", min = 100, max = 300 }
output = { dist = "uniform", min = 20, max = 60 }
`

// TestEqualClassesAreOne checks that two classes that are alike, with limits that are
// alike, are one class: request by request in a trial, and in the maximum rate.
func TestEqualClassesAreOne(t *testing.T) {
	one := func(more string) (measure.Measurement, *FoundRate) {
		cfg, _ := onInstance(t, "search", more)
		g := undoubted(cfg)
		runnable, _ := cfg.Candidates()
		trial := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Rate: 4, Warmup: 10 * time.Second, Window: 500 * time.Second,
			Seed: 3, Objective: cfg.Objective, Whole: true}
		o := must.Get(g.Predict.Observe(trial))
		s := must.Get(NewRateSearch(cfg, g))
		return measure.Reduce(trial, o), must.Get(sweep.Drive(t.Context(), nil, g, s, nil, nil)).Value.(*FoundRate)
	}
	mixed, ofTwo := one(twins)
	alone, ofOne := one(single)
	if mixed.Requests != alone.Requests || mixed.TTFT != alone.TTFT || mixed.E2E != alone.E2E {
		t.Errorf("%d requests, TTFT %v; alone %d, %v", mixed.Requests, mixed.TTFT, alone.Requests, alone.TTFT)
	}
	for _, bound := range []string{"ttft.p99", "tpot.p99"} {
		a, _ := mixed.Count(bound + " of a")
		b, _ := mixed.Count(bound + " of b")
		all, ok := alone.Count(bound)
		if !ok || a.N+b.N != all.N || a.K+b.K != all.K || a.N == 0 || b.N == 0 {
			t.Errorf("%s: %d of %d and %d of %d, alone %d of %d", bound, a.K, a.N, b.K, b.N, all.K, all.N)
		}
	}
	if a, b := ofTwo.Estimate, ofOne.Estimate; math.Abs(a.Value/b.Value-1) > 0.08 || a.Low > b.High || b.Low > a.High {
		t.Errorf("maximum rate %v of two equal classes, %v of one", a, b)
	}
}

// TestPoolsOfEqualClasses checks that the demand is divided without loss, that the pool of
// a class is to the byte what a plan of that class alone is, and that of two equal classes
// one pool is the cheaper way: it has one spare.
func TestPoolsOfEqualClasses(t *testing.T) {
	planOf := func(more string) (*Planned, PlanStudy) {
		cfg, _ := onInstance(t, "plan", more)
		g := undoubted(cfg)
		s := must.Get(NewPlan(cfg, g))
		return must.Get(sweep.Drive(t.Context(), nil, g, s, nil, nil)).Value.(*Planned), s
	}
	const quick = "[search]\nprecision = 0.3\n"
	both, study := planOf(quick + "[demand]\nrate = 40\nburst_index = 5\nmean_rate = 10\n" + twins)
	alone, _ := planOf(quick + "[demand]\nrate = 20\nburst_index = 3\n" + single)
	pools := both.Handover.Pools
	planned, mean := 0.0, 0.0
	for _, pool := range pools.Each {
		planned, mean = planned+pool.Plan.Fleet.PlannedRate, mean+pool.Plan.Demand.MeanRate
		if pool.Plan.Offer.Rate != alone.Offer.Rate || pool.Plan.Fleet != alone.Fleet && pool.Plan.Fleet.GPUs != alone.Fleet.GPUs {
			t.Errorf("%s: %v and %d GPUs, alone %v and %d", pool.Class, pool.Plan.Offer.Rate, pool.Plan.Fleet.GPUs, alone.Offer.Rate, alone.Fleet.GPUs)
		}
	}
	if math.Abs(planned-both.Fleet.PlannedRate) > 1e-9 || math.Abs(mean-10) > 1e-9 {
		t.Errorf("the pools are planned for %g/s, %g in the mean, one for %g and 10", planned, mean, both.Fleet.PlannedRate)
	}
	if pools.Recommended != plan.OnePool || pools.GPUs != 2*alone.Fleet.GPUs || pools.GPUs <= both.Fleet.GPUs {
		t.Errorf("%s: %d GPUs in pools, %d in one, %d for one class", pools.Recommended, pools.GPUs, both.Fleet.GPUs, alone.Fleet.GPUs)
	}
	t.Run("undecided", func(t *testing.T) { undecidedAsTheirClasses(t, study.(*PoolStudy)) })
}

// What is not known of one class is not known of pools for all, whether there is no plan yet or a certificate is not met;
// where another class has none for good, there is none.
func undecidedAsTheirClasses(t *testing.T, s *PoolStudy) {
	s.all[0].plan, s.all[0].solved = nil, &plan.Unsolved{}
	check := func(what string, want sweep.StudyState) {
		t.Helper()
		answer := must.Get(s.Answer())
		n, _ := answer.Value.(*NoPlan)
		if answer.State != want || n != nil && (n.Outcome == "undecided") != (want == sweep.Undecided) {
			t.Errorf("%s: %v, want %v: %+v", what, answer.State, want, n)
		}
	}
	check("a plan for each class", sweep.Done)
	s.all[2].certificate = func() search.Certified { return search.Certified{State: measure.Unsure} }
	check("a certificate that is not met", sweep.Undecided)
	s.all[1].plan, s.all[1].solved = nil, &plan.Unsolved{Undecided: true}
	check("a class without a plan yet", sweep.Undecided)
	s.all[2].plan, s.all[2].solved = nil, &plan.Unsolved{}
	check("another without one for good", sweep.Infeasible)
}
