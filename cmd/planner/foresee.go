package main

import (
	"context"
	"runtime"
	"sync"

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
		for i := range g.priors {
			all = append(all, &g.priors[i])
		}
		if g.standard != nil {
			all = append(all, g.standard)
		}
	}
	errs := make([]error, len(all))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, prior := range all {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = d.simulatePrior(prior)
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
			prior.Kappa, prior.Phi = b.Curve.Kappa, b.Phi
		}
	}
	return nil
}
