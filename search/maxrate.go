package search

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Prior is what a simulator, or arithmetic, says of one configuration before
// anything is measured. It comes in as data: this package never simulates.
type Prior struct {
	Knobs measure.Knobs
	// Rate is the predicted maximum rate in requests per second; 0 means that nothing is known.
	Rate float64
	// Spread is the standard deviation of ln Rate; 0 takes the default.
	Spread float64
	// Latency is what the slowest requests are predicted to take at Rate, for the first warm-up; 0 means unknown.
	Latency time.Duration
	// Kappa is the predicted steepness d ln(-ln(1-p)) / d ln rate at Rate, Phi the predicted dispersion of exceedance
	// counts at the objective's share; 0 takes the default of either.
	Kappa, Phi float64
	// Gamma is how the dispersion grows with the share p: phi(p) = Phi (p/p0)^Gamma; 0 takes the default.
	Gamma float64
	// Binding names the bound that Rate, Kappa and Phi are about, as measure.Bound.String does; empty if not known.
	Binding string
}

// MaxRateConfig says what is searched and how well the answer must be known.
type MaxRateConfig struct {
	Prior    Prior // the knobs of the configuration and what is known of it
	Workload *workload.Workload
	SLO      measure.SLO // the objective; it must have a bound
	Seed     uint64      // drives the seeds of the trials
	// Precision is the half-width of the interval, relative to the rate, at which the search ends; 0 means 0.10.
	// Confidence is that of the interval; 0 means 0.90.
	Precision, Confidence float64
	// Budget is the engine time of all trials, warm-up included; 0 means that engine time costs nothing, as of a
	// simulated engine: trials are then as long as is soon simulated. Overhead is what a trial costs besides its load.
	Budget, Overhead time.Duration
	// Steady says that the engine is as fast in every trial, as a simulated one is, and all whose time costs nothing.
	Steady bool
	// Limit is the largest rate that is tried, in requests per second; 0 means a million.
	Limit float64
	// Warmup and Window fix these of every trial; 0 leaves them to the search.
	Warmup, Window time.Duration
	// MinRequests is the least number of requests of a trial that measures; 0 means what the quantiles need.
	MinRequests int

	// output is the mean number of output tokens of a request.
	output int
}

func (c MaxRateConfig) withDefaults() MaxRateConfig {
	c.Precision, c.Confidence, c.Limit = cmp.Or(c.Precision, 0.10), cmp.Or(c.Confidence, 0.90), cmp.Or(c.Limit, 1e6)
	c.Workload = c.Workload.Anywhere()
	_, output := c.Workload.MeanTokens()
	c.output = int(math.Ceil(output))
	return c
}

// MaxRate searches the largest rate at which one configuration meets an objective. It is a pure function of what it was
// told: a replayed search proposes the same trials, bit for bit.
type MaxRate struct {
	cfg    MaxRateConfig
	bounds []assumed
	// tried are the trials under load that count, doubted those that cannot be trusted, inRow of them at the end.
	tried, doubted []attempt
	inRow          int
	// met and missed count those that met the objective by their raw counts, or not; highest is the largest rate.
	met, missed int
	highest     float64
	// chosen is how many of them a race chose by.
	chosen     int
	posteriors posteriors
	// ran counts all trials, and simulated their requests; spent is their engine time, wasted that of the doubted ones.
	ran, simulated int
	spent, wasted  time.Duration
	// latency is how long the slowest requests take from end to end, mean the mean one, within the limits; 0 unknown.
	latency, mean time.Duration
	idle          idle
	// outcome and reason say how the search came to its end, once it has.
	outcome Outcome
	reason  note.Reason
}

// attempt is one trial under load, judged by its raw counts.
type attempt struct {
	*measure.Measurement
	// rate is the one that it speaks of, shows what it says of each bound, and met whether it met all of them.
	rate  float64
	shows []likelihood
	met   bool
	// measured says that it had half the length, and half the requests, of trials that measure.
	measured bool
}

// failing says how requests failed, behind a lead, where that is what missed the objective; else nothing.
func (t attempt) failing(lead string) string {
	if !t.Missed() || t.Verdict.Binding != measure.ErrorsBound {
		return ""
	}
	return lead + t.Complaint()
}

// NewMaxRate starts a search.
func NewMaxRate(cfg MaxRateConfig) *MaxRate {
	if cfg.SLO.Empty() {
		panic("search: maximum rate under an objective without bounds")
	}
	s := &MaxRate{cfg: cfg.withDefaults(), latency: cfg.Prior.Latency, idle: idle{broken: -1}}
	s.bounds = assume(s.cfg.SLO, s.cfg.Prior, !s.cfg.free() && !s.cfg.Steady)
	if turns := s.cfg.Workload.Turns; turns > 1 && cfg.Prior.Phi == 0 {
		for j := range s.bounds {
			// When the engine falls behind, all turns of the conversations under way are late.
			s.bounds[j].phi *= float64(turns)
		}
	}
	return s
}

// Observe takes the measurement of a trial, which need not be the proposed one, of the same knobs and objective.
func (s *MaxRate) Observe(m measure.Measurement) {
	if m.Rejected.Text != "" {
		if s.outcome, s.reason = Infeasible, m.Rejected; measure.Broke(m.Rejected) {
			s.outcome = Unmeasured
		}
		return
	}
	s.ran++
	s.spent += m.EngineTime(s.cfg.Overhead)
	s.simulated += int(float64(m.Requests) * (1 + m.Trial.Warmup.Seconds()/max(m.Duration.Seconds(), 1)))
	if m.Trial.Closed() {
		s.observeIdle(&m)
		s.latency = max(s.latency, m.E2E.Slowest())
		return
	}
	t := s.shown(&m)
	if !m.Tells() {
		s.doubted, s.inRow, s.wasted = append(s.doubted, t), s.inRow+1, s.wasted+m.EngineTime(s.cfg.Overhead)
		return
	}
	s.tried, s.inRow, s.highest = append(s.tried, t), 0, max(s.highest, t.rate)
	s.posteriors = parallel.Map(len(s.bounds), func(j int) *posterior { return s.bounds[j].infer(s.seen(j)) })
	if !t.met {
		s.missed++
		return
	}
	s.met++
	// Beyond the limit, or far below the rates to come, requests take another time than where the limit is met.
	if 2*t.rate >= s.highest || m.E2E.Slowest() > s.latency {
		s.latency, s.mean = m.E2E.Slowest(), max(m.E2E.Mean, 0)
	}
}

// seen is the evidence on a bound.
func (s *MaxRate) seen(j int) []likelihood {
	return list.Map(s.tried, func(t attempt) likelihood { return t.shows[j] })
}

// shown is what a trial under load shows of each bound, at the rate that it speaks of, and whether it met them all,
// which none did that was ended early. Where the backlog grew, what is beyond its limit, or waits for a place, is worse
// in the long run than the trial shows. What does not wait and was within its limit is so at the rate of completion.
func (s *MaxRate) shown(m *measure.Measurement) attempt {
	flow, _ := m.Count(measure.ThroughputBound)
	grew, whole := m.Grew(), m.Aborted.Text == ""
	t := attempt{Measurement: m, met: !grew && whole, shows: make([]likelihood, len(s.bounds))}
	t.measured = whole && 2*m.Trial.Window >= s.cfg.timed(m.Trial.Rate, 1, s.learned()).Window && 2*float64(m.Requests) >= s.cfg.leastRequests()
	for j := range s.bounds {
		c, _ := m.Count(s.bounds[j].name)
		t.met = t.met && !s.bounds[j].missed(c)
	}
	t.rate = m.Carried(s.cfg.Workload, t.met)
	for j := range s.bounds {
		b, rate := &s.bounds[j], t.rate
		c, _ := m.Count(b.name)
		more := grew && (b.waits || b.missed(c))
		switch {
		case b.kind == onThroughput:
			rate *= s.luck(m, flow.N)
			if !m.Valid && !m.Drifted() {
				c = measure.Count{}
			}
		case grew && !more:
			rate *= 1 - min(max(flow.Value, 0), 0.99)
		}
		t.shows[j] = b.observe(c, rate, more)
	}
	return t
}

// luck is how many requests came in the second half of the window, where the throughput is counted, over how many were
// to be expected. What a server completes does not follow it.
func (s *MaxRate) luck(m *measure.Measurement, came int) float64 {
	expected := s.cfg.Workload.MeanRate(m.Trial.Rate) * m.Duration.Seconds() / 2
	if s.cfg.Workload.Turns > 1 || expected <= 0 || came == 0 {
		return 1
	}
	return float64(came) / expected
}

// missed reports whether a count by itself is beyond what is allowed.
func (a *assumed) missed(c measure.Count) bool {
	return a.kind == onShare && float64(c.K) > float64(c.N)*a.share || a.kind == onMean && c.N > 0 && c.Value > 1
}

// lowest is the trial at the smallest rate of those that count, of which there must be one.
func (s *MaxRate) lowest() attempt {
	return slices.MinFunc(s.tried, func(a, b attempt) int { return cmp.Compare(a.rate, b.rate) })
}

// Streams of draws of their own: of trials at the reference of a race, of its last searches, and of certificates.
const streamTests, streamFinal, streamCertify = 102, 103, 7001

// trialSeed is the seed of trial index of a configuration: the same for every configuration, which then meet the same
// requests (common random numbers), and another one for each trial, so that clumps of arrivals are spread and no bias.
func trialSeed(base uint64, index int) uint64 {
	// 53 bits survive a JSON number in every reader.
	return workload.Draw64(base, uint64(index)) >> 11
}
