package search

import (
	"math"
	"time"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// idleProbe sends requests one at a time: the latency of an idle engine bounds every limit from below, and its inverse
// is the only scale of rates that is known before anything else is.
type idleProbe struct {
	done bool
	// service is the mean time of one request alone.
	service time.Duration
	// broken is the index of the bound that an idle engine misses; -1 if none.
	broken int
	// meets says that an idle engine meets every bound for sure.
	meets bool
	// resolved says that the probe was repeated with as many requests as the objective's
	// quantiles need, or as there is time for.
	resolved bool
	floor    Floor
}

// Floor is the latency of an idle engine against a limit that it cannot meet: no smaller limit is feasible at any rate.
type Floor struct {
	// Bound names the bound, of goodput the limit that is broken, Stat the statistic that Value is: the bound's own, or a
	// lower quantile where the probe was too short for it. Value is 0 where none was seen above the limit.
	Bound, Stat  string
	Value, Limit time.Duration
}

// wanted is the probe where it is the next thing to find out.
func (p *idleProbe) wanted(s *MaxRate) (t measure.Trial, wanted bool) {
	t = measure.Trial{Concurrency: 1, Requests: enoughBeyond, Why: "one request at a time: the latency of an idle engine"}
	missed := 0
	if _, _, _, allMissed := s.extremes(); allMissed {
		missed = len(s.valid())
	}
	switch {
	case p.resolved:
		return t, false
	case p.done && (p.broken >= 0 || missed > few):
		// Ten requests did not show it, yet every rate misses: look closer.
		t.Requests, t.Why = p.enough(s), "one request at a time: the smallest limit that an idle engine meets"
	case p.done || s.cfg.Prior.Rate > 0 && missed < few:
		return t, false
	}
	return t, t.Requests > 0
}

// enough is how many more requests name the idle value of the broken bound; 0 when what was seen must do.
func (p *idleProbe) enough(s *MaxRate) int {
	n := int(s.cfg.leastRequests())
	if s.cfg.Budget > 0 {
		n = min(n, int((s.cfg.Budget-s.spent)/trialShare/max(p.service, 1)))
	}
	if n <= enoughBeyond {
		return 0
	}
	return n
}

// observe takes the measurement of a probe. An idle engine that refuses requests is no word on what it could meet.
func (p *idleProbe) observe(s *MaxRate, m *measure.Measurement) {
	p.resolved, p.done = p.done, true
	p.broken, p.meets = s.brokenBy(m)
	if p.service = max(m.E2E.Mean, 0); p.service == 0 && m.Requests > 0 {
		p.service = m.Duration / time.Duration(m.Requests)
	}
	if p.broken < 0 {
		return
	}
	p.floor = s.floorOf(p.broken, m)
	outcome, why := Infeasible, note.Because(note.IdleMisses, p.floor.Bound)
	switch f := p.floor; {
	case f.Bound == measure.ErrorsBound:
		why = note.Because(note.FailsIdle, m.Failed, m.Requests, m.Complaint())
		if m.Refuses() {
			outcome = Unmeasured
		}
	case f.Value > 0:
		why = note.Because(note.IdleFloor, f.Bound, f.Stat, f.Value.Round(10*time.Microsecond), f.Limit)
	}
	switch {
	case outcome == Unmeasured && s.failsLess(m):
		p.broken = -1
	case p.resolved || p.enough(s) == 0:
		s.outcome, s.reason = outcome, why
	}
}

// failsLess reports whether fewer requests failed at the lowest rate tried than of those one at a time, beyond chance:
// a server that limits rates refuses fast, and who asks again at once is no light load to it.
func (s *MaxRate) failsLess(probe *measure.Measurement) bool {
	if len(s.valid()) == 0 {
		return false
	}
	low := s.lowest()
	return float64(low.Failed)/float64(low.Requests) < stat.ShareLower(float64(probe.Failed), float64(probe.Requests), disturbed)
}

// brokenBy tells the first bound that requests miss which are alone in the engine, -1 for none, and whether they
// meet all for sure. Failed requests count as beyond every limit: a latency that is missed for them alone
// is no word on the latency, and the share of failed requests is what is missed.
func (s *MaxRate) brokenBy(m *measure.Measurement) (broken int, meets bool) {
	broken, meets = -1, true
	for j := len(s.bounds) - 1; j >= 0; j-- {
		b := &s.bounds[j]
		c, _ := m.Count(b.name)
		_, high := b.alone(c)
		meets = meets && high <= 1
		if b.name != measure.ErrorsBound {
			c.K, c.N = max(c.K-m.Failed, 0), max(c.N-m.Failed, 0)
		}
		if low, _ := b.alone(c); low > 1 {
			broken = j
		}
	}
	return broken, meets
}

// alone is between which multiples of the limit, or of the share that is allowed beyond it, requests are that
// are alone in the engine. Lone requests are independent.
func (a *assumed) alone(c measure.Count) (low, high float64) {
	switch unit := max(c.Cluster, 1); {
	case a.kind == onThroughput || a.name == measure.ErrorsBound && c.K == 0:
		return 0, 0
	case a.kind == onMean:
		half := (c.Value - c.Low) / math.Sqrt(max(c.Phi, 1))
		return c.Value - half, c.Value + half
	default:
		k, n := float64(c.K)/unit, float64(c.N)/unit
		return stat.ShareLower(k, n, disturbed) / a.share, stat.ShareUpper(k, n, disturbed) / a.share
	}
}

// floorOf reads the idle value of a bound off the probe; of several limits at once that of the first which an idle
// engine breaks by itself. There need not be one, as the probe may be too short for it.
func (s *MaxRate) floorOf(j int, m *measure.Measurement) Floor {
	var parts []measure.Bound
	if j < len(s.cfg.SLO.Bounds) {
		parts = s.cfg.SLO.Bounds[j : j+1]
		if b := parts[0]; b.Metric == measure.Goodput {
			parts = b.Limits.Parts(b.Quantile)
		}
	}
	for _, b := range parts {
		for _, q := range []float64{0.999, 0.99, 0.95, 0.90, 0.50, 0} {
			if v := m.Of(b.Class).Latency(b.Metric).Stat(q); q <= b.Quantile && v > b.Limit {
				return Floor{Bound: b.String(), Stat: measure.Bound{Quantile: q}.Stat(), Value: v, Limit: b.Limit}
			}
		}
	}
	return Floor{Bound: s.bounds[j].name}
}

// loneRate reports whether a rate is so low that requests hardly ever meet. Where an idle engine meets the
// objective for sure, arrivals in bunches meet at any rate that is not negligible.
func (s *MaxRate) loneRate(rate float64) bool {
	load := math.Exp(negligible / 2)
	if !s.idle.meets {
		load = safeQuantile
		for _, b := range s.cfg.SLO.Bounds {
			if allowed := b.Allowed(); allowed > 0 {
				load = min(load, allowed)
			}
		}
	}
	return s.idle.done && rate*s.idle.service.Seconds() < load
}
