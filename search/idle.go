package search

import (
	"math"
	"slices"
	"time"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// idle is what requests sent one at a time showed: no limit below the latency of an idle engine can be met, and the
// inverse of that latency is the only scale of rates known at first.
type idle struct {
	// looks counts the probes; the second has as many requests as the quantiles need, or as there is time for.
	looks int
	// service is the mean latency of a request alone in the engine.
	service time.Duration
	// broken is the index of the bound that an idle engine misses, and floor its latency; -1 if none.
	broken int
	floor  Floor
	// meets says that an idle engine certainly meets every bound, which the first turns of conversations cannot show.
	meets bool
}

// Floor is the latency of an idle engine that exceeds a limit: no limit below that latency is feasible at any rate.
type Floor struct {
	Bound string        `json:"bound"`      // for goodput the limit that is broken
	Stat  string        `json:"statistic"`  // the bound's own, or a lower quantile if the probe was too short for it
	Value time.Duration `json:"latency_ms"` // 0 if none was seen above the limit
	Limit time.Duration `json:"limit_ms"`   // the limit asked for
}

// probe is a trial of an idle engine, if that is wanted next: of a few requests where no rate is predicted or the first
// trials all missed, and of more where these requests show a miss, or trials go on missing all the same.
func (s *MaxRate) probe() (t measure.Trial, wanted bool) {
	t = measure.Trial{Concurrency: 1, Requests: enoughBeyond, Why: "one request at a time: the latency of an idle engine"}
	if s.idle.looks == 0 {
		return t, s.cfg.Prior.Rate <= 0 || s.met == 0 && s.missed >= few
	}
	t.Requests, t.Why = s.enoughAlone(), "one request at a time: the smallest limit that an idle engine meets"
	return t, t.Requests > 0 && (s.idle.broken >= 0 || s.met == 0 && s.missed > few)
}

// enoughAlone is how many requests a second probe needs to tell the idle value of a bound; 0 if there is to be none.
func (s *MaxRate) enoughAlone() int {
	n := int(s.cfg.leastRequests())
	if s.cfg.Budget > 0 {
		n = min(n, int((s.cfg.Budget-s.spent)/trialShare/max(s.idle.service, 1)))
	}
	if n <= enoughBeyond || s.idle.looks > 1 {
		return 0
	}
	return n
}

// observeIdle takes the measurement of a probe. That an idle engine refuses requests says nothing of what it could meet.
func (s *MaxRate) observeIdle(m *measure.Measurement) {
	p := &s.idle
	p.looks++
	p.broken, p.meets = s.brokenBy(m)
	p.meets = p.meets && s.cfg.Workload.Turns <= 1
	if p.service = max(m.E2E.Mean, 0); p.service == 0 && m.Requests > 0 {
		p.service = m.Duration / time.Duration(m.Requests)
	}
	if p.broken < 0 {
		return
	}
	c, _ := m.Count(s.bounds[p.broken].name)
	p.floor = s.floorOf(p.broken, m)
	outcome, why := Infeasible, note.Because(note.IdleMisses, p.floor.Bound, c.K, c.N)
	switch f := p.floor; {
	case f.Bound == measure.ErrorsBound:
		why = note.Because(note.FailsIdle, m.Failed, m.Requests, m.Complaint())
		if m.Refuses() {
			outcome = Unmeasured
		}
	case f.Value > 0:
		why = note.Because(note.IdleFloor, f.Bound, f.Stat, f.Value.Round(10*time.Microsecond), f.Limit)
	}
	// To a server that limits rates, and refuses fast, one request after another is no light load.
	refused := stat.ShareLower(float64(m.Failed), float64(m.Requests), disturbed)
	switch {
	case outcome == Unmeasured && (m.Sheds() && m.Failed < m.Requests || slices.ContainsFunc(s.tried, func(t attempt) bool { return float64(t.Failed) < refused*float64(t.Requests) })):
		p.broken = -1
	case s.enoughAlone() == 0:
		s.outcome, s.reason = outcome, why
	}
}

// brokenBy returns the first bound that lone requests certainly miss, -1 for none, and whether they certainly meet all.
// Failed requests count beyond every limit: for a latency they are taken out, as a miss due to them alone is one of the
// bound on failures. An invalid trial, or one that begins without the prefixes to be cached, can show no other miss.
func (s *MaxRate) brokenBy(m *measure.Measurement) (broken int, meets bool) {
	broken, meets = -1, m.Valid
	for j := len(s.bounds) - 1; j >= 0; j-- {
		b := &s.bounds[j]
		c, _ := m.Count(b.name)
		_, high := b.alone(c)
		meets = meets && high <= 1
		if b.name != measure.ErrorsBound {
			c.K, c.N = max(c.K-m.Failed, 0), max(c.N-m.Failed, 0)
		}
		if low, _ := b.alone(c); low > 1 && (m.Valid && (s.cfg.Workload.Turns > 1 || !s.cfg.Workload.SharesPrefixes()) || b.name == measure.ErrorsBound) {
			broken = j
		}
	}
	return broken, meets
}

// alone is the interval of a mean over its limit, or of a share over what is allowed, for independent lone requests.
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

// floorOf reads the idle value of bound j off the probe; for goodput, that of the first limit that an idle engine breaks
// by itself. The value is 0 if there is none, as the probe may be too short for it.
func (s *MaxRate) floorOf(j int, m *measure.Measurement) Floor {
	if j < len(s.cfg.SLO.Bounds) {
		for _, b := range (measure.SLO{Bounds: s.cfg.SLO.Bounds[j : j+1]}).Latencies() {
			if stat, v := m.Beyond(b); v > 0 {
				return Floor{Bound: b.String(), Stat: stat, Value: v, Limit: b.Limit}
			}
		}
	}
	return Floor{Bound: s.bounds[j].name}
}

// loneRate reports whether requests hardly ever overlap at the lowest rate, in a trial that missed or ran to its end. If
// an idle engine certainly meets the objective, bunched arrivals still overlap: only a miss at a negligible rate counts.
func (s *MaxRate) loneRate() bool {
	low, load := s.lowest(), math.Exp(negligible/2)
	if !s.idle.meets {
		load = safeQuantile
		for _, b := range s.cfg.SLO.Bounds {
			if allowed := b.Allowed(); allowed > 0 {
				load = min(load, allowed)
			}
		}
	}
	return s.idle.looks > 0 && low.rate*s.idle.service.Seconds() < load && (low.Missed() || !s.idle.meets && low.Aborted.Text == "")
}
