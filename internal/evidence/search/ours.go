package main

import (
	"math"
	"slices"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/internal/note"
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
	if len(c.slo.Bounds) > 1 {
		p.Binding = c.slo.Bounds[0].String()
	}
	return p
}

// answer is what a method reports of a case.
type answer struct {
	// log is ln(reported/true).
	log              float64
	value, low, high float64
	safe             float64
	cost             time.Duration
	trials           int
	outcome          search.Outcome
	binding          string
	// told says that it warns of a server that is not the same in all trials.
	told bool
	// truth is the true rate where a method chose among several servers.
	truth float64
}

// ours runs the search under study.
func ours(c *testCase, k knowledge, seed uint64, budget time.Duration, precision float64) answer {
	s := search.NewMaxRate(search.MaxRateConfig{
		Prior: k.prior(c, seed), Workload: c.workload, SLO: c.slo, Seed: seed,
		Budget: budget, Overhead: c.overhead, Precision: precision, Warmup: c.warmup, Window: c.window,
	})
	drive(s, virtual.Bench{Server: c.server, Drift: c.drift})
	r := s.Result()
	e := r.Estimate
	return answer{math.Log(e.Value / c.truth), e.Value, e.Low, e.High, e.Safe, r.EngineTime, r.Trials, r.Outcome, r.Binding,
		slices.ContainsFunc(r.Warnings, func(n note.Note) bool {
			return n.Kind == note.NonMonotone || n.Kind == note.TrialsDiffer || n.Kind == note.Collapses || n.Kind == note.Cliff
		}), c.truth}
}

// source is what a runner needs of a search.
type source interface {
	Next() []measure.Trial
	Observe(measure.Measurement)
}

// drive runs a search to its end on one server.
func drive(s source, b virtual.Bench) {
	for batch := s.Next(); len(batch) > 0; batch = s.Next() {
		for _, t := range batch {
			s.Observe(b.Run(t))
		}
	}
}
