package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// foresee replaces the arithmetic priors of a run on real engines by what the
// simulated engine says of each knob set: a whole search in virtual time costs
// less than a second of a real one.
func (d *decision) foresee() error {
	if d.bed.live == nil || d.bed.sim == nil {
		return nil
	}
	var all []*search.Prior
	for _, g := range d.groups {
		all = append(all, g.allPriors()...)
	}
	if err := atOnce(len(all), func(i int) error { return d.simulatePrior(all[i]) }); err != nil {
		return err
	}
	return atOnce(len(d.groups), func(i int) error { return d.disperse(d.groups[i]) })
}

// atOnce calls f for 0 to n-1, as many at a time as there are processors,
// and returns the error of the first that has one.
func atOnce(n int, f func(int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// allPriors are those of the group's knob sets and of the engine's own settings.
func (g *group) allPriors() []*search.Prior {
	var all []*search.Prior
	for i := range g.priors {
		all = append(all, &g.priors[i])
	}
	if g.standard != nil {
		all = append(all, g.standard)
	}
	return all
}

// predictionSpread is the standard deviation of ln(measured / simulated) that
// is believed before anything was measured on this machine.
const predictionSpread = 0.15

// simulatePrior searches one knob set in virtual time.
func (d *decision) simulatePrior(prior *search.Prior) error {
	cfg := maxRateConfig(d.cfg, *prior)
	cfg.Budget, cfg.Warmup, cfg.Window = 0, 0, 0
	s := search.NewMaxRate(cfg)
	loop := sweep.Loop{Source: s, Run: d.bed.sim.Run, Observed: func(measure.Measurement) {}}
	if err := loop.Drive(context.Background()); err != nil {
		return err
	}
	r := s.Result()
	if r.Estimate.Value <= 0 {
		return nil
	}
	prior.Rate, prior.Spread = r.Estimate.Value, predictionSpread
	for _, b := range r.Bounds {
		if b.Bound == r.Binding {
			prior.Kappa, prior.Binding = b.Curve.Kappa, b.Bound
		}
	}
	return nil
}

// The runs that show how exceedances clump: at four rates around the maximum,
// each cut into batches that are as long as trials are.
const (
	dispersionBatches  = 20
	dispersionBatch    = 300 * time.Second
	dispersionRequests = 6000
)

var dispersionRates = []float64{0.9, 0.95, 1, 1.05}

// disperse finds out how the exceedances of the binding limit clump on the
// simulated engine, as a function of their share, and tells it to all knob sets of
// the group which that limit binds. Only the set that carries most is simulated
// for so long: what clumps is the arrivals' doing first.
func (d *decision) disperse(g *group) error {
	var best *search.Prior
	for _, p := range g.allPriors() {
		if p.Binding != "" && (best == nil || p.Rate > best.Rate) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	i := slices.IndexFunc(d.cfg.Objective.Bounds, func(b measure.Bound) bool { return b.String() == best.Binding })
	if i < 0 {
		return nil
	}
	bound := d.cfg.Objective.Bounds[i]
	if bound.Quantile == 0 || bound.Metric == measure.ITL {
		return nil // no count of requests
	}
	batch := min(dispersionBatch, time.Duration(dispersionRequests/best.Rate*float64(time.Second)))
	warmup := max(min(batch, time.Minute), d.cfg.Workload.Settling(best.Rate, best.Latency))
	var runs [][]measure.Count
	for n, share := range dispersionRates {
		t := measure.Trial{Knobs: best.Knobs, Workload: &d.cfg.Workload, Rate: share * best.Rate, Warmup: warmup,
			Window: dispersionBatches * batch, Seed: d.cfg.Workload.Seed + uint64(n), Whole: true}
		o, err := d.bed.sim.Observe(t)
		if err != nil {
			return err
		}
		runs = append(runs, search.Batches(o.Records, bound, t.Warmup, batch, dispersionBatches))
	}
	found, ok := search.Dispersion(runs, bound.Allowed())
	if !ok {
		return nil
	}
	for _, p := range g.allPriors() {
		if p.Binding == best.Binding {
			p.Phi, p.Gamma = found.At, found.Gamma
		}
	}
	return nil
}
