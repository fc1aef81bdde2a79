package main

import (
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
)

// knowledge is what a search is given before its first trial.
type knowledge struct {
	name string
	// factor scales the predicted rate; 0 means no prediction.
	factor float64
	// phi, if above 0, replaces the predicted dispersion.
	phi float64
}

var (
	right   = knowledge{name: "right", factor: 1}
	half    = knowledge{name: "0.5x", factor: 0.5}
	double  = knowledge{name: "2x", factor: 2}
	nothing = knowledge{name: "none"}
	blind   = knowledge{name: "right, phi=1", factor: 1, phi: 1}
)

// Errors of a simulator: the standard deviations of the logs of what it
// predicts, with the factors of knowledge on top.
const (
	rateError  = 0.25
	phiError   = 0.40
	kappaError = 0.30
)

// prior draws what a simulator of the given quality says of a case.
func (k knowledge) prior(c *testCase, seed uint64) search.Prior {
	if k.factor == 0 {
		return search.Prior{}
	}
	p := search.Prior{Rate: c.truth * k.factor, Phi: c.phi * math.Exp(phiError*noise(seed, 2)),
		Kappa: c.kappa * math.Exp(kappaError*noise(seed, 3))}
	if k.factor == 1 {
		p.Rate *= math.Exp(rateError * noise(seed, 1))
	}
	if k.phi > 0 {
		p.Phi = k.phi
	}
	return p
}

// answer is what a method reports of a server, beside the true rate of that.
type answer struct {
	search.Result
	truth float64
}

// log is the logarithm of the reported rate over the true one.
func (a *answer) log() float64 { return math.Log(a.Estimate.Value / a.truth) }

// covered reports whether the interval holds the truth.
func (a *answer) covered() bool { return a.Estimate.Low <= a.truth && a.truth <= a.Estimate.High }

// ours runs the search under study.
func ours(c *testCase, k knowledge, seed uint64, budget time.Duration, precision float64) answer {
	s := search.NewMaxRate(search.MaxRateConfig{
		Prior: k.prior(c, seed), Workload: c.workload, SLO: c.slo, Seed: seed,
		Budget: budget, Overhead: c.overhead, Precision: precision, Warmup: c.warmup, Window: c.window,
	})
	virtual.Drive(s, virtual.Bench{Server: c.server, Drift: c.drift}.Run)
	return answer{s.Result(), c.truth}
}

// runRace is what a race reports of the server that it chose, of which truth knows the rate.
func runRace(cfg search.RaceConfig, run func(measure.Trial) measure.Measurement, truth func(measure.Knobs) float64) answer {
	r := search.NewRace(cfg)
	trials := virtual.Drive(r, run)
	end := r.Result()
	a := answer{end.Best, truth(end.Knobs)}
	a.EngineTime, a.Trials = end.EngineTime, trials
	return a
}
