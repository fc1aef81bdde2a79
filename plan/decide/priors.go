package decide

import (
	"context"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/parallel"
	"planner/model"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// priorFor returns what arithmetic knows of a knob set: whether it fits, and roughly which rate of mean
// requests it carries. Without an engine to compute with, nothing is known.
func priorFor(cfg *config.Config, engine *sweep.Simulated, k measure.Knobs, mean model.MeanRequest) (search.Prior, error) {
	if engine == nil {
		return search.Prior{Knobs: k}, nil
	}
	capacity, err := engine.Capacity(k, mean, cfg.Objective)
	if err != nil {
		return search.Prior{}, err
	}
	slowest := capacity.TTFT + capacity.Step*float64(cfg.Workload.LongOutput())
	return search.Prior{Knobs: k, Rate: capacity.Rate, Spread: capacitySpread, Latency: time.Duration(slowest * float64(time.Second))}, nil
}

// capacitySpread allows for the scatter between knob sets of arithmetic that ignores queueing, in the logarithm
// of the rate.
const capacitySpread = 0.2

// maxRateConfig returns the search that a configuration asks for.
func maxRateConfig(cfg *config.Config, prior search.Prior) search.MaxRateConfig {
	s := search.MaxRateConfig{
		Prior: prior, Workload: &cfg.Workload, SLO: cfg.Objective, Seed: cfg.Workload.Seed,
		Precision: cfg.Search.Precision, Confidence: cfg.Search.Confidence, MinRequests: cfg.Search.MinRequests,
		Warmup: max(cfg.Search.Warmup, 0), Window: max(cfg.Search.Trial, 0), Steady: cfg.Simulated(),
	}
	if !cfg.Simulated() || cfg.Search.BudgetGiven {
		s.Budget = cfg.Search.Budget
	}
	return s
}

// predict replaces the arithmetic priors for real engines with the simulated engine's results: a whole search
// in virtual time costs less than a second of a real one.
func predict(cfg *config.Config, g sweep.Ground, instances []*instance) error {
	if g.Virtual || g.Predict == nil {
		return nil
	}
	all := slices.Concat(list.Map(instances, (*instance).all)...)
	if err := parallel.Do(len(all), func(i int) error { return simulatePrior(cfg, g.Predict, all[i]) }); err != nil {
		return err
	}
	return parallel.Do(len(instances), func(i int) error { return disperse(cfg, g.Predict, instances[i].all()) })
}

// predictionSpread is the assumed standard deviation of ln(measured / simulated) before anything has been
// measured on this machine.
const predictionSpread = 0.15

// simulatePrior searches one knob set in virtual time.
func simulatePrior(c *config.Config, engine *sweep.Simulated, prior *search.Prior) error {
	cfg := maxRateConfig(c, *prior)
	cfg.Budget, cfg.Warmup, cfg.Window = 0, 0, 0
	s := search.NewMaxRate(cfg)
	if err := (&sweep.Loop{Source: s, Run: engine.Run}).Drive(context.Background()); err != nil {
		return err
	}
	r := s.Result()
	if r.Estimate.Value <= 0 {
		return nil
	}
	prior.Rate, prior.Spread = r.Estimate.Value, predictionSpread
	for _, b := range r.Bounds {
		if b.Bound == r.Binding {
			prior.Kappa, prior.Binding = b.Kappa, b.Bound
		}
	}
	return nil
}

// The runs that show how exceedances clump: at four rates around the maximum, each cut into batches as long as
// trials.
const (
	dispersionBatches  = 20
	dispersionBatch    = 300 * time.Second
	dispersionRequests = 6000
)

var dispersionRates = []float64{0.9, 0.95, 1, 1.05}

// disperse finds how the exceedances of the binding limit clump on the simulated engine, as a function of their
// share, and records it for all knob sets of the kind of instance that the same limit binds. Only the set with
// the highest rate is simulated that long: clumping comes mainly from the arrivals.
func disperse(cfg *config.Config, engine *sweep.Simulated, priors []*search.Prior) error {
	var best *search.Prior
	for _, p := range priors {
		if p.Binding != "" && (best == nil || p.Rate > best.Rate) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	bound, ok := cfg.Objective.Bound(best.Binding)
	if !ok || bound.Quantile == 0 || bound.Metric == measure.ITL {
		return nil // no requests to count
	}
	batch := min(dispersionBatch, workload.Span(dispersionRequests, cfg.Workload.MeanRate(best.Rate)))
	warmup := max(min(batch, time.Minute), cfg.Workload.Settling(best.Rate, best.Latency))
	var runs [][]measure.Count
	for n, share := range dispersionRates {
		t := measure.Trial{Knobs: best.Knobs, Workload: &cfg.Workload, Rate: share * best.Rate, Warmup: warmup,
			Window: dispersionBatches * batch, Seed: cfg.Workload.Seed + uint64(n), Whole: true}
		o, err := engine.Observe(t)
		if err != nil {
			return err
		}
		o.Records = slices.DeleteFunc(o.Records, func(r measure.Record) bool { return !t.Bounds(bound, &r) })
		runs = append(runs, batches(o.Records, bound, t.Warmup, batch, dispersionBatches))
	}
	found, ok := dispersionOf(runs, bound.Allowed())
	if !ok {
		return nil
	}
	for _, p := range priors {
		if p.Binding == best.Binding {
			p.Phi, p.Gamma = found.At, found.Gamma
		}
	}
	return nil
}
