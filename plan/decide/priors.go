package decide

import (
	"context"
	"math"
	"slices"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/parallel"
	"planner/internal/stat"
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

// batches cuts the records of a long run at a steady rate into batches of equal time and counts the requests
// beyond a limit in each. Batches should be as long as trials, 200 to 400 s on a live engine, so that their
// counts scatter like those of trials. Records in flight count as beyond the limit. Bounds on a mean or on
// inter-token times have no such counts.
func batches(records []measure.Record, b measure.Bound, from, batch time.Duration, n int) []measure.Count {
	counts := make([]measure.Count, n)
	for i := range records {
		r := &records[i]
		if r.Due < from || r.Due >= from+time.Duration(n)*batch {
			continue
		}
		if known, beyond := b.Decide(r, math.MaxInt64); known {
			c := &counts[(r.Due-from)/batch]
			c.N++
			if beyond {
				c.K++
			}
		}
	}
	return counts
}

// dispersionOf estimates the dispersion of exceedance counts as a function of their share, from the batches of
// several long runs at one rate each. A function of the share also holds for an engine whose maximum rate
// differs from the simulated one. A run counts if enough requests were beyond the limit, but not too many: the
// dispersion of its counts relative to n p (1-p) is one point. A line through the logarithm of these over that
// of ln(1-p) gives the value at the level and the slope, limited to 0.2 to 1.5; with shares too close together
// the slope is [stat.Growth]. false means that no run qualified.
func dispersionOf(runs [][]measure.Count, level float64) (stat.Dispersion, bool) {
	const fewest = 20
	// Far beyond the limit nearly all requests are late, and counts cannot scatter.
	highest := max(0.3, 1-(1-level)*(1-level))
	var x, y, weight []float64
	for _, run := range runs {
		n, k := 0.0, 0.0
		for _, c := range run {
			n, k = n+float64(c.N), k+float64(c.K)
		}
		if len(run) < 3 || k < fewest || k > highest*n {
			continue
		}
		p, sum := k/n, 0.0
		for _, c := range run {
			d := float64(c.K) - p*float64(c.N)
			sum += d * d
		}
		phi := sum / float64(len(run)-1) / (p * (1 - p) * n / float64(len(run)))
		x, y = append(x, math.Log(math.Log1p(-p)/math.Log1p(-level))), append(y, math.Log(max(phi, 1)))
		weight = append(weight, float64(len(run)-1))
	}
	if len(x) == 0 {
		return stat.Dispersion{}, false
	}
	gamma := stat.Growth
	if slices.Max(x)-slices.Min(x) > math.Ln2 {
		_, slope := gonum.LinearRegression(x, y, weight, false)
		gamma = min(max(slope, 0.2), 1.5)
	}
	return stat.Dispersion{At: math.Exp(gonum.Mean(y, weight) - gamma*gonum.Mean(x, weight)), Level: level, Gamma: gamma}, true
}
