package main

import (
	"fmt"
	"math"
	"time"

	"planner/model"
	"planner/model/calibrate"
	"planner/search"
	"planner/sweep/measure"
)

// doubt is how far the maximum rate may be off for what is not known of the
// engine's constants: the 5 % and 95 % quantiles of the logarithm of the factor.
// The zero value is no doubt, as of an engine that was measured.
type doubt struct{ low, high float64 }

// doubtOf samples the constants within what is known of them and finds how far
// each sample moves the maximum rate of a knob set.
func (d *decision) doubtOf(k measure.Knobs, e search.Estimate) (doubt, error) {
	if d.bed.live != nil {
		return doubt{}, nil
	}
	roofline, err := d.bed.sim.Roofline(k)
	if err != nil || e.Value <= 0 {
		return doubt{}, err
	}
	known := calibrate.Known{
		Constants: roofline.Constants(), Spread: model.SpreadFor(d.bed.sim.Deployment(k)), Rate: e.Value, Objective: d.cfg.Objective,
		Seed: d.cfg.Workload.Seed,
	}
	shifts, err := calibrate.Shift(known, func(c model.Constants, rate float64, seed uint64) (measure.Trial, measure.Observation, error) {
		return d.probe(k, c, rate, seed)
	})
	if err != nil {
		return doubt{}, err
	}
	return doubt{shifts.Quantile(0.05), shifts.Quantile(0.95)}, nil
}

// String says how much of an interval the doubt is.
func (u doubt) String() string {
	return fmt.Sprintf("what is not known of the engine's constants moves the maximum rate by %+.0f to %+.0f %% (90 %%); it is in the interval and in the safe rate",
		100*math.Expm1(u.low), 100*math.Expm1(u.high))
}

// widen adds the doubt to an estimate, whose own interval holds what the draw of
// the requests does. Both errors are independent, so their logarithms add in
// squares.
func (u doubt) widen(e search.Estimate) search.Estimate {
	if e.Value <= 0 {
		return e
	}
	down := func(x float64) float64 { return e.Value * math.Exp(-math.Hypot(math.Log(e.Value/x), min(u.low, 0))) }
	e.Low, e.Safe = down(e.Low), down(e.Safe)
	e.High = e.Value * math.Exp(math.Hypot(math.Log(e.High/e.Value), max(u.high, 0)))
	return e
}

// The length of a probe for a shift: the same requests with other constants
// tell two rates apart that differ by a per cent, however few they are.
const (
	probeTrialRequests = 600
	probeWarmupShare   = 0.25
)

// probe simulates a short load point with given constants.
func (d *decision) probe(k measure.Knobs, c model.Constants, rate float64, seed uint64) (measure.Trial, measure.Observation, error) {
	window := time.Duration(probeTrialRequests / rate * float64(time.Second))
	t := measure.Trial{Knobs: k, Workload: &d.cfg.Workload, Rate: rate, Warmup: time.Duration(probeWarmupShare * float64(window)), Window: window,
		Seed: seed, Objective: d.cfg.Objective, Whole: true}
	engine := *d.bed.sim
	engine.Constants = func(model.Deployment, model.Constants) model.Constants { return c }
	o, err := engine.Observe(t)
	return t, o, err
}
