package search

import (
	"fmt"
	"math"
	"time"

	"planner/internal/stat"
	"planner/sweep/measure"
)

const (
	// certifyLooks and certifyAlpha share out an error of 6 % over two looks.
	certifyLooks, certifyAlpha = 2, 0.03
	// certifyMargin is how far below the median of the search a certificate is
	// sought unless the safe rate is lower still: nearer to the edge it would
	// cost ten times the engine time.
	certifyMargin = 0.9
)

// Certificate tests one fixed rate without any curve: it is met if so few
// requests were beyond the limit that as few would come with a probability of
// at most 3 % a look if the share were what is just allowed. It takes at most two
// looks, on requests of their own.
type Certificate struct {
	cfg    MaxRateConfig
	rate   float64
	window time.Duration
	bounds []assumed
	// n and k sum up the trials so far, a bound each.
	n, k    []float64
	looks   int
	verdict measure.Verdict
	pending *measure.Trial
}

// Certify prepares the test of the rate that a finished search suggests: its
// safe rate, or 0.9 times its median if that is lower. window is the length of
// each of the two trials; 0 means 600 s or 10 times what the quantiles need,
// whichever holds more requests. Bounds on means are not tested.
func Certify(cfg MaxRateConfig, found Result, window time.Duration) *Certificate {
	cfg = cfg.withDefaults()
	c := &Certificate{cfg: cfg, rate: min(found.Estimate.Safe, certifyMargin*found.Estimate.Value), window: window}
	for _, b := range assume(cfg.SLO, cfg.Prior) {
		if !b.mean {
			// A simulator's dispersion counts only where it is worse than usual.
			b.phi.median = max(b.phi.median, genericPhi)
			c.bounds = append(c.bounds, b)
		}
	}
	c.n, c.k = make([]float64, len(c.bounds)), make([]float64, len(c.bounds))
	if c.window == 0 {
		s := MaxRate{cfg: cfg}
		c.window = max(600*time.Second, time.Duration(10*s.leastRequests()/c.rate*float64(time.Second)))
	}
	return c
}

// Next proposes the next trial; none when the test has ended.
func (c *Certificate) Next() []measure.Trial {
	if c.pending == nil && c.looks < certifyLooks && c.verdict.State == measure.Unsure && c.rate > 0 && len(c.bounds) > 0 {
		s := MaxRate{cfg: c.cfg, proposed: c.looks}
		s.cfg.Seed = trialSeed(c.cfg.Seed, streamCertify)
		size := s.sized(c.rate, false)
		c.pending = s.trial(measure.Trial{Rate: c.rate, Warmup: size.warmup, Window: c.window, Cooldown: size.cooldown,
			Why: fmt.Sprintf("certificate, look %d of %d", c.looks+1, certifyLooks)})
	}
	if c.pending == nil {
		return nil
	}
	return []measure.Trial{*c.pending}
}

// streamCertify keeps the requests of a certificate apart from those of the
// search that suggested its rate.
const streamCertify = 7001

// Observe takes the measurement of the proposed trial.
func (c *Certificate) Observe(m measure.Measurement) {
	c.pending = nil
	c.looks++
	if !m.Valid || m.Rejected != "" {
		return
	}
	met := true
	worst := math.Inf(-1)
	for j := range c.bounds {
		b := &c.bounds[j]
		for _, count := range m.Counts {
			if count.Bound == b.name {
				unit := max(count.Cluster, 1)
				c.n[j] += float64(count.N) / unit
				c.k[j] += float64(count.K) / unit
			}
		}
		if b.name == "errors" {
			continue
		}
		null := stat.NegativeBinomial{Mean: c.n[j] * b.share, Phi: b.dispersion(b.phi.median).Phi(b.share)}
		p := null.CDF(math.Floor(c.k[j]))
		met = met && p <= certifyAlpha && m.Aborted == "" && !m.Overloaded
		if p > worst {
			worst, c.verdict.Binding = p, b.name
			c.verdict.Slack = 1 - c.k[j]/max(c.n[j]*b.share, math.SmallestNonzeroFloat64)
		}
	}
	if met {
		c.verdict.State = measure.Met
	}
}

// Result gives the rate and whether it is certified: Met or Unsure. That it was
// not certified does not show that the objective is missed there.
func (c *Certificate) Result() (rate float64, v measure.Verdict) { return c.rate, c.verdict }
