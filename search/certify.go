package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Certificate tests one fixed rate without any curve: it is certified if the probability of so few requests beyond the
// limit would be at most 2.5 % per look, were the true share what is just allowed. It takes at most two looks, on new
// requests. Several bounds are certified together only if each of them is.
type Certificate struct {
	cfg    MaxRateConfig
	bounds []tested
	result Certified
}

// tested is a bound of a certificate: of n requests so far k were beyond the limit, where share may be, with dispersion
// phi; part of all requests belong to its class. For failures phi is 0: they have causes and do not clump as in a queue,
// none is expected where the limits hold, and the plain share decides.
type tested struct {
	name       string
	share, phi float64
	n, k, part float64
}

// Certified is the result of a certificate. A rate that is not certified may still meet the objective.
type Certified struct {
	Rate       float64       `json:"rate_per_s"`    // the rate tested
	State      measure.State `json:"state"`         // Met if the rate is certified, Unsure otherwise
	Looks      int           `json:"looks"`         // how many trials were run
	EngineTime time.Duration `json:"engine_time_s"` // the engine time of all trials
	// Binding names the bound that is hardest to certify, Requests and Beyond are its counts over all looks, and
	// Probability is that of so few requests beyond the limit if the true share were what is just allowed.
	Binding     string  `json:"binding"`
	Requests    float64 `json:"requests"`
	Beyond      float64 `json:"beyond"`
	Probability float64 `json:"probability"`
	// Reason says why there is no certificate; empty where there is one.
	Reason note.Reason `json:",embed"`
}

// Certify prepares the test of the rate that a finished search suggests: its safe rate, or its median less the precision
// asked for if that is lower. Each look takes the configured window, lengthened if it could not bring a certificate even
// without a request beyond the limit; by default that of a measuring trial, or twice the least that could. The budget is
// what the search has left of it. A bound on a mean has no count of requests that could be tested without a model of its
// spread, so an objective with one is not certified.
func Certify(cfg MaxRateConfig, found Result) *Certificate {
	cfg = cfg.withDefaults()
	c := &Certificate{cfg: cfg}
	c.cfg.Seed = trialSeed(cfg.Seed, streamCertify)
	c.result.Rate = min(found.Estimate.Safe, (1-cfg.Precision)*found.Estimate.Value)
	if cfg.Budget > 0 {
		c.cfg.Budget = max(cfg.Budget-found.EngineTime, time.Second)
	}
	if c.result.Rate <= 0 {
		c.result.Reason = note.Because(note.NoRateToTest)
	}
	for j, b := range assume(cfg.SLO, cfg.Prior, false) {
		x := tested{name: b.name, share: b.share, part: 1}
		if j < len(cfg.SLO.Bounds) {
			x.part = cfg.Workload.Share(cfg.SLO.Bounds[j].Class)
		}
		switch {
		case b.kind == onThroughput:
			continue
		case b.kind == onMean:
			c.result.Reason = note.Because(note.MeanUncounted, b.name)
		case b.name != measure.ErrorsBound:
			// A dispersion that was predicted, or found by the search, counts only where it is worse than usual.
			x.phi = max(b.phi, stat.Generic)
			if seen, ok := list.Find(found.Bounds, func(r BoundResult) bool { return r.Bound == b.name }); ok {
				x.phi = max(x.phi, seen.Phi)
			}
		}
		c.bounds = append(c.bounds, x)
	}
	return c
}

// Next proposes the next trial; none once the test has ended, also because the budget has no room for one that could
// bring the certificate, or the earlier looks leave no chance of it.
func (c *Certificate) Next() []measure.Trial {
	if c.result.State == measure.Met || c.result.Reason.Text != "" {
		return nil
	}
	t := c.cfg.timed(c.result.Rate, 1, learned{latency: c.cfg.Prior.Latency, phi: c.cfg.Prior.Phi})
	least := c.leastWindow()
	if c.result.Looks == 0 {
		c.cfg.Window = max(cmp.Or(c.cfg.Window, max(t.Window, certifyLooks*least)), least)
	}
	t.Window = c.cfg.Window
	left := c.cfg.left(&t, c.result.EngineTime)
	switch {
	case t.Window < least:
		c.result.Reason = note.Because(note.BeyondTooMany, c.result.Looks, t.Window.Round(time.Second), least.Round(time.Second))
		return nil
	case left < least:
		c.result.Reason = note.Because(note.BudgetTooShort, max(left, 0).Round(time.Second), least.Round(time.Second))
		return nil
	}
	t.Window = left
	t.Why = fmt.Sprintf("certificate, look %d of %d", c.result.Looks+1, certifyLooks)
	return []measure.Trial{c.cfg.trial(t, c.result.Looks+1, c.result.EngineTime)}
}

// leastWindow is the shortest further window that may bring a certificate: if no more requests are beyond any limit.
func (c *Certificate) leastWindow() time.Duration {
	const most = 1_000_000_000
	needed := sort.Search(most, func(n int) bool {
		return !slices.ContainsFunc(c.bounds, func(b tested) bool {
			b.n += float64(n) * b.part
			return b.phi > 0 && b.asFew() > safeQuantile/certifyLooks
		})
	})
	return workload.Span(float64(needed), c.cfg.Workload.MeanRate(c.result.Rate))
}

// asFew is the probability of no more than k requests beyond the limit if the true share were what is just allowed.
func (b *tested) asFew() float64 {
	return stat.NegativeBinomial{Mean: b.n * b.share, Phi: b.phi}.CDF(math.Floor(b.k))
}

// Observe takes the measurement of the proposed trial.
func (c *Certificate) Observe(m measure.Measurement) {
	c.result.Looks++
	c.result.EngineTime += m.EngineTime(c.cfg.Overhead)
	why, met, worst, counted := "", m.Valid && !m.Overloaded, math.Inf(-1), c.bounds
	switch {
	case m.Rejected.Text != "":
		c.result.Reason = m.Rejected
		return
	case !m.Valid:
		why, counted = "; the last could not be trusted: "+m.Doubt().String(), nil
	case m.Aborted.Text != "":
		why, met = "; "+m.Aborted.Text, false
	}
	for i := range counted {
		b := &counted[i]
		count, _ := m.Count(b.name)
		unit := max(count.Cluster, 1)
		b.n += float64(count.N) / unit
		b.k += float64(count.K) / unit
		if b.phi == 0 {
			met = met && b.k <= b.n*b.share
			continue
		}
		p := b.asFew()
		met = met && p <= safeQuantile/certifyLooks
		if p > worst {
			worst = p
			c.result.Binding, c.result.Requests, c.result.Beyond, c.result.Probability = b.name, b.n, b.k, p
		}
	}
	switch {
	case met:
		c.result.State = measure.Met
	case c.result.Looks == certifyLooks:
		c.result.Reason = note.Because(note.LooksUndecided, certifyLooks, why)
	}
}

// Result returns what is known so far.
func (c *Certificate) Result() Certified { return c.result }
